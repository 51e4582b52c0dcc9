# SPDX-License-Identifier: Apache-2.0
"""The kind RailProfile and the profiles that the chart ships, and its policy about pods that missed the operator."""

import copy
import json
import unittest

import yaml

from helm import CHART, NAMESPACE, helm, render


class Profiles(unittest.TestCase):
    """The kind RailProfile, the shipped profiles, and the policy that reports pods without one."""

    SHIPPED = sorted(path.stem for path in (CHART / "profiles").iterdir())

    def test_the_schema_names_what_the_chart_ships(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        names = schema["properties"]["profiles"]["properties"]["shipped"]["items"]["enum"]
        self.assertEqual(sorted(names), self.SHIPPED)

    def test_shipped_profiles_are_installed_by_name_and_only_then(self):
        self.assertNotIn("RailProfile", {kind for kind, _ in render()})
        values = f"profiles: {{shipped: [{', '.join(self.SHIPPED)}]}}"
        objects = render(values, "--api-versions", "railhead.io/v1alpha1/RailProfile")
        for name in self.SHIPPED:
            profile = yaml.safe_load((CHART / "profiles" / f"{name}.yaml").read_text())
            rendered = objects["RailProfile", name]
            self.assertEqual(rendered["spec"], profile["spec"])
            self.assertEqual(rendered["metadata"]["labels"]["app.kubernetes.io/name"], "railhead")

    def test_without_the_kind_they_come_after_it(self):
        objects = render("profiles: {shipped: [tcp-only]}")
        marks = objects["RailProfile", "tcp-only"]["metadata"]["annotations"]
        self.assertEqual(marks["helm.sh/hook"], "post-install,post-upgrade")
        known = render("profiles: {shipped: [tcp-only]}", "--api-versions", "railhead.io/v1alpha1/RailProfile")
        self.assertNotIn("annotations", known["RailProfile", "tcp-only"]["metadata"])

    def test_without_the_kind_and_who_brings_it_the_refusal_says_what_to_do(self):
        done = helm("template", "railhead", CHART, "--set", "profiles.shipped={tcp-only}",
                    "--set", "profiles.crd=false")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("first install the release that does", done.stderr)

    def test_what_people_wrote_stays_after_an_uninstall_unless_it_is_not_to(self):
        for values, policy in (("", "keep"), ("crds: {keep: false}", None)):
            kinds = {
                name: item["metadata"].get("annotations", {})
                for (kind, name), item in render(values).items()
                if kind == "CustomResourceDefinition"
            }
            self.assertEqual(len(kinds), 3)
            for name, annotations in kinds.items():
                self.assertEqual(annotations.get("helm.sh/resource-policy"), policy, name)

    def test_another_release_may_bring_the_kind(self):
        kind = ("CustomResourceDefinition", "railprofiles.railhead.io")
        self.assertIn(kind, render())
        self.assertNotIn(kind, render("profiles: {crd: false}"))

    def test_missed_pods_are_those_that_the_webhook_would_have_seen(self):
        name = f"{NAMESPACE}-railhead-operator"
        for action, failure in (("Warn", "Ignore"), ("Deny", "Fail")):
            objects = render(
                f"operator: {{webhook: {{missedPods: {action}, excludedNamespaces: [monitoring]}}}}"
            )
            policy = objects["ValidatingAdmissionPolicy", f"{name}-missed"]["spec"]
            pods = objects["MutatingWebhookConfiguration", name]["webhooks"][0]
            self.assertEqual(
                policy["matchConstraints"]["namespaceSelector"], pods["namespaceSelector"]
            )
            self.assertIn("monitoring", str(pods["namespaceSelector"]))
            # Also the launchers of MPIJobs, which request no RDMA and may miss the webhook.
            condition, = copy.deepcopy(policy["matchConditions"])
            condition["expression"] += (
                " || object.metadata.?annotations.orValue({})"
                "[?'railhead.io/launcher'].orValue('') != ''"
            )
            self.assertEqual([condition], pods["matchConditions"])
            # A policy that only warns must not reject pods if it fails.
            self.assertEqual(policy["failurePolicy"], failure)
            binding = objects["ValidatingAdmissionPolicyBinding", f"{name}-missed"]["spec"]
            self.assertEqual(binding["policyName"], f"{name}-missed")
            self.assertEqual(binding["validationActions"], [action, "Audit"])
        silent = render("operator: {webhook: {missedPods: Ignore}}")
        self.assertNotIn(("ValidatingAdmissionPolicy", f"{name}-missed"), silent)
        self.assertNotIn(("ValidatingAdmissionPolicyBinding", f"{name}-missed"), silent)


if __name__ == "__main__":
    unittest.main()
