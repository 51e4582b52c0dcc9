# SPDX-License-Identifier: Apache-2.0
"""The notes that helm prints after an installation of the chart."""

import unittest

from helm import CHART, NAMESPACE, helm


class Notes(unittest.TestCase):
    """The text that helm prints after an installation."""

    def notes(self, values=""):
        done = helm("install", "railhead", CHART, "--namespace", NAMESPACE, "--dry-run=client", values=values)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout[done.stdout.index("NOTES:"):]

    def test_each_part_that_is_enabled_has_its_next_command(self):
        commands = {
            "operator: {verdicts: {enabled: VALUE}}": "kubectl get railreports",
            "operator: {gangs: {enabled: VALUE}}": "reason=GangWaiting",
            "operator: {topology: {enabled: VALUE}}": "kubectl describe fabrictopology cluster",
            "devicePlugin: {jobSecrets: {existingSecret: mine, enabled: VALUE}}":
                "ls /run/railhead/secret",
            "devicePlugin: {memlock: VALUE}": "rollout status daemonset/railhead-memlock",
            "dashboards: {enabled: VALUE}": "get configmap railhead-dashboards",
            "metrics: {podMonitor: {enabled: VALUE}}": "get podmonitors",
            "metrics: {rules: {enabled: VALUE}}": "get prometheusrule railhead",
        }
        for values, command in commands.items():
            with self.subTest(values):
                self.assertIn(command, self.notes(values.replace("VALUE", "true")))
                self.assertNotIn(command, self.notes(values.replace("VALUE", "false")))
        self.assertIn("helm test railhead --namespace railhead-system --logs", self.notes())

    def test_what_is_not_enabled_can_be_by_the_command(self):
        plain = self.notes()
        self.assertIn("--set metrics.podMonitor.enabled=true", plain)
        self.assertIn("--set metrics.rules.enabled=true", plain)
        self.assertIn("devicePlugin.jobSecrets.existingSecret", plain)
        both = "metrics: {podMonitor: {enabled: true}, rules: {enabled: true}}\n"
        self.assertIn("What is not enabled", self.notes(both))
        all_three = both + "devicePlugin: {jobSecrets: {existingSecret: mine}}"
        self.assertNotIn("What is not enabled", self.notes(all_three))


if __name__ == "__main__":
    unittest.main()
