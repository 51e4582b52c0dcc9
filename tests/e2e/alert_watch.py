# SPDX-License-Identifier: Apache-2.0
"""A Prometheus with the chart's own rules, for the test cases of alerts.py and slow_alerts.py. It scrapes ranks,
agents and operator with the labels that the chart's PodMonitors give them. One alert at a time is expected; the test
case fails if another one fires."""

import contextlib
import json
import time

import yaml

from stage import NAMESPACE, ROOT
from railbed.console import Failure, table, wait_for

ADDRESS = "127.0.0.1:9091"
EVERY = 5  # seconds between scrapes, and between evaluations of the rules
# Seconds from the fault on: the delay allowed in addition to an alert's `for`, and the maximum wait.
PROMISED = 30
PATIENCE = 120


def chart_rules(cluster):
    """Returns the groups of the chart's PrometheusRule."""
    done = cluster.helm("template", "railhead", ROOT / "charts" / "railhead", "--namespace", NAMESPACE, "--set",
                        "metrics.rules.enabled=true", "--show-only", "templates/prometheusrule.yaml")
    return yaml.safe_load(done.stdout)["spec"]["groups"]


class AlertWatch:
    def __init__(self, stage):
        self._stage = stage
        self._folder = stage.cluster.folder
        groups = chart_rules(stage.cluster)
        self.holds = {rule["alert"]: _seconds(rule.get("for", "0s"))
                      for group in groups for rule in group["rules"] if "alert" in rule}
        (self._folder / "alerts-rules.json").write_text(json.dumps({"groups": groups}))
        (self._folder / "alerts.yml").write_text(json.dumps({
            "global": {"scrape_interval": f"{EVERY}s", "scrape_timeout": f"{EVERY}s",
                       "evaluation_interval": f"{EVERY}s"},
            "rule_files": [str(self._folder / "alerts-rules.json")],
            "scrape_configs": [{
                "job_name": "railhead", "honor_labels": True,
                "file_sd_configs": [{"files": [str(self._folder / "alerts-targets.json")],
                                     "refresh_interval": "1s"}]}]}))
        self.expected = set()  # names of alerts that may fire now
        self.rows = []  # alert, `for`, seconds until it fired, seconds until it ended, summary

    @contextlib.contextmanager
    def running(self):
        self._find_targets()
        self._stage.cluster.start("prometheus-alerts", [
            "prometheus", f"--config.file={self._folder}/alerts.yml",
            f"--storage.tsdb.path={self._folder}/prometheus-alerts", f"--web.listen-address={ADDRESS}"])
        try:
            wait_for("Prometheus answers", self._answers, 60, interval=0.5,
                     log=self._folder / "prometheus-alerts.log")
            yield self
        finally:
            self._stage.cluster.stop("prometheus-alerts")

    def _answers(self):
        with contextlib.suppress(Failure, OSError):
            return self._stage.fetch(f"http://{ADDRESS}/-/ready") is not None
        return False

    def _find_targets(self):
        """Finds and labels targets as the chart's PodMonitors do."""
        targets = []
        for pod in self._stage.cluster.get("pods", "-A")["items"]:
            meta, status = pod["metadata"], pod["status"]
            component = meta.get("labels", {}).get("app.kubernetes.io/component")
            where = {"namespace": meta["namespace"], "pod": meta["name"]}
            port = meta.get("annotations", {}).get("railhead.io/metrics-port")
            if port:
                labels = where | {"job": f"{NAMESPACE}/railhead-runtime", "node": pod["spec"].get("nodeName", "")}
            elif meta["namespace"] == NAMESPACE and component == "device-plugin":
                port = 9401
                labels = {"job": f"{NAMESPACE}/railhead-device-plugin", "node": pod["spec"].get("nodeName", "")}
            elif meta["namespace"] == NAMESPACE and component == "operator":
                port, labels = 8080, where | {"job": f"{NAMESPACE}/railhead-operator"}
            if port and status["phase"] == "Running" and status.get("podIP"):
                targets.append({"targets": [f"{status['podIP']}:{port}"], "labels": labels})
        path = self._folder / "alerts-targets.json"
        path.with_suffix(".new").write_text(json.dumps(sorted(targets, key=json.dumps)))
        path.with_suffix(".new").rename(path)

    def look(self):
        """Returns the alerts that fire now: [(name, labels, annotations)]. Fails if one of them is not expected."""
        self._find_targets()
        told = json.loads(self._stage.fetch(f"http://{ADDRESS}/api/v1/alerts"))["data"]["alerts"]
        firing = [(alert["labels"]["alertname"], alert["labels"], alert["annotations"]) for alert in told
                  if alert["state"] == "firing"]
        for name, labels, annotations in firing:
            if name not in self.expected:
                raise Failure(f"{name} fires, which nothing here is meant to cause: {annotations['summary']} ({labels})")
        return firing

    def stays_quiet(self, seconds):
        """Checks for this time that only expected alerts fire."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(EVERY)

    def expect(self, *names):
        """Allows these alerts to fire from now on; returns the time, for fires()."""
        self.expected.update(names)
        return time.monotonic()

    def fires(self, name, since, **labels):
        """Waits until the alert fires with these labels."""
        def found():
            return next((annotations["summary"] for alert, told, annotations in self.look()
                         if alert == name and labels.items() <= told.items()), None)

        summary = wait_for(f"{name} {labels} fires", found, self.holds[name] + PATIENCE, interval=1)
        took = time.monotonic() - since
        late = took - self.holds[name]
        self._stage.console.line(f"    {name}: {took:.0f} s after the fault, {late:.0f} s more than its `for`"
                                 f"{'' if late <= PROMISED else f', which is not within {PROMISED} s'}: {summary}")
        self.rows.append([name, self.holds[name], round(took), "", "yes" if late <= PROMISED else "NO"])
        return summary

    def is_over(self, name, seconds=PATIENCE):
        """Waits until the alert no longer fires; it is then not expected any more."""
        wait_for(f"{name} ends", lambda: all(alert != name for alert, _, _ in self.look()), seconds, interval=1)
        self.expected.discard(name)

    def ends(self, name, since, seconds=PATIENCE):
        """Calls is_over() for an alert of fires(), and records the time since the repair."""
        self.is_over(name, seconds)
        took = time.monotonic() - since
        next(row for row in reversed(self.rows) if row[0] == name)[3] = round(took)
        self._stage.console.line(f"    {name}: ended {took:.0f} s after the repair")

    def show(self):
        """Prints a table of the alerts and their times; fails if one was too late."""
        self._stage.console.plain(table(self.rows, ["alert", "for (s)", "fired (s)", "ended (s)", "within"]))
        late = [row[0] for row in self.rows if row[4] != "yes"]
        if late:
            raise Failure(f"these fired too late: {late}")

    def ever_fired(self, minutes):
        """Returns the names of alerts that have fired within these minutes."""
        text = self._stage.fetch(f"http://{ADDRESS}/api/v1/query?query=max_over_time(ALERTS%7Balertstate%3D%22firing%22"
                                 f"%7D%5B{minutes}m%5D)")
        return sorted({found["metric"]["alertname"] for found in json.loads(text)["data"]["result"]})


def _seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
