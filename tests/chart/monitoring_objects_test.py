# SPDX-License-Identifier: Apache-2.0
"""The objects by which the chart is monitored: PodMonitors, the PrometheusRule, and the dashboards' ConfigMap."""

import json
import re
import unittest

import yaml

from helm import CHART, EVERYTHING, NAMESPACE, helm, render


class Metrics(unittest.TestCase):
    """How Prometheus finds the node agents."""

    def test_annotations_port_and_flag_agree(self):
        for values, port in (("", 9401), (EVERYTHING, 9999)):
            pod = render(values)["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
            container = pod["spec"]["containers"][0]
            self.assertEqual(
                pod["metadata"]["annotations"],
                {
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": str(port),
                    "prometheus.io/path": "/metrics",
                },
            )
            ports = {item["name"]: item["containerPort"] for item in container["ports"]}
            self.assertEqual(ports, {"health": 8080, "metrics": port})
            self.assertIn(f"--metrics-address=:{port}", container["args"])

    def test_the_pod_monitor_finds_the_agents_and_leaves_their_pod_out(self):
        objects = render(EVERYTHING)
        monitor = objects["PodMonitor", "railhead-device-plugin"]
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        pod = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
        self.assertLessEqual(
            monitor["spec"]["selector"]["matchLabels"].items(), pod["metadata"]["labels"].items()
        )
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["interval"]), ("metrics", "5s"))
        self.assertIs(endpoint["honorLabels"], True)
        rule, node = endpoint["relabelings"]
        self.assertEqual(node["targetLabel"], "node")
        self.assertEqual(rule["action"], "labeldrop")
        for label in ("namespace", "pod"):
            self.assertRegex(label, f"^({rule['regex']})$")


    def test_every_replica_of_the_operator_is_scraped(self):
        objects = render(EVERYTHING)
        monitor = objects["PodMonitor", "railhead-operator"]
        pod = objects["Deployment", "railhead-operator"]["spec"]["template"]
        self.assertLessEqual(
            monitor["spec"]["selector"]["matchLabels"].items(), pod["metadata"]["labels"].items()
        )
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["interval"]), ("http", "5s"))
        ports = {item["name"]: item["containerPort"] for item in pod["spec"]["containers"][0]["ports"]}
        notes = pod["metadata"]["annotations"]
        self.assertEqual(notes["prometheus.io/port"], str(ports["http"]))
        self.assertEqual((notes["prometheus.io/scrape"], notes["prometheus.io/path"]), ("true", "/metrics"))


class Rules(unittest.TestCase):
    """Alerts as a PrometheusRule."""

    FILE = yaml.safe_load((CHART / "rules" / "railhead.yaml").read_text())["groups"]

    def test_the_rule_is_the_file(self):
        rule = render("metrics: {rules: {enabled: true}}")["PrometheusRule", "railhead"]
        self.assertEqual(rule["spec"]["groups"], self.FILE)
        self.assertNotIn("PrometheusRule", {kind for kind, _ in render()})

    def test_values_change_it(self):
        rule = render(EVERYTHING)["PrometheusRule", "railhead"]
        self.assertEqual(rule["metadata"]["labels"]["release"], "prometheus")
        rules = [one for group in rule["spec"]["groups"] for one in group["rules"]]
        alerts = {one["alert"]: one["annotations"]["runbook_url"] for one in rules if "alert" in one}
        ours = {one["alert"] for group in self.FILE for one in group["rules"] if "alert" in one}
        self.assertEqual(set(alerts), ours - {"RailheadStraggler"})
        for name, url in alerts.items():
            self.assertEqual(url, f"https://runbooks.example/railhead/{name}.md")

    def test_alerts_that_ask_whether_a_target_is_up_know_its_job(self):
        """Prometheus Operator names a job after the PodMonitor, whose name begins with the release's."""
        values = "metrics: {podMonitor: {enabled: true}, rules: {enabled: true}}\n"
        for release, more in (("railhead", ""), ("railhead", "fullnameOverride: rails"), ("x" * 38, ""),
                              ("railhead-of-a-release-with-a-very-long-name", "")):
            with self.subTest(release, more=more):
                done = helm("template", release, CHART, "--namespace", NAMESPACE, values=values + more)
                objects = [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]
                rule, = (item for item in objects if item["kind"] == "PrometheusRule")
                known = set(re.findall(r'up\{job=~"([^"]+)"', json.dumps(rule).replace('\\"', '"')))
                self.assertEqual(len(known), 3)
                for job, ours in (("runtime", "railhead"), ("device-plugin", "railhead-node-agent"),
                                  ("operator", "railhead-operator")):
                    monitor, = (item["metadata"]["name"] for item in objects
                                if item["kind"] == "PodMonitor" and item["metadata"]["name"].endswith(job))
                    matching = {one for one in known if re.fullmatch(one, f"{NAMESPACE}/{monitor}")}
                    self.assertEqual(len(matching), 1, monitor)
                    # As the README names it, for those who have no Prometheus Operator.
                    self.assertEqual({one for one in known if re.fullmatch(one, ours)}, matching)

    def test_an_alert_that_is_not_there_cannot_be_left_out(self):
        done = helm("template", "railhead", CHART, "--set", "metrics.rules.enabled=true",
                    "--set", "metrics.rules.disabled={RailheadRaildown}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unknown alert RailheadRaildown; the alerts are: RailheadRailDown", done.stderr)


class Dashboards(unittest.TestCase):
    """The ConfigMap; tests/monitoring checks the contents of the dashboards."""

    def test_all_of_them_are_in_the_config_map(self):
        data = render()["ConfigMap", "railhead-dashboards"]
        self.assertEqual(data["metadata"]["labels"]["grafana_dashboard"], "1")
        files = {path.name: json.loads(path.read_text()) for path in (CHART / "dashboards").iterdir()}
        self.assertEqual({name: json.loads(text) for name, text in data["data"].items()}, files)
        self.assertEqual(set(files), {"cluster.json", "railhead.json", "node.json", "operator.json"})


if __name__ == "__main__":
    unittest.main()
