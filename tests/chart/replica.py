# SPDX-License-Identifier: Apache-2.0
"""Processes of the operator at a real API server that has the chart, with the chart's arguments and
rights."""

import json
import re
import subprocess
import urllib.error
import urllib.request

import yaml

from apiserver import CONFIGURATION, job, pod
from helm import CHART, NAMESPACE, RELEASE, ROOT

from control_plane import COMMAND, free_port, wait_until

PROGRAM = ROOT / "build" / "release" / "operator" / "railhead-operator"
NAME = "railhead-operator"
REVIEW = 30  # seconds that the API server waits for a review, the most that it allows: a busy machine takes more than 5


def install(cluster, *arguments):
    """Installs the chart. No pods run. `arguments` are for helm. The API server knows the operator's rights then."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.helm("install", RELEASE, CHART, *arguments)
    wait_for_kinds(cluster, "railprofiles.railhead.io")
    cluster.wait_for_rights()


def wait_for_kinds(cluster, *names):
    """Waits until the API server serves the kinds of these definitions."""
    cluster.kubectl(
        "wait", "--for=condition=Established", *(f"crd/{name}" for name in names), f"--timeout={COMMAND - 10}s"
    )


def send_reviews_to(cluster, pods, jobs, space="default"):
    """Makes the webhooks call two replicas, or one replica twice, by the names in their certificates, at this
    machine's address. Returns when the reviews of pods and Jobs in the namespace `space` reach them: the API server
    applies the change after a moment, and until then it admits pods without a review."""
    for replica in (pods, jobs):
        replica.wait_until_ready()
    cluster.kubectl("delete", "service", NAME, "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl(
        "create", "service", "externalname", NAME, "-n", NAMESPACE, "--external-name=localhost"
    )
    patch = [
        {"op": "replace", "path": f"/webhooks/{index}/{field}", "value": value}
        for index, replica in enumerate((pods, jobs))
        for field, value in (("clientConfig/service/port", replica.port), ("timeoutSeconds", REVIEW))
    ]
    cluster.kubectl(
        "patch",
        "mutatingwebhookconfiguration",
        CONFIGURATION,
        "--type=json",
        "--patch",
        json.dumps(patch),
    )
    for kind, replica in (("Pod", pods), ("Job", jobs)):
        wait_until(
            lambda kind=kind, replica=replica: _is_asked(cluster, replica, kind, space),
            f"the review of a {kind}",
            replica.log,
        )


def _is_asked(cluster, replica, kind, space):
    """Returns whether the replica reviews a new object of this kind."""
    item = pod("review", limits={"rdma/hca": 1})
    if kind == "Job":
        item = job("review", item)
    item["metadata"]["namespace"] = space
    before = replica.reviews(kind)
    cluster.kubectl("create", "--dry-run=server", objects=[item], check=False)
    after = replica.reviews(kind)
    return None not in (before, after) and after > before


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
        for _ in range(3):  # it ends connections of clients that do not ask within seconds, as on a busy machine
            try:
                with opener.open(f"http://127.0.0.1:{self.health_port}{path}", timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as refusal:
                return refusal.code, refusal.read().decode()
            except OSError as error:
                if isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                    break
        return 0, ""

    def wait_until_ready(self):
        wait_until(lambda: self.ask("/readyz")[0] == 200, "the operator", self.log)

    def reviews(self, kind):
        """Returns how many objects of this kind it has reviewed; None if it does not respond."""
        status, page = self.ask("/metrics")
        if status != 200:
            return None
        series = rf'^railhead_admission_requests_total{{kind="{kind}",.*}} (\d+)'
        return sum(map(int, re.findall(series, page, re.M)))

    def leads(self):
        return "\nrailhead_leader 1\n" in self.ask("/metrics")[1]

    def runs(self):
        """Returns true, or fails if it has ended by itself."""
        if self._process.poll() is not None:
            raise AssertionError(f"the operator ended with status {self._process.returncode}")
        return True

    def stop(self):
        """Ends it as the kubelet does: it gives up the leader's Lease."""
        self._process.terminate()
        self._process.wait(COMMAND)

    def end(self):
        """Kills it without a shutdown, like a node failure."""
        self._process.kill()
        self._process.wait()
