# SPDX-License-Identifier: Apache-2.0
"""With a stolen token of the node agent or the operator, a real API server allows writes to the program's own fields,
and no others. The chart's admission policies enforce this, since RBAC does not know fields."""

import copy
import json
import unittest

from apiserver import AGENT, OPERATOR, Cluster, pod
from helm import CHART, RELEASE
from replica import wait_for_kinds
from topology_test import kind

from control_plane import folder_for, wait_until

VALUES = """
operator: {gangs: {enabled: true}, topology: {enabled: true, publish: true}}
"""
GATE = {"name": "railhead.io/gang"}
READY = {"type": "RailheadRailsReady", "status": "True", "reason": "AllRailsUp"}


def node(name):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}, "annotations": {"note": "a"}},
    }


def feature(name="railhead-mine", at="mine", **changes):
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": name,
            "namespace": "railhead-system",
            "labels": {"nfd.node.kubernetes.io/node-name": at},
            **changes.pop("metadata", {}),
        },
        "spec": {
            "features": {
                "flags": {},
                "instances": {},
                "attributes": {"railhead.node": {"elements": {"rails": "8"}}},
            },
            "labels": {},
            **changes,
        },
    }


def event(component, host, involved, name="told"):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "namespace": "", **involved},
        "type": "Warning",
        "reason": "RailDown",
        "message": "rail 3",
        "source": {"component": component, "host": host},
        "reportingComponent": component,
        "reportingInstance": host,
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:00:00Z",
        "count": 1,
    }


# Writes to the agent's own node that the agent may not make: subresource, merge patch.
NOT_THE_AGENTS = (
    ("", {"metadata": {"labels": {"zone": "b"}}}),
    ("", {"metadata": {"labels": {"new": "b"}}}),
    ("", {"metadata": {"labels": {"zone": None}}}),
    ("", {"metadata": {"labels": {"railhead.io/topology-leaf": "l9"}}}),
    ("", {"metadata": {"annotations": {"note": "b"}}}),
    ("", {"metadata": {"annotations": {"note": None}}}),
    ("", {"metadata": {"finalizers": ["example.com/for-ever"]}}),
    ("", {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1"}]}}),
    ("", {"spec": {"unschedulable": True}}),
    ("", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
    ("", {"spec": {"podCIDR": "10.0.0.0/24"}}),
    ("status", {"status": {"capacity": {"rdma/hca": "64"}}}),
    ("status", {"status": {"allocatable": {"rdma/hca": "64"}}}),
    ("status", {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}),
    ("status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 666}}}}),
    ("status", {"status": {"volumesAttached": [{"name": "v", "devicePath": "/dev/x"}]}}),
    ("status", {"status": {"volumesInUse": ["v"]}}),
    ("status", {"status": {"images": [{"names": ["a"], "sizeBytes": 1}]}}),
    ("status", {"status": {"phase": "Running"}}),
    ("status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
)

# JSON patches of a pod that waits for the operator, which the operator may not make.
NOT_THE_OPERATORS = (
    ("", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ("", [{"op": "add", "path": "/metadata/annotations/other", "value": "b"}]),
    ("", [{"op": "replace", "path": "/metadata/annotations/note", "value": "b"}]),
    ("", [{"op": "add", "path": "/metadata/annotations/railhead.io~1injected", "value": "b"}]),
    ("", [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/for-ever"]}]),
    ("", [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}]),
    ("", [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]),
    ("", [{"op": "add", "path": "/spec/nodeSelector", "value": {"zone": "a"}}]),
    ("", [{"op": "remove", "path": "/spec/schedulingGates/0"}]),
    ("status", [{"op": "add", "path": "/status/podIP", "value": "10.9.9.9"}]),
    ("status", [{"op": "add", "path": "/status/conditions",
                 "value": [{"type": "Ready", "status": "True"}]}]),
)


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(folder_for(cls, "tokens"))
        cls.cluster.start_for(cls)
        crd = kind("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")
        crd["spec"]["scope"] = "Namespaced"
        cls.cluster.kubectl("create", objects=[crd])
        wait_for_kinds(cls.cluster, crd["metadata"]["name"])
        cls.cluster.helm("install", RELEASE, CHART, "--create-namespace", values=VALUES)
        # kubectl reads objects that it patches; the programs do not.
        cls.cluster.kubectl("create", "clusterrole", "reads", "--verb=get",
                            "--resource=nodes,nodes/status,events,pods,pods/status")
        cls.cluster.kubectl("create", "clusterrolebinding", "reads", "--clusterrole=reads",
                            f"--user={AGENT}", f"--user={OPERATOR}")
        for name in ("mine", "other"):
            cls.cluster.kubectl("create", objects=[node(name)])
            status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            cls.cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge",
                                "-p", json.dumps(status))
        cls.wait_for_policies()

    @classmethod
    def wait_for_policies(cls):
        """Waits until the server applies all of them, and knows the rights of both: it does so after a moment."""
        cls.cluster.wait_for_rights()
        cls.cluster.kubectl("create", objects=[pod("probe", limits={"rdma/hca": 1})])
        label = {"metadata": {"labels": {"new": "b"}}}
        agent = [f"--as={AGENT}", "--as-user-extra=authentication.kubernetes.io/node-name=mine"]
        told = event("kubelet", "mine", {"kind": "Node", "name": "mine"})

        def create(user, item):
            return cls.write(user, "create", "--dry-run=server", objects=[item])

        for what, write in (
            ("an agent's nodes", lambda: cls.as_agent("node", "other", label)),
            ("an agent's features", lambda: create(agent, feature("x"))),
            ("an agent's Events", lambda: create(agent, told)),
            ("the operator's nodes", lambda: cls.as_operator("node", "other", label)),
            ("the operator's pods", lambda: cls.as_operator("pod", "probe", label)),
            ("the operator's Events", lambda: create([f"--as={OPERATOR}"], told)),
        ):
            wait_until(lambda write=write: "ValidatingAdmissionPolicy" in write(), f"the policy of {what}")
        cls.cluster.kubectl("delete", "pod", "probe", "--now")

    @classmethod
    def write(cls, user, *arguments, objects=None):
        """Returns the server's error."""
        done = cls.cluster.kubectl(*arguments, *user, objects=objects, check=False)
        return done.stderr.strip() if done.returncode else ""

    @classmethod
    def as_agent(cls, what, name, patch, subresource="", at="mine", dry=True):
        return cls.write(
            [f"--as={AGENT}", f"--as-user-extra=authentication.kubernetes.io/node-name={at}"],
            "patch", what, name, "--type=merge", "-p", json.dumps(patch),
            *([f"--subresource={subresource}"] if subresource else []),
            *(["--dry-run=server"] if dry else []))

    @classmethod
    def as_operator(cls, what, name, patch, subresource="", dry=True):
        return cls.write(
            [f"--as={OPERATOR}"],
            "patch", what, name, "--type=" + ("json" if isinstance(patch, list) else "merge"),
            "-p", json.dumps(patch), *([f"--subresource={subresource}"] if subresource else []),
            *(["--dry-run=server"] if dry else []))

    def refused(self, text):
        self.assertIn("ValidatingAdmissionPolicy", text)

    def test_policies_have_no_mistakes_of_type(self):
        for policy in self.cluster.get("validatingadmissionpolicies")["items"]:
            if policy["metadata"]["name"].startswith("railhead-system-"):
                self.assertNotIn(
                    "expressionWarnings", policy.get("status", {}).get("typeChecking", {}), policy)

    def test_an_agent_writes_its_own_and_nothing_else_of_its_node(self):
        own = {"metadata": {"labels": {"railhead.io/rails": "8"},
                            "annotations": {"railhead.io/node-facts": "{}"}}}
        self.assertEqual(self.as_agent("node", "mine", own), "")
        both = {"status": {"conditions": [{"type": "Ready", "status": "True"}, READY]}}
        self.assertEqual(self.as_agent("node", "mine", both, "status"), "")
        self.refused(self.as_agent("node", "other", own))
        self.refused(self.as_agent("node", "mine", own, at="other"))
        for subresource, patch in NOT_THE_AGENTS:
            with self.subTest(patch):
                self.refused(self.as_agent("node", "mine", patch, subresource))

    def test_an_agent_writes_one_feature(self):
        def tell(wanted, at="mine"):
            return self.write(
                [f"--as={AGENT}", f"--as-user-extra=authentication.kubernetes.io/node-name={at}"],
                "create", "--dry-run=server", objects=[wanted])

        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "railhead-device-plugin",
                 "uid": "1"}
        self.assertEqual(tell(feature()), "")
        self.assertEqual(tell(feature(metadata={"ownerReferences": [owner]})), "")
        for wrong in (
            feature("railhead-other"),
            feature("railhead-other", "other"),
            feature(at="other"),
            feature("x"),
            feature(labels={"example.com/gpu": "8"}),
            feature(features={"attributes": {"pci.device": {"elements": {}}}}),
            feature(features={"flags": {"a": {"elements": {}}}}),
            feature(metadata={"finalizers": ["example.com/x"]}),
            feature(metadata={"annotations": {"a": "b"}}),
            feature(metadata={"ownerReferences": [{**owner, "name": "other"}]}),
        ):
            with self.subTest(wrong):
                self.refused(tell(wrong))

    def test_both_tell_events_in_their_own_name(self):
        agent = [f"--as={AGENT}", "--as-user-extra=authentication.kubernetes.io/node-name=mine"]
        operator = [f"--as={OPERATOR}"]
        mine, other = {"kind": "Node", "name": "mine"}, {"kind": "Node", "name": "other"}
        some_pod = {"kind": "Pod", "name": "p", "namespace": "default"}
        plugin, us = "railhead-device-plugin", "railhead-operator"

        def tell(user, told):
            return self.write(user, "create", "--dry-run=server", objects=[told])

        self.assertEqual(tell(agent, event(plugin, "mine", mine)), "")
        self.assertEqual(tell(agent, event(plugin, "mine", some_pod)), "")
        self.refused(tell(agent, event(plugin, "other", mine)))
        self.refused(tell(agent, event(plugin, "mine", other)))
        self.refused(tell(agent, event("kubelet", "mine", mine)))
        self.refused(tell(agent, event(us, "mine", mine)))
        self.assertEqual(tell(operator, event(us, "replica", some_pod)), "")
        self.refused(tell(operator, event("kubelet", "mine", some_pod)))
        # A change of the count does not change the message.
        self.cluster.kubectl("create", objects=[event(plugin, "mine", mine)])
        again = {"count": 2, "lastTimestamp": "2027-01-15T09:00:00Z"}
        self.assertEqual(self.as_agent("event", "told", again), "")
        self.refused(self.as_agent("event", "told", {"message": "no"}))
        self.refused(self.as_operator("event", "told", again))

    def test_the_operator_changes_pods_that_wait_for_it_and_nothing_else_of_them(self):
        waits = pod("waits", limits={"rdma/hca": 1})
        waits["metadata"]["annotations"] = {"note": "a"}
        waits["spec"]["schedulingGates"] = [{"name": "example.com/other"}, GATE]
        waits["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
        runs = copy.deepcopy(waits)
        runs["metadata"]["name"] = "runs"
        runs["spec"]["schedulingGates"] = []
        self.cluster.kubectl("create", objects=[waits, runs])
        release = [
            {"op": "remove", "path": "/spec/schedulingGates/1"},
            {"op": "add", "path": "/metadata/annotations/railhead.io~1rank", "value": "0"},
            {"op": "add", "path": "/metadata/annotations/railhead.io~1placement", "value": "x"},
            {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": "n"}},
        ]
        self.assertEqual(self.as_operator("pod", "waits", release), "")
        fail = [{"op": "add", "path": "/status/phase", "value": "Failed"},
                {"op": "add", "path": "/status/reason", "value": "GangTimedOut"}]
        self.assertEqual(self.as_operator("pod", "waits", fail, "status"), "")
        self.refused(self.as_operator("pod", "runs", release[1:3]))
        self.refused(self.as_operator("pod", "runs", fail, "status"))
        for subresource, patch in NOT_THE_OPERATORS:
            with self.subTest(patch):
                self.refused(self.as_operator("pod", "waits", patch, subresource))

    def test_only_the_operator_places_pods(self):
        """The operator keeps room on a node for placed pods, so a tenant's claim would block that node."""
        note = "railhead.io/placement"
        gated = pod("gated", limits={"rdma/hca": 1})
        gated["spec"]["schedulingGates"] = [GATE]
        placed = copy.deepcopy(gated)
        placed["metadata"]["name"] = "placed"
        other = copy.deepcopy(gated)
        other["metadata"]["name"] = "other"
        other["spec"]["schedulingGates"] = [{"name": "example.com/mine"}]
        self.cluster.kubectl("create", objects=[gated, placed, other])
        free = {"op": "remove", "path": "/spec/schedulingGates/0"}

        def noted(value, op="add"):
            return {"op": op, "path": "/metadata/annotations",
                    **({} if value is None else {"value": {note: value}})}

        def as_tenant(name, patch, subresource=""):
            return self.write(
                [], "patch", "pod", name, "--type=json", "-p", json.dumps(patch), "--dry-run=server",
                *([f"--subresource={subresource}"] if subresource else []))

        def created(gates, value="x"):
            item = pod("new", limits={"rdma/hca": 1})
            item["metadata"]["annotations"] = {note: value}
            item["spec"]["schedulingGates"] = gates
            return self.write([], "create", "--dry-run=server", objects=[item])

        wait_until(lambda: created([]), "the policy")
        # As the operator does it.
        release = [free, {"op": "add", "path": "/metadata/annotations", "value": {note: "one"}}]
        self.assertEqual(self.as_operator("pod", "placed", release, dry=False), "")
        for refusal in (
            created([]),
            created([], ""),
            created([{"name": "example.com/mine"}]),
            as_tenant("gated", [free, noted("one")]),
            as_tenant("other", [noted("one")]),
            as_tenant("other", [noted("one")], "status"),
            as_tenant("placed", [noted("two")]),
        ):
            self.refused(refusal)
            self.assertIn("only Railhead's operator places pods", refusal)
        for admitted in (
            created([GATE]),  # a copy of a placed pod, which the webhook has given the gate
            as_tenant("gated", [noted("one")]),
            as_tenant("gated", [free]),
            as_tenant("placed", [{"op": "add", "path": "/metadata/labels", "value": {"mine": "a"}}]),
            as_tenant("placed", [noted(None, "remove")]),
            as_tenant("placed", [{"op": "add", "path": "/status/message", "value": "a"}], "status"),
        ):
            self.assertEqual(admitted, "")
        # What a tenant has written beside the gate is not a release when the gate goes.
        self.write([], "patch", "pod", "gated", "--type=json", "-p", json.dumps([noted("one")]))
        self.refused(as_tenant("gated", [free]))

    def test_the_operator_tells_pods_that_wait_for_a_rank_that_and_nothing_else(self):
        waits = pod("unranked", limits={"rdma/hca": 1})
        waits["metadata"]["annotations"] = {"note": "a", "railhead.io/rank": ""}
        waits["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
        ranked = copy.deepcopy(waits)
        ranked["metadata"] |= {"name": "ranked", "annotations": {"railhead.io/rank": "0"}}
        self.cluster.kubectl("create", objects=[waits, ranked])
        told = [
            {"op": "replace", "path": "/metadata/annotations/railhead.io~1rank", "value": "3"},
            {"op": "add", "path": "/metadata/annotations/railhead.io~1master-addr", "value": "a.b"},
        ]
        fails = {"op": "add", "path": "/status/phase", "value": "Failed"}
        self.refused(self.as_operator("pod", "unranked", [fails], "status"))
        for subresource, patch in NOT_THE_OPERATORS:
            # The API server rejects the other patches for all users.
            if patch[0]["path"] not in ("/spec/schedulingGates/0", "/spec/nodeSelector"):
                with self.subTest(patch):
                    self.refused(self.as_operator("pod", "unranked", patch, subresource))
        self.assertEqual(self.as_operator("pod", "unranked", told), "")
        self.refused(self.as_operator("pod", "ranked", told))

    def test_the_operator_changes_its_own_labels_of_nodes(self):
        def label(key, value):
            return {"metadata": {"labels": {key: value}}}

        self.assertEqual(self.as_operator("node", "mine", label("railhead.io/topology-leaf", "l")), "")
        for patch in (
            label("zone", "b"),
            label("railhead.io/rails", "9"),
            {"metadata": {"annotations": {"railhead.io/node-facts": "{}"}}},
            {"metadata": {"finalizers": ["example.com/x"]}},
            {"spec": {"unschedulable": True}},
            {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
        ):
            with self.subTest(patch):
                self.refused(self.as_operator("node", "mine", patch))


if __name__ == "__main__":
    unittest.main()
