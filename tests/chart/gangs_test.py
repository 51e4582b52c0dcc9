# SPDX-License-Identifier: Apache-2.0
"""Gangs with the chart's operator, a real API server and the real kube-scheduler, on nodes that exist in the API
only: pods start together or not at all, in the order of the fabric, whichever process dies."""

import json
import random
import ssl
import unittest
import urllib.error
import urllib.request

import yaml

from apiserver import Cluster
from profiles_test import AUDIT_POLICY
from replica import Replica, install, send_reviews_to

from control_plane import COMMAND, audited, folder_for, wait_until

SPINES, LEAVES, NODES = 2, 4, 5  # spines of the fabric, leaves of a spine, nodes of a leaf
HCAS = 8  # HCAs of a node
ALLOCATABLE = {
    "cpu": "96",
    "memory": "1Ti",
    "pods": "110",
    "rdma/hca": str(HCAS),
    "nvidia.com/gpu": str(HCAS),
}
SPACE = "/api/v1/namespaces/default"
LIMIT = "10s"  # of a gang's wait: longer than a busy machine takes to create its pods
HELD = {"test/gates": "stay"}  # a pod that a policy of the test keeps gated


def pod(gang, index, size, hcas=HCAS):
    """Returns a pod as a Job controller makes it: with an owner and its index."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang}-{index}",
            "labels": {"railhead.io/gang": "true"},
            "annotations": {
                "railhead.io/gang-size": str(size),
                "batch.kubernetes.io/job-completion-index": str(index),
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": gang,
                    "uid": f"uid-of-{gang}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"limits": {"rdma/hca": hcas, "nvidia.com/gpu": hcas}},
                }
            ],
        },
    }


class GangScene(unittest.TestCase):
    """The cluster; `flags` are additional flags of the API server and the scheduler."""

    flags = scheduler_flags = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "gangs")
        policy = cls.folder / "audit.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        cls.audit = cls.folder / "audit.log"
        cls.cluster = Cluster(
            cls.folder,
            f"--audit-policy-file={policy}",
            f"--audit-log-path={cls.audit}",
            *cls.flags,
        )
        cls.cluster.start_for(cls)
        cls.tls = ssl.create_default_context(cafile=cls.cluster.authority)
        install(cls.cluster, "--set=operator.gangs.enabled=true")
        cls.replica = cls.make_replica("first")
        cls.addClassCleanup(lambda: cls.replica.end())
        send_reviews_to(cls.cluster, cls.replica, cls.replica)
        cls.leaf_of = {}
        for number in range(SPINES * LEAVES * NODES):
            cls.make_node(number)
        cls.cluster.start_scheduler(*cls.scheduler_flags)
        wait_until(cls.replica.leads, "the leader", cls.replica.log)

    @classmethod
    def make_replica(cls, name):
        return Replica(cls.cluster, cls.folder, name)

    @classmethod
    def ask(cls, method, path, body=None, kind="application/json"):
        """Returns the API server's response."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{cls.cluster.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {cls.cluster.token}", "Content-Type": kind},
        )
        with urllib.request.urlopen(request, timeout=COMMAND, context=cls.tls) as answer:
            return json.loads(answer.read())

    @classmethod
    def make_node(cls, number):
        name, leaf = f"n{number:02}", number // NODES
        cls.leaf_of[name] = f"l{leaf}"
        labels = {
            "kubernetes.io/hostname": name,
            "topology.railhead.io/spine": f"s{leaf // LEAVES}",
            "topology.railhead.io/leaf": f"l{leaf}",
        }
        cls.ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        merge = "application/merge-patch+json"
        # New nodes have the taint of a node that is not ready.
        cls.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, merge)
        status = {
            "allocatable": ALLOCATABLE,
            "capacity": ALLOCATABLE,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        cls.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, merge)

    def setUp(self):
        self.sizes = {}
        self.addCleanup(self.remove_all)

    def arrive(self, gang, size):
        self.sizes[gang] = size
        for index in range(size):
            self.ask("POST", f"{SPACE}/pods", pod(gang, index, size))

    def leave(self, gang):
        for index in range(self.sizes.pop(gang)):
            self.remove(f"{gang}-{index}")

    def remove(self, name):
        try:
            self.ask("DELETE", f"{SPACE}/pods/{name}", {"gracePeriodSeconds": 0})
        except urllib.error.HTTPError as refusal:
            self.assertEqual(refusal.code, 404)

    def remove_all(self):
        for item in self.pods():
            self.remove(item["metadata"]["name"])

    def pods(self):
        return self.ask("GET", f"{SPACE}/pods")["items"]

    def look(self):
        """Returns the nodes of each gang's bound pods by rank. Fails if a node is over-allocated."""
        gangs = {gang: {} for gang in self.sizes}
        used = {}
        for item in self.pods():
            node = item["spec"].get("nodeName")
            if not node:
                continue
            gang = item["metadata"]["name"].rsplit("-", 1)[0]
            request = item["spec"]["containers"][0].get("resources", {}).get("requests", {})
            used[node] = used.get(node, 0) + int(request.get("rdma/hca", 0))
            self.assertLessEqual(used[node], HCAS, f"{node} is held twice")
            rank = item["metadata"].get("annotations", {}).get("railhead.io/rank")
            if gang in gangs and rank:
                gangs[gang][int(rank)] = node
        return gangs

    def settled(self):
        """Returns whether every gang has all of its nodes or none, and no gang that would fit has none."""
        gangs = self.look()
        free = SPINES * LEAVES * NODES - sum(len(nodes) for nodes in gangs.values())
        return all(
            len(nodes) == self.sizes[gang] or (not nodes and self.sizes[gang] > free)
            for gang, nodes in gangs.items()
        )

    def wait_until_settled(self):
        wait_until(self.settled, f"whole gangs: {self.look()}", self.replica.log)

    def check_order(self):
        """Checks that consecutive ranks are in one leaf, as long as the leaf has ranks of the gang."""
        for gang, nodes in self.look().items():
            leaves = [self.leaf_of[nodes[rank]] for rank in sorted(nodes)]
            changes = sum(a != b for a, b in zip(leaves, leaves[1:]))
            self.assertEqual(changes, max(0, len(set(leaves)) - 1), f"{gang}: {nodes}")


class Gangs(GangScene):
    def test_gangs_come_and_go_whole_and_in_the_order_of_the_fabric(self):
        rng = random.Random(8)
        waited = 0
        for number in range(20):
            self.arrive(f"g{number}", rng.randint(4, 16))
            if number % 2 and rng.random() < 0.8:
                self.leave(rng.choice(sorted(self.sizes)))
            if number % 4 == 3:
                self.wait_until_settled()
                self.check_order()
                waited += sum(not nodes for nodes in self.look().values())
        self.assertGreater(waited, 0, "there was room for all: nothing is shown")
        while self.sizes:
            self.wait_until_settled()
            self.check_order()
            placed = [gang for gang, nodes in self.look().items() if nodes]
            self.assertTrue(placed, "nothing is left to end")
            self.leave(placed[0])

    def test_a_gang_that_waits_is_told_why_and_starts_when_there_is_room(self):
        self.arrive("large", 32)
        self.wait_until_settled()
        self.arrive("late", 16)

        def told():
            return [
                event["message"]
                for event in self.ask("GET", f"{SPACE}/events")["items"]
                if event["reason"] == "GangWaiting" and event["involvedObject"]["name"] == "late"
                and "room for" in event["message"]
            ]

        wait_until(told, "an Event", self.replica.log)
        self.assertIn("has room for 8 of 16 pods", told()[0])
        number = 'railhead_gangs{state="waiting"} 1\n'
        wait_until(lambda: number in self.replica.ask("/metrics")[1], "its number", self.replica.log)
        self.assertEqual(self.look()["late"], {})
        self.leave("large")
        self.wait_until_settled()
        self.assertEqual(len(self.look()["late"]), 16)

    def test_a_wait_that_is_limited_ends_as_the_pods_say(self):
        self.arrive("large", 32)
        self.wait_until_settled()
        for policy in ("fail", "release"):
            for index in range(16):
                item = pod(f"limited-{policy}", index, 16)
                item["metadata"]["annotations"]["railhead.io/gang-timeout"] = LIMIT
                item["metadata"]["annotations"]["railhead.io/gang-timeout-policy"] = policy
                self.ask("POST", f"{SPACE}/pods", item)

        def of(policy):
            return [p for p in self.pods() if p["metadata"]["name"].startswith(f"limited-{policy}-")]

        def ended():
            return (
                all(p["status"]["phase"] == "Failed" for p in of("fail"))
                and not any(p["spec"].get("schedulingGates") for p in of("release"))
                and sum("nodeName" in p["spec"] for p in of("release")) == 8
            )

        wait_until(ended, "the end of their waits", self.replica.log)
        self.assertEqual({p["status"]["reason"] for p in of("fail")}, {"GangTimedOut"})
        ranks = [int(p["metadata"]["annotations"]["railhead.io/rank"]) for p in of("release")]
        self.assertEqual(sorted(ranks), list(range(16)))

        def told():
            return {
                event["involvedObject"]["name"]
                for event in self.ask("GET", f"{SPACE}/events")["items"]
                if event["reason"] == "GangTimedOut"
            }

        both = {"limited-fail", "limited-release"}
        wait_until(lambda: told() >= both, "their Events", self.replica.log)
        self.assertEqual(told(), both)

    def test_ports_that_others_hold_keep_a_gang_away(self):
        taken = pod("other", 0, 1, 0)
        taken["metadata"] = {"name": "other"}
        ports = [{"containerPort": 4000, "hostPort": 4000}]
        taken["spec"]["nodeName"] = "n00"
        taken["spec"]["containers"][0] = {"name": "main", "image": "none", "ports": ports}
        self.ask("POST", f"{SPACE}/pods", taken)
        mine = pod("port", 0, 1)
        mine["spec"]["containers"][0]["ports"] = ports
        self.sizes["port"] = 1
        self.ask("POST", f"{SPACE}/pods", mine)

        wait_until(lambda: self.look()["port"], "another node", self.replica.log)
        self.assertNotEqual(self.look()["port"][0], "n00")

    def hold_gates(self):
        """Makes the server reject the release of pods with this label, until the returned function is called."""
        name = "test-gates-stay"
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"]}]
        rules[0]["resources"] = ["pods"]
        self.cluster.kubectl(
            "create",
            objects=[
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingAdmissionPolicy",
                    "metadata": {"name": name},
                    "spec": {
                        "matchConstraints": {
                            "resourceRules": rules,
                            "objectSelector": {"matchLabels": HELD},
                        },
                        "validations": [{"expression": "has(object.spec.schedulingGates)"}],
                    },
                },
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingAdmissionPolicyBinding",
                    "metadata": {"name": name},
                    "spec": {"policyName": name, "validationActions": ["Deny"]},
                },
            ],
        )

        def let_go():
            kind = "validatingadmissionpolicybinding,validatingadmissionpolicy"
            self.cluster.kubectl("delete", kind, name, "--ignore-not-found")

        self.addCleanup(let_go)
        probe = pod("probe", 0, 1)
        probe["metadata"] = {"name": "probe", "labels": HELD}
        probe["spec"]["schedulingGates"] = [{"name": "test/probe"}]
        self.ask("POST", f"{SPACE}/pods", probe)

        def stays():
            path, merge = f"{SPACE}/pods/probe?dryRun=All", "application/merge-patch+json"
            try:
                self.ask("PATCH", path, {"spec": {"schedulingGates": None}}, merge)
            except urllib.error.HTTPError:
                return True
            return False

        # The server applies a new policy after a moment.
        wait_until(stays, "the policy")
        self.remove("probe")
        return let_go

    def test_a_leader_that_dies_in_the_middle_leaves_no_gang_half_placed(self):
        second = Replica(self.cluster, self.folder, "second")
        self.addClassCleanup(second.end)
        send_reviews_to(self.cluster, second, second)
        let_go = self.hold_gates()
        for number in range(4):
            for index in range(10):
                item = pod(f"k{number}", index, 10)
                if index >= 5:
                    item["metadata"]["labels"] |= HELD
                self.ask("POST", f"{SPACE}/pods", item)
            self.sizes[f"k{number}"] = 10

        def half():
            return all(len(nodes) == 5 for nodes in self.look().values())

        wait_until(half, "half of each gang", self.replica.log)
        self.replica.end()
        type(self).replica = second
        let_go()
        self.wait_until_settled()
        self.check_order()
        self.assertTrue(all(len(nodes) == 10 for nodes in self.look().values()), self.look())

    def test_what_is_asked_for_is_allowed(self):
        self.arrive("rights", 4)
        self.wait_until_settled()
        for event in audited(self.audit):
            self.assertNotEqual(event["responseStatus"]["code"], 403, event)


if __name__ == "__main__":
    unittest.main()
