# SPDX-License-Identifier: Apache-2.0
"""The key from which job secrets are derived, at a real API server: it is created once, and no account of the release
can read it."""

import base64
import unittest

from apiserver import AGENT, OPERATOR, Cluster
from helm import CHART, NAMESPACE, RELEASE

from control_plane import folder_for, wait_until

KEY = "railhead-job-key"


class JobSecrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(folder_for(cls, "job-secrets"))
        cls.cluster.start_for(cls)
        cls.cluster.helm("install", RELEASE, CHART, "--create-namespace")

    def key(self):
        secret = self.cluster.get("secret", KEY, "-n", NAMESPACE)
        return base64.b64decode(secret["data"]["key"])

    def wait_for_right_to_pods(self, there=True):
        """The server knows a change of a role after a moment."""
        wait_until(lambda: self.cluster.api.may(AGENT, "get", "pods", "default") == there, "the right to get pods")

    def agent(self):
        spec = self.cluster.get("daemonset", "railhead-device-plugin", "-n", NAMESPACE)["spec"]
        return spec["template"]["spec"]

    def test_1_an_upgrade_keeps_the_key(self):
        first = self.key()
        self.assertGreaterEqual(len(first.strip()), 32)
        self.cluster.helm("upgrade", RELEASE, CHART, "--set", "operator.gangs.enabled=true")
        self.assertEqual(self.key(), first)
        mounts = {item["name"]: item for item in self.agent()["volumes"]}
        self.assertEqual(mounts["job-key"]["secret"]["secretName"], KEY)

    def test_2_a_key_that_was_deleted_is_made_anew_by_an_upgrade(self):
        first = self.key()
        self.cluster.kubectl("delete", "secret", KEY, "-n", NAMESPACE)
        self.cluster.helm("upgrade", RELEASE, CHART, "--no-hooks")
        self.assertNotEqual(self.key(), first)

    def test_3_an_agent_gets_pods_by_name_and_nobody_reads_the_key(self):
        self.wait_for_right_to_pods()
        for verb in ("list", "watch", "create", "update", "patch", "delete"):
            self.assertFalse(self.cluster.api.may(AGENT, verb, "pods", "default"), verb)
        for user in (AGENT, OPERATOR):
            for verb in ("get", "list", "watch", "patch", "update", "delete"):
                self.assertFalse(self.cluster.api.may(user, verb, f"secrets/{KEY}", NAMESPACE), verb)
                self.assertFalse(self.cluster.api.may(user, verb, "secrets", "default"), verb)

    def test_4_what_is_turned_off_takes_the_right_and_the_key_away(self):
        for off in ("devicePlugin.jobSecrets.enabled=false", "devicePlugin.nodeFacts=false"):
            with self.subTest(off):
                self.cluster.helm("upgrade", RELEASE, CHART, "--no-hooks", "--set", off)  # nothing here could run a job
                self.wait_for_right_to_pods(False)
                self.assertEqual(self.cluster.get("secrets", "-n", NAMESPACE,
                                                  f"--field-selector=metadata.name={KEY}")["items"], [])
                self.assertNotIn("job-key", [item["name"] for item in self.agent()["volumes"]])
        self.cluster.helm("upgrade", RELEASE, CHART, "--no-hooks")

    def test_5_a_secret_of_ones_own_stays_as_it_is(self):
        self.cluster.helm("upgrade", RELEASE, CHART, "--set",
                          "devicePlugin.jobSecrets.existingSecret=mine")
        mounts = {item["name"]: item for item in self.agent()["volumes"]}
        self.assertEqual(mounts["job-key"]["secret"]["secretName"], "mine")
        self.wait_for_right_to_pods()
        self.cluster.helm("upgrade", RELEASE, CHART, "--no-hooks")


if __name__ == "__main__":
    unittest.main()
