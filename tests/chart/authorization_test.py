# SPDX-License-Identifier: Apache-2.0
"""What a real API server lets the operator and the agents do with the chart's roles and policies, and what not."""

import unittest

from apiserver import AGENT, CONFIGURATION, OPERATOR
from chart_scene import ChartScene
from helm import NAMESPACE

from control_plane import wait_until


class Authorization(ChartScene):
    def test_the_operator_may_do_what_it_must_and_no_more(self):
        self.install()

        def may(verb, what, space=NAMESPACE):
            return self.cluster.api.may(OPERATOR, verb, what, space)

        secret, hook = (
            "secrets/railhead-operator-ca",
            f"mutatingwebhookconfigurations/{CONFIGURATION}",
        )
        for verb in ("get", "patch"):
            self.assertTrue(may(verb, secret))
            self.assertTrue(may(verb, hook))
            self.assertFalse(may(verb, secret, "default"))
            self.assertFalse(may(verb, "secrets/another"))
            self.assertFalse(may(verb, "mutatingwebhookconfigurations/another"))
            self.assertFalse(may(verb, f"validatingwebhookconfigurations/{CONFIGURATION}"))
        for verb in ("list", "watch", "create", "delete", "update", "deletecollection"):
            self.assertFalse(may(verb, secret))
            self.assertFalse(may(verb, hook))
        for what in ("pods", "nodes", "jobs.batch", "configmaps", "serviceaccounts/token"):
            self.assertFalse(may("get", what))
            self.assertFalse(may("create", what))
        for what in ("railprofiles", "namespaces", "nodes"):
            self.assertTrue(may("list", what) and may("watch", what))
            for verb in ("get", "create", "delete", "update", "patch"):
                self.assertFalse(may(verb, what))
        granted = {
            "events": ("create",),
            "pods": ("list", "watch"),
            "railreports.railhead.io": ("create", "list", "patch"),
        }
        for what, verbs in granted.items():
            for verb in ("create", "get", "list", "watch", "delete", "update", "patch"):
                self.assertIs(may(verb, what), verb in verbs, (verb, what))
        rights = self.cluster.kubectl(
            "auth", "can-i", "--list", "--as", AGENT, "--no-headers"
        ).stdout
        self.assertNotIn("secrets", rights)
        pods = [line.split("[")[-1] for line in rights.splitlines() if line.startswith("pods")]
        self.assertEqual(pods, ["get]"])

    def test_an_agent_may_tell_of_its_own_node_and_of_no_other(self):
        self.install()
        for name in ("mine", "other"):
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"zone": "a"}, "annotations": {"note": "a"}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            self.cluster.kubectl("create", objects=[node])
            self.cluster.kubectl(
                "apply", "--server-side", "--subresource=status", objects=[node]
            )
            self.addCleanup(self.cluster.kubectl, "delete", "node", name)

        def tell(name="mine", at="mine", subresource=None, **content):
            """Applies as the agent of node `at` does; returns the server's error."""
            metadata = {"name": name, **content.pop("metadata", {})}
            done = self.cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=railhead-device-plugin",
                f"--as={AGENT}",
                *([f"--as-user-extra=authentication.kubernetes.io/node-name={at}"] if at else []),
                *([f"--subresource={subresource}"] if subresource else []),
                objects=[{"apiVersion": "v1", "kind": "Node", "metadata": metadata, **content}],
                check=False,
            )
            return done.stderr.strip() if done.returncode else ""

        facts = {
            "labels": {"railhead.io/rails": "8"},
            "annotations": {"railhead.io/node-facts": "{}"},
        }
        ready = {"type": "RailheadRailsReady", "status": "True", "reason": "AllRailsUp"}
        # The server applies a new policy after a moment.
        wait_until(lambda: "its own node" in tell("other", metadata=facts), "the policy")
        self.assertEqual(tell(metadata=facts), "")
        self.assertEqual(tell(subresource="status", status={"conditions": [ready]}), "")
        self.assertIn("its own node", tell(at=None, metadata=facts))
        self.assertIn(
            "its own node", tell("other", subresource="status", status={"conditions": [ready]})
        )
        for why, content in (
            ("labels with the prefix railhead.io/", {"metadata": {"labels": {"zone": "b"}}}),
            ("labels with the prefix railhead.io/", {"metadata": {"labels": {"new": "b"}}}),
            ("annotations with the prefix railhead.io/", {"metadata": {"annotations": {"note": "b"}}}),
            ("the spec", {"spec": {"unschedulable": True}}),
            (
                "conditions whose type starts with Railhead",
                {
                    "subresource": "status",
                    "status": {"conditions": [{"type": "Ready", "status": "False"}]},
                },
            ),
            (
                "only the conditions in the status",
                {"subresource": "status", "status": {"capacity": {"rdma/hca": "64"}}},
            ),
        ):
            with self.subTest(why):
                self.assertIn(why, tell(**content))
        node = self.cluster.get("node", "mine")
        self.assertEqual(node["metadata"]["labels"], {"zone": "a", "railhead.io/rails": "8"})
        # An agent withdraws a report by applying nothing.
        self.assertEqual(tell(), "")
        self.assertEqual(tell(subresource="status"), "")
        node = self.cluster.get("node", "mine")
        self.assertEqual(node["metadata"]["labels"], {"zone": "a"})
        self.assertNotIn("railhead.io/node-facts", node["metadata"]["annotations"])
        self.assertEqual([c["type"] for c in node["status"]["conditions"]], ["Ready"])
        # Other writers are not affected.
        self.cluster.kubectl("label", "node", "other", "zone=b", "--overwrite")


if __name__ == "__main__":
    unittest.main()
