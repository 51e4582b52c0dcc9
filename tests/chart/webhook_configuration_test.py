# SPDX-License-Identifier: Apache-2.0
"""The webhook configuration that the chart renders, and the operator behind it."""

import unittest

from helm import NAMESPACE, render


class Webhook(unittest.TestCase):
    """The MutatingWebhookConfiguration."""

    def test_it_never_stands_in_the_way(self):
        webhooks = render()["MutatingWebhookConfiguration", f"{NAMESPACE}-railhead-operator"][
            "webhooks"
        ]
        self.assertEqual(
            [hook["name"] for hook in webhooks], ["pods.railhead.io", "jobs.railhead.io"]
        )
        for hook in webhooks:
            self.assertEqual(hook["failurePolicy"], "Ignore")
            self.assertEqual(hook["sideEffects"], "None")
            pods = hook["name"] == "pods.railhead.io"
            self.assertEqual(
                hook["rules"][0]["operations"], ["CREATE"] if pods else ["CREATE", "UPDATE"]
            )
            self.assertLessEqual(
                {"kube-system", NAMESPACE},
                set(hook["namespaceSelector"]["matchExpressions"][0]["values"]),
            )
            self.assertEqual(
                [condition["name"] for condition in hook["matchConditions"]],
                ["asks-for-rdma"] if pods else ["asks-for-rdma", "size-changes"],
            )
            # The operator writes the bundle; a value here would delete it at every upgrade.
            self.assertNotIn("caBundle", hook["clientConfig"])

    def test_the_operator_is_told_its_own_names(self):
        objects = render()
        container = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"][
            "containers"
        ][0]
        flags = dict(flag.split("=", 1) for flag in container["args"])
        self.assertEqual(
            set(flags),
            {"--config", "--log-level", "--service", "--ca-secret", "--lease", "--webhook-configuration"},
        )
        self.assertIn(("Service", flags["--service"]), objects)
        self.assertIn(("Secret", flags["--ca-secret"]), objects)
        self.assertIn(("Lease", flags["--lease"]), objects)
        self.assertIn(("MutatingWebhookConfiguration", flags["--webhook-configuration"]), objects)
        config = objects["ConfigMap", "railhead-operator"]["data"]
        self.assertEqual([f"/etc/railhead/{name}" for name in config], [flags["--config"]])
        self.assertEqual(container["volumeMounts"][0]["mountPath"], "/etc/railhead")

    def test_its_service_is_there_and_finds_the_operator(self):
        objects = render()
        for hook in objects["MutatingWebhookConfiguration", f"{NAMESPACE}-railhead-operator"][
            "webhooks"
        ]:
            target = hook["clientConfig"]["service"]
            service = objects["Service", target["name"]]
            self.assertEqual(service["metadata"]["namespace"], target["namespace"])
            self.assertEqual(service["spec"]["ports"][0]["port"], target["port"])
            pod = objects["Deployment", "railhead-operator"]["spec"]["template"]
            self.assertLessEqual(
                service["spec"]["selector"].items(), pod["metadata"]["labels"].items()
            )
            ports = {
                port["name"]: port["containerPort"]
                for port in pod["spec"]["containers"][0]["ports"]
            }
            self.assertEqual(ports[service["spec"]["ports"][0]["targetPort"]], 9443)
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
            self.assertFalse(
                service["spec"]["selector"].items() <= agent["metadata"]["labels"].items()
            )


if __name__ == "__main__":
    unittest.main()
