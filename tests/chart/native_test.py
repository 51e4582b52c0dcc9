# SPDX-License-Identifier: Apache-2.0
"""Pods that the real kube-scheduler places by their PodGroup (Kubernetes 1.37, feature gate GenericWorkload), beside
gangs of the operator: both start as a whole, and do not compete for nodes."""

import random
import re
import subprocess
import time
import unittest
import urllib.error

from gangs_test import LEAVES, NODES, SPACE, GangScene, pod

from control_plane import COMMAND, wait_until

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
KINDS = "--runtime-config=scheduling.k8s.io/v1beta1=true"
DEADLINE = 1800  # seconds for forty gangs


def serves_groups():
    """Returns whether the API server in PATH has PodGroups of this version."""
    told = subprocess.run(["kube-apiserver", "--version"], capture_output=True, text=True, timeout=COMMAND)
    version = re.search(r"v1\.(\d+)", told.stdout)
    return version is not None and int(version[1]) >= 37


def native_pod(group, index, size):
    """Returns a pod as a Job makes it from a template with a schedulingGroup."""
    made = pod(group, index, size)
    made["metadata"]["annotations"]["railhead.io/world-size"] = str(size)
    made["spec"] |= {
        "schedulingGroup": {"podGroupName": group},
        "hostname": f"{group}-{index}",
        "subdomain": group,
    }
    return made


@unittest.skipUnless(serves_groups(), "needs Kubernetes 1.37: RAILHEAD_KUBE_BIN=DIR")
class Native(GangScene):
    flags = (GATES, KINDS)
    scheduler_flags = (GATES,)

    def setUp(self):
        super().setUp()
        self.groups = set()
        self.addCleanup(self.remove_groups)

    def arrive_native(self, group, size, key=None):
        self.sizes[group] = size
        self.groups.add(group)
        spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
        if key:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        self.ask("POST", GROUPS, {"metadata": {"name": group}, "spec": spec})
        for index in range(size):
            made = self.ask("POST", f"{SPACE}/pods", native_pod(group, index, size))
            self.assertFalse(made["spec"].get("schedulingGates"), "it has a gate")
            env = {entry["name"]: entry for entry in made["spec"]["containers"][0]["env"]}
            self.assertIn("fieldRef", env["RANK"]["valueFrom"])
            self.assertEqual(env["WORLD_SIZE"]["value"], str(size))
            waits = made["spec"]["initContainers"][0]
            self.assertEqual(waits["name"], "railhead-wait-for-rank")

    def remove_groups(self):
        for group in self.groups:
            try:
                # Its controller, which does not run here, would remove the finalizer.
                nobody = {"metadata": {"finalizers": None}}
                self.ask("PATCH", f"{GROUPS}/{group}", nobody, "application/merge-patch+json")
                self.ask("DELETE", f"{GROUPS}/{group}")
            except urllib.error.HTTPError as refusal:
                self.assertEqual(refusal.code, 404)

    def pods_of(self, gang):
        return [p for p in self.pods() if p["metadata"]["name"].rsplit("-", 1)[0] == gang]

    def bound(self, gang):
        return sum("nodeName" in item["spec"] for item in self.pods_of(gang))

    def ranks(self, gang):
        """Returns the nodes by rank, once all pods have theirs."""
        nodes = {}
        for item in self.pods_of(gang):
            rank = item["metadata"]["annotations"].get("railhead.io/rank")
            if rank and "nodeName" in item["spec"]:
                nodes[int(rank)] = item["spec"]["nodeName"]
        return nodes if len(nodes) == self.sizes[gang] else None

    def check_ranks(self, gang):
        wait_until(lambda: self.ranks(gang), f"the ranks of {gang}", self.replica.log)
        nodes = self.ranks(gang)
        in_order = [nodes[rank] for rank in range(self.sizes[gang])]
        self.assertEqual(in_order, sorted(in_order), f"{gang} is not in the fabric's order")

    def test_a_group_and_a_gang_start_as_a_whole_in_the_order_of_the_fabric(self):
        self.arrive_native("native", 12, "topology.railhead.io/spine")
        self.arrive("ours", 12)
        for gang in ("native", "ours"):
            wait_until(lambda gang=gang: self.bound(gang) == 12, gang, self.replica.log)
            self.check_ranks(gang)
        spines = {int(node[1:]) // (LEAVES * NODES) for node in self.ranks("native").values()}
        self.assertEqual(len(spines), 1)
        masters = {
            item["metadata"]["annotations"]["railhead.io/master-addr"]
            for item in self.pods_of("native")
        }
        first = next(
            item
            for item in self.pods_of("native")
            if item["metadata"]["annotations"]["railhead.io/rank"] == "0"
        )
        self.assertEqual(masters, {first["metadata"]["name"] + ".native"})

    def test_a_pod_that_is_made_again_takes_the_rank_that_is_free(self):
        self.arrive_native("native", 4)
        self.check_ranks("native")
        lost = self.pods_of("native")[1]
        rank = lost["metadata"]["annotations"]["railhead.io/rank"]
        self.remove(lost["metadata"]["name"])
        again = native_pod("native", 1, 4)
        again["metadata"]["name"] = "native-again"
        self.ask("POST", f"{SPACE}/pods", again)

        def ranked():
            made = self.ask("GET", f"{SPACE}/pods/native-again")
            return made["metadata"]["annotations"]["railhead.io/rank"]

        wait_until(ranked, "its rank", self.replica.log)
        self.assertEqual(ranked(), rank)

    def test_what_a_group_waits_for_is_not_kept_from_others(self):
        self.arrive_native("holds", 30)
        wait_until(lambda: self.bound("holds") == 30, "the group", self.replica.log)
        self.arrive_native("waits", 20)
        self.arrive("ours", 10)
        wait_until(lambda: self.bound("ours") == 10, "the gang", self.replica.log)
        self.assertEqual(self.bound("waits"), 0)
        # No nodes are left.
        self.arrive("late", 1)
        time.sleep(3)
        self.assertEqual(self.look()["late"], {})
        for index in range(30):
            self.remove(f"holds-{index}")
        self.sizes.pop("holds")
        wait_until(lambda: self.bound("late") == 1, "the late one", self.replica.log)
        wait_until(lambda: self.bound("waits") == 20, "the waiting one", self.replica.log)
        self.check_ranks("waits")

    def forty(self, natives):
        """Gangs arrive in random order and leave when they have run as a whole."""
        rng = random.Random(37)
        waiting = [(f"g{number}", number < natives) for number in range(40)]
        rng.shuffle(waiting)
        native = dict(waiting)
        ended = 0
        began = time.monotonic()
        while ended < 40:
            self.assertLess(time.monotonic() - began, DEADLINE, f"{self.look()}")
            while waiting and len(self.sizes) < 8:
                gang, is_native = waiting.pop()
                (self.arrive_native if is_native else self.arrive)(gang, rng.randint(2, 16))
            self.look()  # checks that no node is over-allocated
            for gang in sorted(self.sizes):
                if self.bound(gang) < self.sizes[gang]:
                    continue
                if native[gang]:
                    self.check_ranks(gang)
                else:
                    self.check_order_of(gang)
                self.leave(gang)
                ended += 1
        blocked = [
            event["message"]
            for event in self.ask("GET", f"{SPACE}/events")["items"]
            if event["reason"] in ("GangBlocked", "GangReplanned")
        ]
        return blocked

    def check_order_of(self, gang):
        nodes = self.ranks(gang)
        leaves = [self.leaf_of[nodes[rank]] for rank in sorted(nodes)]
        changes = sum(a != b for a, b in zip(leaves, leaves[1:]))
        self.assertEqual(changes, len(set(leaves)) - 1, f"{gang}: {nodes}")

    def test_forty_groups_of_the_schedulers(self):
        self.assertEqual(self.forty(40), [])

    def test_groups_and_gangs_in_turn(self):
        self.forty(20)


if __name__ == "__main__":
    unittest.main()
