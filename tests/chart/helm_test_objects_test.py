# SPDX-License-Identifier: Apache-2.0
"""The objects that the chart renders for `helm test`."""

import json
import re
import unittest

from helm import CHART, render


class HelmTest(unittest.TestCase):
    """The objects of `helm test`; allreduce_test runs its scripts."""

    def test_all_of_it_is_there_for_the_test_only(self):
        hooks = {
            name: item["metadata"]["annotations"]
            for name, item in render().items()
            if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
        }
        ours = {name for name in render() if "railhead-test" in name[1]}
        self.assertEqual(set(hooks), ours)
        self.assertEqual({kind for kind, _ in ours}, {"ConfigMap", "Service", "StatefulSet", "Pod"})
        for (kind, _), notes in hooks.items():
            # Only the pod that checks the result stays, with its log.
            self.assertEqual("hook-succeeded" in notes["helm.sh/hook-delete-policy"], kind != "Pod")
        order = {kind: int(notes["helm.sh/hook-weight"]) for (kind, _), notes in hooks.items()}
        self.assertLess(order["ConfigMap"], order["StatefulSet"])
        self.assertLess(order["StatefulSet"], order["Pod"])

    def test_it_tests_any_resource_that_agents_may_offer(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        offered = schema["$defs"]["resource"]["properties"]["name"]
        tested = schema["properties"]["test"]["properties"]["resource"]
        self.assertEqual({**tested, "description": ""}, {**offered, "description": ""})
        ranks = render("test: {resource: example.com/nic}")["StatefulSet", "railhead-test-rank"]["spec"]
        rank = ranks["template"]["spec"]
        self.assertEqual(rank["containers"][0]["resources"]["limits"]["example.com/nic"], 1)

    def test_its_pods_run_on_nodes_of_their_kind(self):
        for values, selector in (
            ("", {"kubernetes.io/os": "linux"}),
            ("test: {nodeSelector: {kubernetes.io/arch: arm64}}",
             {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}),
        ):
            objects = render(values)
            rank = objects["StatefulSet", "railhead-test-rank"]["spec"]["template"]["spec"]
            self.assertEqual(rank["nodeSelector"], selector)
            self.assertEqual(objects["Pod", "railhead-test"]["spec"]["nodeSelector"], selector)

    def test_names_and_ports_agree(self):
        objects = render("devicePlugin: {metricsPort: 9999}\ntest: {hcas: 8, resource: rdma/fast}")
        ranks = objects["StatefulSet", "railhead-test-rank"]["spec"]
        rank = ranks["template"]["spec"]["containers"][0]
        check = objects["Pod", "railhead-test"]["spec"]["containers"][0]
        env = {name: {item["name"]: item.get("value") for item in one["env"]}
               for name, one in (("rank", rank), ("check", check))}
        names = [f"railhead-test-rank-{n}.{ranks['serviceName']}" for n in (0, 1)]
        self.assertEqual(env["check"]["RANK_ADDRESSES"].split(), names)
        self.assertEqual(env["rank"]["MASTER_ADDR"], names[0])
        self.assertEqual(env["rank"]["RESULT_PORT"], env["check"]["RESULT_PORT"])
        self.assertEqual(env["check"]["AGENT_PORT"], "9999")
        self.assertEqual((env["check"]["HCAS"], env["check"]["RESOURCE"]), ("8", "rdma/fast"))
        self.assertEqual(rank["resources"]["limits"]["rdma/fast"], 8)
        for service, labels in (
            ("railhead-test-rank", ranks["template"]["metadata"]["labels"]),
            (env["check"]["AGENT_ADDRESSES"],
             objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["metadata"]["labels"]),
        ):
            spec = objects["Service", service]["spec"]
            self.assertEqual(spec["clusterIP"], "None")
            self.assertLessEqual(spec["selector"].items(), labels.items())
        # Every variable that a script reads is set, unless it has a default there.
        for name, script in (("rank", "rank.sh"), ("check", "check.sh")):
            text = (CHART / "test" / script).read_text()
            own = set(re.findall(r"\b([A-Z_]+)=", text)) | {"SECONDS", "ENV", "SIG"}
            self.assertLessEqual(set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b(?!:-)", text)) - own, set(env[name]))


if __name__ == "__main__":
    unittest.main()
