# SPDX-License-Identifier: Apache-2.0
"""The operator with the rights that the chart gives it for operator.namespaces, at a real API server. It serves these
namespaces, sees nothing of others, uses each of its rights, makes no request that it lacks the right for, and
continues when one of its namespaces is deleted."""

import json
import unittest

from apiserver import OPERATOR
from helm import NAMESPACE
from replica import NAME, Replica, install, send_reviews_to
from rights_test import start_audited, used

from control_plane import audited, wait_until

SERVED = ("team-a", "team-b")
OTHER = "team-c"
GOES = "team-d"  # served until it is deleted
JOBS = {("", "pods", "list"), ("", "pods", "watch"), ("", "events", "create"),
        ("railhead.io", "railreports", "list"), ("railhead.io", "railreports", "patch"),
        ("railhead.io", "railreports/status", "patch")}


def misspelt(space):
    """Returns a pod that fits no node."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wrong", "namespace": space},
            "spec": {"containers": [{"name": "main", "image": "x",
                                     "resources": {"limits": {"rdma/hcas": "8"}}}]}}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": "0/1 nodes are available: 1 Insufficient rdma/hcas."}


class Namespaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_audited(cls, "namespaces", OPERATOR)
        for space in (*SERVED, OTHER, GOES):
            cls.cluster.kubectl("create", "namespace", space)
        # A node that offers the correct name, so that the misspelt one is diagnosed.
        cls.cluster.kubectl("create", objects=[{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}])
        status = json.dumps({"status": {"capacity": {"rdma/hca": "8"}, "allocatable": {"rdma/hca": "8"}}})
        cls.cluster.kubectl("patch", "node", "n0", "--subresource=status", "--type=merge", "--patch", status)
        install(cls.cluster, "--set=operator.namespaces={%s}" % ",".join((*SERVED, GOES)))
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(lambda: cls.replica.end())
        send_reviews_to(cls.cluster, cls.replica, cls.replica, SERVED[0])
        wait_until(cls.replica.leads, "the leader", cls.replica.log)

    def make_wrong(self, space):
        """Returns the environment that its container got."""
        self.cluster.kubectl("create", objects=[misspelt(space)])
        self.cluster.kubectl("patch", "pod", "wrong", "-n", space, "--subresource=status", "--type=merge", "--patch",
                             json.dumps({"status": {"conditions": [UNSCHEDULABLE]}}))
        container = self.cluster.get("pod", "wrong", "-n", space)["spec"]["containers"][0]
        return {variable["name"] for variable in container.get("env", [])}

    def reported(self, *where):
        """Returns the namespaces with a report, and those with an Event of the operator."""
        reports = self.cluster.get("railreports", *where)["items"]
        events = [item for item in self.cluster.get("events", *where)["items"]
                  if item.get("reportingComponent") == NAME]
        return ({item["metadata"]["namespace"] for item in reports},
                {item["metadata"]["namespace"] for item in events})

    def refused(self):
        return used(self.audit, OPERATOR)[1]

    def test_it_serves_its_namespaces_and_has_no_right_to_others(self):
        for space in SERVED:
            self.assertIn("NCCL_DEBUG", self.make_wrong(space))
        self.assertEqual(self.make_wrong(OTHER), set())
        wait_until(lambda: self.reported("-A") == (set(SERVED), set(SERVED)), "reports and Events", self.replica.log)
        # Every right to namespaced objects is in a Role, none in a ClusterRole.
        roles = [role for role in self.cluster.get("roles", "-A")["items"]
                 if role["metadata"]["name"] == f"{NAMESPACE}-{NAME}"]
        self.assertEqual({role["metadata"]["namespace"] for role in roles}, {*SERVED, GOES})
        rules = self.cluster.get("clusterrole", f"{NAMESPACE}-{NAME}")["rules"]
        everywhere = {resource for rule in rules for resource in rule["resources"]}
        self.assertFalse(everywhere & {"pods", "events", "railreports", "railreports/status"}, everywhere)
        # The audit log follows the objects.
        wait_until(lambda: JOBS <= {right[1:] for right in used(self.audit, OPERATOR)[0]}, f"all of {JOBS}", self.audit)
        self.assertEqual(self.refused(), [])
        asked = [event["objectRef"] for event in audited(self.audit) if "objectRef" in event]
        where = {what.get("namespace") for what in asked if what.get("resource") in ("pods", "railreports", "events")}
        self.assertEqual(where, {*SERVED, GOES} | ({NAMESPACE} & where))

        # The operator loses the right to a namespace: a new replica then serves the others.
        self.cluster.kubectl("delete", "rolebinding", f"{NAMESPACE}-{NAME}", "-n", GOES)
        wait_until(lambda: not self.cluster.api.may(OPERATOR, "list", "pods", GOES), "the end of the right")
        self.cluster.kubectl("delete", "pod", "wrong", "-n", "team-b", "--force")
        self.cluster.kubectl("delete", "railreports", "--all", "-n", "team-b")
        self.replica.end()
        type(self).replica = Replica(self.cluster, self.folder, "second")
        send_reviews_to(self.cluster, self.replica, self.replica, SERVED[0])
        wait_until(self.replica.leads, "the next leader", self.replica.log)
        self.assertIn("NCCL_DEBUG", self.make_wrong("team-b"))
        wait_until(lambda: self.reported("-n", "team-b")[0], "the report of the next leader", self.replica.log)
        lists = {("", "pods", "list"), ("railhead.io", "railreports", "list")}
        wait_until(lambda: {right[1:] for right in self.refused()} >= lists, "the refused lists", self.replica.log)
        self.assertEqual({right[1:] for right in self.refused()}, lists)
        wait_until(lambda: "watching pods" in self.replica.log.read_text(), "its log", self.replica.log)


if __name__ == "__main__":
    unittest.main()
