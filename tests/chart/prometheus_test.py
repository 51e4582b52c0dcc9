# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with the README's scrape configurations, and with the chart's PodMonitors as the Prometheus
operator translates them: which pods it scrapes, at which address, and the labels of their series.

Debian's Prometheus is built without Kubernetes discovery: it reads the pods from a file, with the labels that
discovery gives them. Pods are metrics pages at loopback addresses, on one port."""

import concurrent.futures
import contextlib
import http.server
import json
import re
import socket
import subprocess
import sys
import threading
import unittest
import urllib.parse
import urllib.request

import yaml

from helm import CHART, ROOT, render

sys.path.insert(0, str(ROOT / "tests" / "kube"))

from control_plane import folder_for, free_port, wait_until  # noqa: E402

INTERVAL = "5s"  # between scrapes, and for one of them: nine servers of a busy machine are slow
# A runtime's page names the training job; a node agent's page names the pod that holds a device, if any.
TRAINING = 'railhead_rail_state{job="train",rank="0",rail="0"} 1\n'
AGENT = (
    'railhead_device_healthy{rail="0",node="node-of-railhead-device-plugin-x",namespace="team",pod="holder"} 1\n'
    'railhead_device_healthy{rail="1"} 1\n'
)
# The operator's page names the jobs that it diagnoses; its other metrics are about itself.
OPERATOR = 'railhead_verdict_pods{namespace="team",job="train",reason="RailDown"} 1\nrailhead_leader 1\n'
AGENT_LABELS = {
    "app_kubernetes_io_name": "railhead",
    "app_kubernetes_io_component": "device-plugin",
    "app_kubernetes_io_instance": "railhead",
}


class Pod:
    """Discovery's view of a pod: a target for each container port, or one target if it has no ports."""

    def __init__(self, name, address, text, space="team", phase="Running", labels=None, ports=(), injected=True):
        self.name, self.address, self.text = name, address, text
        self._meta = {"namespace": space, "pod_name": name, "pod_ip": address, "pod_phase": phase,
                      "pod_node_name": f"node-of-{name}"}
        for label, value in (labels or {}).items():
            self._meta[f"pod_label_{label}"] = value
            self._meta[f"pod_labelpresent_{label}"] = "true"
        self._injected, self._ports = injected, ports

    def targets(self, port):
        meta = dict(self._meta)
        if self._injected:
            meta["pod_annotation_railhead_io_injected"] = "0.1.0"
            meta["pod_annotation_railhead_io_metrics_port"] = str(port)
        host = f"[{self.address}]" if ":" in self.address else self.address
        for name, number in self._ports or ((None, None),):
            each = dict(meta, pod_container_name="main")
            if name:
                each |= {"pod_container_port_name": name, "pod_container_port_number": str(number)}
            yield {
                "targets": [f"{host}:{number}" if name else host],
                "labels": {f"__meta_kubernetes_{key}": value for key, value in each.items()},
            }


def pods(port):
    return [
        # The declared ports differ from the page's.
        Pod("rank-0", "127.0.0.2", TRAINING, ports=(("web", 80), ("more", 81))),
        Pod("rank-1", "127.0.0.3", TRAINING.replace('rank="0"', 'rank="1"')),
        Pod("rank-2", "::1", TRAINING.replace('rank="0"', 'rank="2"')),
        Pod("ended", "127.0.0.4", TRAINING, phase="Succeeded"),
        Pod("other", "127.0.0.5", TRAINING, injected=False, ports=(("metrics", port),)),
        Pod(
            "railhead-device-plugin-x",
            "127.0.0.6",
            AGENT,
            space="railhead-system",
            labels=AGENT_LABELS,
            injected=False,
            ports=(("health", 8080), ("metrics", port)),
        ),
        Pod(
            "railhead-operator-x",
            "127.0.0.7",
            OPERATOR,
            space="railhead-system",
            labels=AGENT_LABELS | {"app_kubernetes_io_component": "operator"},
            injected=False,
            ports=(("webhook", 9443), ("http", port)),
        ),
    ]


@contextlib.contextmanager
def served(some, port):
    """Yields their pages and the number of requests to each."""
    texts, asked = {pod.address: pod.text for pod in some}, dict.fromkeys((p.name for p in some), 0)
    names = {pod.address: pod.name for pod in some}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            address = self.connection.getsockname()[0]
            asked[names[address]] += 1
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(texts[address].encode())

        def log_message(self, *_):
            pass

    class Server6(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6

    servers = [
        (Server6 if ":" in address else http.server.ThreadingHTTPServer)((address, port), Handler)
        for address in texts
    ]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield asked
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def from_readme():
    """Returns the scrape configurations of the chart's README, and its replacement of honor_labels for tenants that
    do not trust each other."""
    blocks = [
        yaml.safe_load(text)
        for text in re.findall(r"^```yaml\n(.*?)^```", (CHART / "README.md").read_text(), re.M | re.S)
        if "scrape" in text or "metric_relabel_configs" in text
    ]
    (training,) = [block for block in blocks if isinstance(block, dict) and "scrape_configs" in block]
    (training,) = training["scrape_configs"]
    (renaming,) = [block for block in blocks if isinstance(block, dict) and "metric_relabel_configs" in block]
    ((agent, operator),) = [block for block in blocks if isinstance(block, list)]
    return training, renaming, agent, operator


def snake(rule):
    """Returns a PodMonitor's rule in Prometheus's spelling."""
    return {re.sub(r"[A-Z]", lambda m: "_" + m[0].lower(), key): value for key, value in rule.items()}


def of_monitor(monitor):
    """Returns the Prometheus operator's translation of a PodMonitor, except for discovery."""
    spec, meta = monitor["spec"], monitor["metadata"]
    (endpoint,) = spec["podMetricsEndpoints"]
    name = f"{meta['namespace']}/{meta['name']}"
    rules = []
    for label, value in spec["selector"].get("matchLabels", {}).items():
        clean = re.sub(r"[^a-zA-Z0-9_]", "_", label)
        rules.append(
            {
                "action": "keep",
                "source_labels": [
                    f"__meta_kubernetes_pod_label_{clean}",
                    f"__meta_kubernetes_pod_labelpresent_{clean}",
                ],
                "regex": f"({value});true",
            }
        )
    if not spec.get("namespaceSelector", {}).get("any"):
        # Discovery is limited to its own namespace.
        rules.append(
            {"action": "keep", "source_labels": ["__meta_kubernetes_namespace"], "regex": meta["namespace"]}
        )
    rules.append(
        {
            "action": "drop",
            "source_labels": ["__meta_kubernetes_pod_phase"],
            "regex": "(Failed|Succeeded)",
        }
    )
    if "port" in endpoint:
        rules.append(
            {
                "action": "keep",
                "source_labels": ["__meta_kubernetes_pod_container_port_name"],
                "regex": endpoint["port"],
            }
        )
    for source, target in (
        ("namespace", "namespace"),
        ("pod_container_name", "container"),
        ("pod_name", "pod"),
    ):
        rules.append({"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target})
    rules.append({"target_label": "job", "replacement": name})
    if "port" in endpoint:
        rules.append({"target_label": "endpoint", "replacement": endpoint["port"]})
    return {
        "job_name": f"podMonitor/{name}/0",
        "honor_labels": endpoint.get("honorLabels", False),
        "metrics_path": endpoint["path"],
        "relabel_configs": rules + [snake(rule) for rule in endpoint.get("relabelings", [])],
        "metric_relabel_configs": [snake(rule) for rule in endpoint.get("metricRelabelings", [])],
    }


def free_ports(count):
    ports = set()
    while len(ports) < count:
        ports.add(free_port())
    return ports


def scraped(folder, configuration, port, web):
    """Returns the URLs of all targets, all series by name (their labels), and the pods that were scraped."""
    some = pods(port)
    folder.mkdir()
    (folder / "targets.json").write_text(
        json.dumps([target for pod in some for target in pod.targets(port)])
    )
    configuration = dict(configuration)
    configuration.pop("kubernetes_sd_configs", None)
    configuration |= {
        "scrape_interval": INTERVAL,
        "scrape_timeout": INTERVAL,
        "file_sd_configs": [{"files": [str(folder / "targets.json")]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [configuration]}))
    with served(some, port) as asked, open(folder / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{web}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            return answers(f"http://127.0.0.1:{web}", folder / "log", asked)
        finally:
            process.kill()
            process.wait()


def answers(url, log, asked):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(path):
        try:
            with opener.open(f"{url}/api/v1/{path}", timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def series(name):
        # Also if its last scrape was too slow.
        found = get(f"query?{urllib.parse.urlencode({'query': f'last_over_time({name}[10m])'})}")
        return [result["metric"] for result in (found or {"result": []})["result"]]

    def targets():
        return (get("targets?state=active") or {"activeTargets": []})["activeTargets"]

    # After two scrapes of each target, all series are present.
    wait_until(
        lambda: targets()
        and all(target["health"] == "up" for target in targets())
        and all(count >= 2 for count in asked.values() if count)
        and any(asked.values()),
        "the first scrapes",
        log,
    )
    return (
        sorted(target["scrapeUrl"] for target in targets()),
        {
            name: series(name)
            for name in (
                "railhead_rail_state",
                "railhead_device_healthy",
                "up",
                "railhead_verdict_pods",
                "railhead_leader",
            )
        },
        {name for name, count in asked.items() if count},
    )


class Scrapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        training, renaming, agent, operator = from_readme()
        objects = render("metrics: {podMonitor: {enabled: true}}")
        monitor = of_monitor(objects["PodMonitor", "railhead-runtime"])
        configurations = {
            "training": training,
            "renaming": training | renaming | {"honor_labels": False},
            "agent": agent,
            "monitor": monitor,
            # An administrator may set this for all monitors.
            "overridden": monitor | {"honor_labels": False},
            "agent monitor": of_monitor(objects["PodMonitor", "railhead-device-plugin"]),
            "operator": operator,
            "operator monitor": of_monitor(objects["PodMonitor", "railhead-operator"]),
        }
        configurations["agent overridden"] = configurations["agent monitor"] | {"honor_labels": False}
        configurations["operator overridden"] = configurations["operator monitor"] | {"honor_labels": False}
        folder = folder_for(cls, "prometheus")
        ports = free_ports(2 * len(configurations))
        # All at once: each waits some seconds until its Prometheus has read the file.
        with concurrent.futures.ThreadPoolExecutor(len(configurations)) as pool:
            running = {
                name: pool.submit(scraped, folder / name, one, ports.pop(), ports.pop())
                for name, one in configurations.items()
            }
        cls.found = {name: future.result() for name, future in running.items()}
        cls.agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
        cls.operator = objects["Deployment", "railhead-operator"]["spec"]["template"]

    def test_training_pods_are_scraped_once_and_keep_their_job(self):
        for name in ("training", "renaming", "monitor", "overridden"):
            with self.subTest(name):
                urls, series, asked = self.found[name]
                self.assertEqual(asked, {"rank-0", "rank-1", "rank-2"})
                self.assertEqual(len(urls), 3, f"a page is scraped twice: {urls}")
                self.assertEqual(len([url for url in urls if url.startswith("http://[::1]:")]), 1)
                items = sorted(series["railhead_rail_state"], key=lambda item: item["rank"])
                self.assertEqual(len(items), 3)
                for rank, item in enumerate(items):
                    self.assertEqual(
                        (item["job"], item["namespace"], item["pod"]), ("train", "team", f"rank-{rank}")
                    )
                    self.assertEqual(item["node"], f"node-of-rank-{rank}")
                    self.assertFalse({"exported_job", "container", "endpoint"} & set(item), item)

    def test_node_agents_leave_namespace_and_pod_to_who_holds_a_device(self):
        for name in ("agent", "agent monitor", "agent overridden"):
            with self.subTest(name):
                urls, series, asked = self.found[name]
                self.assertEqual(asked, {"railhead-device-plugin-x"})
                self.assertEqual(len(urls), 1, f"another port is scraped: {urls}")
                held, free = sorted(series["railhead_device_healthy"], key=lambda item: item["rail"])
                self.assertEqual((held["namespace"], held["pod"]), ("team", "holder"))
                self.assertNotIn("exported_node", held)
                self.assertFalse({"namespace", "pod", "container"} & set(free), free)
                # RailheadAgentDown names the node of an agent that does not answer.
                (target,) = series["up"]
                self.assertEqual(target["node"], "node-of-railhead-device-plugin-x")
                self.assertFalse({"namespace", "pod", "container"} & set(target), target)

    def test_the_operator_names_the_jobs_that_it_judges_and_else_itself(self):
        for name in ("operator", "operator monitor", "operator overridden"):
            with self.subTest(name):
                urls, series, asked = self.found[name]
                self.assertEqual(asked, {"railhead-operator-x"})
                self.assertEqual(len(urls), 1, f"another port is scraped: {urls}")
                (judged,), (leader,) = series["railhead_verdict_pods"], series["railhead_leader"]
                self.assertEqual((judged["namespace"], judged["job"]), ("team", "train"))
                self.assertEqual(
                    (leader["namespace"], leader["pod"]), ("railhead-system", "railhead-operator-x")
                )
                self.assertFalse({"exported_job", "exported_namespace", "container"} & {*judged, *leader})

    def test_the_alerts_know_the_targets_by_these_names(self):
        # The label `job` of `up` is the name of the scrape configuration: the README's, or the monitors'.
        rules = yaml.safe_load((CHART / "rules" / "railhead.yaml").read_text())
        matchers = {
            rule["alert"]: re.search(r'up\{job=~"([^"]+)"\}', rule["expr"])
            for group in rules["groups"]
            for rule in group["rules"]
            if "up{" in rule["expr"]
        }
        training, _, agent, operator = from_readme()
        names = {
            "RailheadPageNotScraped": (training["job_name"], "railhead-system/railhead-runtime"),
            "RailheadAgentDown": (agent["job_name"], "railhead-system/railhead-device-plugin"),
            "RailheadNoLeader": (operator["job_name"], "railhead-system/railhead-operator"),
        }
        self.assertEqual(set(matchers), set(names))
        for alert, matcher in matchers.items():
            matched = {name for all_names in names.values() for name in all_names if re.fullmatch(matcher[1], name)}
            self.assertEqual(matched, set(names[alert]))

    def test_the_agents_pods_are_as_the_one_that_is_played_here(self):
        labels = {
            re.sub(r"[^a-zA-Z0-9_]", "_", label): value
            for label, value in self.agent["metadata"]["labels"].items()
        }
        self.assertLessEqual(AGENT_LABELS.items(), labels.items())
        ports = {item["name"] for item in self.agent["spec"]["containers"][0]["ports"]}
        self.assertEqual(ports, {"health", "metrics"})
        ports = {item["name"] for item in self.operator["spec"]["containers"][0]["ports"]}
        self.assertEqual(ports, {"webhook", "http"})


if __name__ == "__main__":
    unittest.main()
