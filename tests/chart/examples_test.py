# SPDX-License-Identifier: Apache-2.0
"""manifests/examples: they match the chart, its values and its version."""

import json
import re
import unittest

import yaml

from helm import CHART, ROOT, render


class Example(unittest.TestCase):
    """manifests/examples/allreduce.yaml matches the chart."""

    def test_it_uses_what_the_chart_installs(self):
        text = (ROOT / "manifests" / "examples" / "allreduce.yaml").read_text()
        service, job = yaml.safe_load_all(text)
        pod = job["spec"]["template"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["metadata"]["name"], pod["spec"]["subdomain"])
        self.assertLessEqual(service["spec"]["selector"].items(), pod["metadata"]["labels"].items())
        self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"])
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
        self.assertEqual(
            pod["spec"]["containers"][0]["image"], f"docker.io/railhead/runtime:{version}"
        )

    def test_nccl_gets_its_plugin_by_a_profile_of_the_namespace(self):
        text = (ROOT / "manifests" / "examples" / "mlx-nccl.yaml").read_text()
        objects = {one["kind"]: one for one in yaml.safe_load_all(text)}
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
        spec = objects["RailProfile"]["spec"]
        self.assertEqual(
            spec["inject"], {"ncclPlugin": {"image": f"docker.io/railhead/inject:{version}"}}
        )
        self.assertLessEqual(
            spec["namespaceSelector"]["matchLabels"].items(),
            objects["Namespace"]["metadata"]["labels"].items(),
        )
        job = objects["Job"]["spec"]
        self.assertEqual(job["template"]["spec"]["subdomain"], objects["Service"]["metadata"]["name"])
        self.assertEqual(job["completions"], job["parallelism"])
        script = objects["ConfigMap"]["data"]["job.py"]
        compile(script, "job.py", "exec")

    def test_one_version_everywhere(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        project = re.search(
            r"project\(railhead VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()
        )
        self.assertEqual({chart["version"], chart["appVersion"]}, {project.group(1)})


class NetworkExamples(unittest.TestCase):
    """manifests/examples/networks: the files use matching names, which match the chart's values."""

    FOLDER = ROOT / "manifests" / "examples" / "networks"
    # Examples that use another example's values.
    VALUES = {"rdma-exclusive": "sriov", "infiniband": "sriov"}

    def offered(self, name):
        """Returns the agent's resources by name, as the chart configures them."""
        values = (self.FOLDER / f"{self.VALUES.get(name, name)}.values.yaml").read_text()
        text = render(values)["ConfigMap", "railhead-device-plugin"]["data"]["agent.yaml"]
        return {resource["name"]: resource for resource in yaml.safe_load(text)["resources"]}

    def test_values_are_the_charts(self):
        files = sorted(self.FOLDER.glob("*.values.yaml"))
        self.assertEqual(len(files), 3)
        for file in files:
            with self.subTest(file.name):
                self.assertTrue(self.offered(file.name.removesuffix(".values.yaml")))

    def test_pods_ask_for_what_is_offered_and_attached(self):
        for file in sorted(self.FOLDER.glob("*.yaml")):
            if file.name.endswith(".values.yaml"):
                continue
            with self.subTest(file.name):
                offered = self.offered(file.name.removesuffix(".yaml"))
                *attachments, pod = yaml.safe_load_all(file.read_text())
                wanted = pod["spec"]["containers"][0]["resources"]["limits"]
                for resource in wanted:
                    rail = re.fullmatch(r"(.*)-\d+", resource)
                    found = offered.get(resource) or offered[rail.group(1)]
                    self.assertEqual(resource == found["name"], not found.get("perRail", False))
                names = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(", ")
                self.assertEqual(set(names), {item["metadata"]["name"] for item in attachments})
                self.assertEqual(len(names), sum(wanted.values()))
                for item in attachments:
                    config = json.loads(item["spec"]["config"])
                    self.assertIn("type", config["plugins"][0] if "plugins" in config else config)
                    resource = item["metadata"].get("annotations", {}).get(
                        "k8s.v1.cni.cncf.io/resourceName")
                    if resource is not None:  # Multus passes on the ids of its devices
                        self.assertIn(resource, wanted)
                        self.assertEqual(offered[resource]["deviceIds"], "pciAddress")


if __name__ == "__main__":
    unittest.main()
