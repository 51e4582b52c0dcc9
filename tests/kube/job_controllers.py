# SPDX-License-Identifier: Apache-2.0
"""The real controllers of JobSet, LeaderWorkerSet and TrainJob, at an API server of the tests."""

import base64
import os
import pathlib
import shutil
import subprocess

import yaml

from control_plane import answers, certificate, free_port, wait_until

FOLDER = pathlib.Path(os.environ.get("RAILHEAD_CONTROLLERS", ""))  # tests/testbed/build-controllers.sh
KINDS = {
    "jobset": "jobsets.jobset.x-k8s.io",
    "lws": "leaderworkersets.leaderworkerset.x-k8s.io",
    "trainer": "trainjobs.trainer.kubeflow.org",
}
# The group of its configuration, and the field about its certificate, which comes from here.
CONFIGURATIONS = {
    "jobset": ("config.jobset.x-k8s.io", "internalCertManagement"),
    "lws": ("config.lws.x-k8s.io", "internalCertManagement"),
    "trainer": ("config.trainer.kubeflow.org", "certManagement"),
}


class JobController:
    """A process of one of them, with its kind and its webhooks, which the API server calls here."""

    def __init__(self, cluster, folder, name):
        self._cluster, self._name = cluster, name
        self.log = folder / f"{name}.log"
        crt, key = certificate(folder, f"{name}-webhook")
        # Where the trainer's looks for them, whose configuration cannot say it.
        temporary = folder / f"{name}-temporary"
        certificates = temporary / "k8s-webhook-server" / "serving-certs"
        certificates.mkdir(parents=True)
        shutil.copy(crt, certificates / "tls.crt")
        shutil.copy(key, certificates / "tls.key")
        port, health = free_port(), free_port()
        self._health = f"http://127.0.0.1:{health}/readyz"
        self._client = {"caBundle": base64.b64encode(crt.read_bytes()).decode()}
        self._url = f"https://127.0.0.1:{port}"
        group, certificate_field = CONFIGURATIONS[name]
        configuration = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            certificate_field: {"enable": False},
            "webhook": {"port": port, "host": "127.0.0.1"}
            | ({} if name == "trainer" else {"certDir": str(certificates)}),
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "metrics": {"bindAddress": "0"},
        }
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(configuration))
        # The kind, and the webhooks, as the module has them.
        made = yaml.load_all((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)
        made = [one for one in made if one]
        self._webhooks = [one for one in made if "webhooks" in one]
        self._called = []
        cluster.kubectl("create", objects=[one for one in made if "webhooks" not in one])
        wait_until(
            lambda: cluster.kubectl("get", KINDS[name], check=False).returncode == 0, KINDS[name]
        )
        with open(self.log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [FOLDER / f"{name}-controller", f"--config={path}"],
                env=os.environ
                | {"KUBECONFIG": str(cluster.kubeconfig), "TMPDIR": str(temporary)},
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self):
        wait_until(lambda: answers(self._health), self._name, self.log)
        self.call_webhooks("")

    def call_webhooks(self, before):
        """From now on, in the order of names that begin so: the API server calls them by name."""
        for kind, name in self._called:
            self._cluster.kubectl("delete", kind, name)
        self._called = []
        for one in self._webhooks:
            webhooks = [
                hook
                | {
                    "clientConfig": self._client
                    | {"url": self._url + hook["clientConfig"]["service"]["path"]}
                }
                for hook in one["webhooks"]
            ]
            name = f"{before}{self._name}-{one['metadata']['name']}"
            made = one | {"metadata": {"name": name}, "webhooks": webhooks}
            self._cluster.kubectl("create", objects=[made])
            self._called.append((one["kind"], name))

    def end(self):
        self._process.kill()
        self._process.wait()
