# SPDX-License-Identifier: Apache-2.0
"""Processes of the operator at a real API server that has the chart, with the chart's arguments and
rights."""

import json
import subprocess
import urllib.error
import urllib.request

import yaml

from apiserver_test import CONFIGURATION
from helm import CHART, NAMESPACE, RELEASE, ROOT

from control_plane import free_port, wait_until

PROGRAM = ROOT / "build" / "release" / "operator" / "railhead-operator"
NAME = "railhead-operator"


def install(cluster, *arguments):
    """Installs the chart. No pods run. `arguments` are for helm."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.helm("install", RELEASE, CHART, *arguments)
    cluster.kubectl(
        "wait", "--for=condition=Established", "crd/railprofiles.railhead.io", "--timeout=60s"
    )


def send_reviews_to(cluster, pods, jobs):
    """Makes the webhooks call two replicas, or one replica twice, by the names in their certificates, at this
    machine's address."""
    cluster.kubectl("delete", "service", NAME, "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl(
        "create", "service", "externalname", NAME, "-n", NAMESPACE, "--external-name=localhost"
    )
    patch = [
        {
            "op": "replace",
            "path": f"/webhooks/{index}/clientConfig/service/port",
            "value": replica.port,
        }
        for index, replica in enumerate((pods, jobs))
    ]
    cluster.kubectl(
        "patch",
        "mutatingwebhookconfiguration",
        CONFIGURATION,
        "--type=json",
        "--patch",
        json.dumps(patch),
    )


class Replica:
    """A process of the operator, with the arguments of the chart's Deployment."""

    def __init__(self, cluster, folder, name, environment=None):
        self.port, self.health_port = free_port(), free_port()
        kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
        token = cluster.kubectl("create", "token", NAME, "-n", NAMESPACE).stdout.strip()
        kubeconfig["users"][0]["user"]["token"] = token
        path = folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig))
        config = folder / "operator.yaml"
        config.write_text(
            cluster.get("configmap", NAME, "-n", NAMESPACE)["data"]["operator.yaml"]
        )
        deployment = cluster.get("deployment", NAME, "-n", NAMESPACE)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        arguments = [flag for flag in container["args"] if not flag.startswith("--config=")]
        self.log = folder / f"{name}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [
                    PROGRAM,
                    *arguments,
                    f"--config={config}",
                    f"--kubeconfig={path}",
                    f"--namespace={NAMESPACE}",
                    f"--port={self.port}",
                    f"--health-port={self.health_port}",
                ],
                stderr=log,
                env=environment,
            )

    @property
    def pid(self):
        return self._process.pid

    def ask(self, path):
        """Returns status and text; (0, "") if nothing listens."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.health_port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return 0, ""

    def wait_until_ready(self):
        wait_until(lambda: self.ask("/readyz")[0] == 200, "the operator", self.log)

    def leads(self):
        return "\nrailhead_leader 1\n" in self.ask("/metrics")[1]

    def end(self):
        """Kills it without a shutdown, like a node failure."""
        self._process.kill()
        self._process.wait()
