# SPDX-License-Identifier: Apache-2.0
"""The FabricTopology and the objects published from it, with the chart's operator at a real API server: on nodes that
exist in the API only, and with kinds of other schedulers that only store what they get."""

import contextlib
import json
import subprocess
import time
import unittest

import yaml

from apiserver import Cluster
from helm import NAMESPACE, rights
from profiles_test import AUDIT_POLICY, profile
from replica import NAME, Replica, install, send_reviews_to, wait_for_kinds

from control_plane import COMMAND, audited, folder_for, wait_until

LEAVES, NODES = 4, 2  # leaves of two spines; nodes of a leaf
PREFIX = "railhead.io/topology-"
FACTS = {
    "version": 1,
    "gpus": [],
    "rails": [
        {"rail": rail, "device": f"mlx5_{rail}", "usable": True, "reason": ""}
        for rail in range(8)
    ],
}


def kind(group, version, plural, name):
    """Returns a kind of another project that accepts any content."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Names below k8s.io are protected.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": plural,
                "singular": name.lower(),
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


class Topology(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "topology")
        policy = cls.folder / "audit.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        cls.audit = cls.folder / "audit.log"
        cls.cluster = Cluster(
            cls.folder, f"--audit-policy-file={policy}", f"--audit-log-path={cls.audit}"
        )
        cls.cluster.start_for(cls)
        install(
            cls.cluster,
            "--set=operator.topology.enabled=true",
            "--set=operator.topology.publish=true",
            "--set=operator.verdicts.enabled=false",
        )
        cls.cluster.kubectl(
            "create",
            objects=[
                kind("kueue.x-k8s.io", "v1beta2", "topologies", "Topology"),
                kind("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode"),
            ],
        )
        for name in (
            "topologies.kueue.x-k8s.io",
            "hypernodes.topology.volcano.sh",
            "fabrictopologies.railhead.io",
        ):
            wait_for_kinds(cls.cluster, name)
        for number in range(LEAVES * NODES):
            cls.make_node(number)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        send_reviews_to(cls.cluster, cls.replica, cls.replica)

    @classmethod
    def make_node(cls, number):
        name, leaf = f"n{number}", number // NODES
        labels = {
            "kubernetes.io/hostname": name,
            "topology.railhead.io/spine": f"s{leaf // 2}",
            "topology.railhead.io/leaf": f"l{leaf}",
        }
        annotations = {"railhead.io/node-facts": json.dumps(FACTS)}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        cls.cluster.kubectl(
            "create", objects=[{"apiVersion": "v1", "kind": "Node", "metadata": metadata}]
        )
        cls.status_of(name, {"allocatable": {"nvidia.com/gpu": "8", "rdma/hca": "8"}})

    @classmethod
    def status_of(cls, node, status):
        patch = json.dumps({"status": status})
        cls.cluster.kubectl(
            "patch", "node", node, "--subresource=status", "--type=merge", "--patch", patch
        )

    def status(self):
        found = self.cluster.get("fabrictopologies")["items"]
        return found[0].get("status", {}) if found else {}

    def condition(self, name):
        for condition in self.status().get("conditions", []):
            if condition["type"] == name:
                return condition["status"], condition["reason"]
        return "", ""

    def places(self, node):
        labels = self.cluster.get("node", node)["metadata"]["labels"]
        return {
            key.removeprefix(PREFIX): value
            for key, value in labels.items()
            if key.startswith(PREFIX)
        }

    def names(self, kinds):
        return {item["metadata"]["name"] for item in self.cluster.get(kinds)["items"]}

    def wait(self, condition, what):
        wait_until(condition, what, self.replica.log)

    @staticmethod
    def settled(count):
        """Returns the count when it has not changed for some seconds: the audit log follows the objects."""
        seen = []

        def still():
            seen.append(count())
            time.sleep(1)
            return len(seen) > 5 and len(set(seen[-5:])) == 1

        wait_until(still, "the end of the requests")
        return seen[-1]

    def wait_until_published(self, nodes):
        self.wait(
            lambda: self.status().get("counts", {}).get("nodes") == nodes
            and self.condition("Published") == ("True", "UpToDate"),
            f"{nodes} nodes that are published",
        )

    def requests(self):
        """Returns the operator's requests: (verb, resource, name, "allow" or "forbid"). An apply to a missing object
        needs the right to create it."""
        for event in audited(self.audit):
            what = event.get("objectRef", {})
            resource = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
            decision = event["annotations"]["authorization.k8s.io/decision"]
            yield event["verb"], resource, what.get("name", ""), decision
            if event["verb"] == "patch" and event["responseStatus"]["code"] == 201:
                yield "create", resource, "", decision

    def apply(self, item, *arguments):
        """Applies as kubectl does; returns the whole response."""
        return subprocess.run(
            ["kubectl", f"--kubeconfig={self.cluster.kubeconfig}", "apply", "--server-side",
             *arguments, "-f", "-"],
            input=json.dumps(item), text=True, check=False, capture_output=True, timeout=COMMAND,
        )

    def refuse(self, words, spec, name):
        item = {
            "apiVersion": "railhead.io/v1alpha1",
            "kind": "FabricTopology",
            "metadata": {"name": name},
            "spec": spec,
        }
        done = self.apply(item, "--dry-run=server", "--force-conflicts")
        self.assertNotEqual(done.returncode, 0, f"{spec} was accepted")
        self.assertIn(words, done.stderr)

    def test_1_the_fabric_is_told_and_published(self):
        self.wait_until_published(LEAVES * NODES)
        status = self.status()
        self.assertEqual(self.condition("Discovered"), ("True", "Labels"))
        self.assertEqual(self.condition("Consistent"), ("True", "NoConflict"))
        self.assertEqual(
            status["levels"], [{"name": "spine", "domains": 2}, {"name": "leaf", "domains": LEAVES}]
        )
        self.assertEqual(status["counts"]["aliveRails"], LEAVES * NODES * 8)
        self.assertEqual(status["leaves"][3]["path"], ["s1"])
        self.assertEqual(
            self.places("n7"), {"spine": "s00001", "leaf": "l00003", "node": "n00007"}
        )
        levels = self.cluster.get("topologies.kueue.x-k8s.io", "cluster")["spec"]["levels"]
        self.assertEqual(
            [level["nodeLabel"] for level in levels],
            [PREFIX + "spine", PREFIX + "leaf", PREFIX + "node", "kubernetes.io/hostname"],
        )
        self.assertEqual(
            self.names("hypernodes"),
            {f"leaf-l{leaf}" for leaf in range(LEAVES)} | {"spine-s0", "spine-s1"},
        )

    def test_2_who_loses_its_place_loses_its_labels_and_empty_leaves_go(self):
        self.wait_until_published(LEAVES * NODES)
        leaf = "topology.railhead.io/leaf"
        self.cluster.kubectl("label", "node", "n7", f"{leaf}-")
        self.wait(lambda: self.places("n7") == {}, "a node without labels")
        self.wait(lambda: self.condition("Consistent")[0] == "False", "a conflict")
        conflicts = [conflict["message"] for conflict in self.status()["conflicts"]]
        self.assertTrue(any("n7" in message for message in conflicts), conflicts)
        self.cluster.kubectl("delete", "node", "n6")
        self.wait(lambda: "leaf-l3" not in self.names("hypernodes"), "one HyperNode less")
        self.assertIn("leaf-l2", self.names("hypernodes"))
        self.make_node(6)
        self.cluster.kubectl("label", "node", "n7", f"{leaf}=l3")
        self.wait_until_published(LEAVES * NODES)
        self.wait(lambda: self.places("n6").get("leaf") == "l00003", "its labels")
        self.wait(lambda: self.condition("Consistent") == ("True", "NoConflict"), "the end of the conflict")

    def test_3_nothing_is_written_where_nothing_has_changed(self):
        self.wait_until_published(LEAVES * NODES)

        def writes():
            return sum(
                verb in ("patch", "delete")
                and resource in ("fabrictopologies/status", "nodes", "topologies", "hypernodes")
                for verb, resource, _, _ in self.requests()
            )

        def changes():
            """Changes nodes; returns the number of writes."""
            before = self.settled(writes)
            for beat in range(3):
                ready = {"type": "Ready", "status": "True", "reason": f"beat{beat}", "message": ""}
                self.status_of("n0", {"conditions": [ready]})
            self.cluster.kubectl("cordon", "n1")
            self.wait(lambda: self.status()["counts"]["unschedulable"] == 1, "a cordoned node")
            after = self.settled(writes)
            self.cluster.kubectl("uncordon", "n1")
            self.wait(lambda: self.status()["counts"]["unschedulable"] == 0, "no cordoned node")
            return after - before

        def terms():
            return self.replica.log.read_text().count("this replica is the leader")

        for _ in range(5):
            begun = terms()
            found = changes()
            # Who begins to lead applies all objects once. On a busy machine a lease may be lost.
            if terms() == begun:
                break
        self.assertEqual(found, 1, "the status, once")

    def test_4_labels_make_no_node(self):
        """The operator's requests for a node that has been deleted, or replaced by another one of the same name."""
        for name in ("gone", "n0"):
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "uid": "of-another", "labels": {PREFIX + "leaf": "x"}},
            }
            done = self.apply(node, "--field-manager=railhead-topology", "--force-conflicts")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("uid", done.stderr.lower())
        self.assertNotIn("gone", self.names("nodes"))

    def test_5_a_model_that_people_give_counts(self):
        self.wait_until_published(LEAVES * NODES)
        nodes = [{"name": f"n{number}", "gpus": 8, "hcas": 8} for number in range(NODES)]
        model = {
            "topology": "rail-optimized",
            "levels": ["spine", "leaf"],
            "rails": 8,
            "domains": [{"name": "s7", "domains": [{"name": "l7", "nodes": nodes}]}],
        }
        change = ("patch", "ft", "cluster", "--type=merge", "--patch")
        self.cluster.kubectl(*change, json.dumps({"spec": {"model": model}}))
        self.addCleanup(self.wait_until_published, LEAVES * NODES)
        self.addCleanup(self.cluster.kubectl, *change, json.dumps({"spec": {"model": None}}))
        self.wait(lambda: self.condition("Discovered") == ("True", "Given"), "the model")
        self.wait(lambda: self.places("n1").get("spine") == "s00007", "its labels")
        self.wait(lambda: self.places("n2") == {}, "others without labels")
        self.assertIn("not in spec.model", self.status()["conflicts"][0]["message"])
        # Its domains are not a model: the schema cannot detect that, but the operator does.
        broken = model | {"domains": [{"name": "s7", "domains": [{"name": "l7"}]}]}
        self.cluster.kubectl(*change, json.dumps({"spec": {"model": broken}}))
        self.wait(
            lambda: self.condition("Discovered") == ("False", "InvalidModel"), "the refusal"
        )
        self.assertEqual(self.places("n1")["spine"], "s00007")

    def test_6_what_is_no_topology_is_refused(self):
        good = {
            "topology": "fat-tree", "levels": ["leaf"], "rails": 1, "domains": [{"name": "l0"}],
        }
        self.refuse("metadata.name must be cluster", {"model": good}, "other")
        self.refuse("metadata.name must be cluster", {"model": good}, "clusters")
        part = {
            "apiVersion": "railhead.io/v1alpha1",
            "kind": "FabricTopology",
            "metadata": {"name": "cluster-2"},
            "spec": {"model": good},
        }
        done = self.apply(part, "--dry-run=server")
        self.assertEqual(done.returncode, 0, done.stderr)
        link = {"a": "x", "b": "y", "gbps": 1}
        for words, change in {
            "must not contain the level node": {"levels": ["node"]},
            "is allowed only if topology is dragonfly": {"globalLinks": [link]},
            "each key must be node or one of levels": {"linkGbps": {"spine": 400}},
            "must connect two different groups": {
                "topology": "dragonfly", "globalLinks": [link | {"b": "x"}],
            },
            "spec.model.levels": {"levels": ["leaf", "leaf"]},
            "spec.model.domains": {"domains": [{"name": "a"}, {"name": "a"}]},
            "spec.model.rails": {"rails": 65},
            "spec.model.topology": {"topology": "torus"},
        }.items():
            with self.subTest(words):
                self.refuse(words, {"model": good | change}, "cluster")

    def test_7_the_rights_that_it_has_are_the_rights_that_it_uses(self):
        self.wait_until_published(LEAVES * NODES)
        selector = {"matchLabels": {"test": "none"}}
        self.cluster.kubectl(
            "create", objects=[profile("rights", {"fabric": "RoCE", "namespaceSelector": selector})]
        )
        self.wait(
            lambda: self.cluster.get("rp", "rights").get("status", {}).get("conditions"),
            "the profile's status",
        )
        # The chart installs the Lease, and the operator creates one if it is gone.
        self.cluster.kubectl("delete", "lease", NAME, "-n", NAMESPACE)
        objects = {}
        for kinds in ("role", "rolebinding", "clusterrole", "clusterrolebinding"):
            for item in self.cluster.get(kinds, "-A")["items"]:
                objects[item["kind"], item["metadata"]["name"]] = item
        granted = {
            (verb, what, name) for account, verb, what, name in rights(objects) if account == NAME
        }

        def used():
            found = set()
            for verb, what, name, decision in self.requests():
                self.assertEqual(decision, "allow", (verb, what, name))
                found |= {(verb, what, name), (verb, what, "")} & granted
            return found

        with contextlib.suppress(AssertionError):  # the difference says more
            self.wait(lambda: used() == granted, "every right")
        self.assertEqual(used(), granted)


if __name__ == "__main__":
    unittest.main()
