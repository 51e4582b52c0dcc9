# SPDX-License-Identifier: Apache-2.0
"""The real controllers of JobSet, LeaderWorkerSet, TrainJob, Kueue and Kubeflow's training operator, for the tests'
API server."""

import base64
import contextlib
import dataclasses
import os
import pathlib
import shutil
import socket
import subprocess

import yaml

from control_plane import answers, certificate, free_port, wait_until

FOLDER = pathlib.Path(os.environ.get("RAILHEAD_CONTROLLERS", ""))  # tests/testbed/build-controllers.sh

# Where a controller looks for its certificate, below its folder for temporary files.
CERTIFICATES = "k8s-webhook-server/serving-certs"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Properties of one controller."""

    waits_for: str  # the last of its own kinds that it needs to start
    group: str = ""  # API group of its configuration; empty: it has flags instead
    certificate_field: str = ""  # field of its configuration for the certificate, which the test provides
    more: tuple = ()  # further fields of its configuration
    flags: tuple = ()
    # A folder with certificates, below its folder for temporary files, and the path where the program expects it,
    # whatever its configuration says.
    mount: tuple = ()


KINDS = {
    "jobset": Kind("jobsets.jobset.x-k8s.io", "config.jobset.x-k8s.io/v1alpha1", "internalCertManagement"),
    "lws": Kind(
        "leaderworkersets.leaderworkerset.x-k8s.io",
        "config.lws.x-k8s.io/v1alpha1",
        "internalCertManagement",
    ),
    "trainer": Kind("trainjobs.trainer.kubeflow.org", "config.trainer.kubeflow.org/v1alpha1", "certManagement"),
    "kueue": Kind(
        "workloads.kueue.x-k8s.io",
        "config.kueue.x-k8s.io/v1beta2",
        "internalCertManagement",
        (("integrations", {"frameworks": ["batch/job"]}),),
        # Its own API server, which the tests do not use.
        ("--feature-gates=VisibilityOnDemand=false",),
        mount=("etc", "/etc"),
    ),
    "training": Kind("xgboostjobs.kubeflow.org", mount=(CERTIFICATES, f"/tmp/{CERTIFICATES}")),
}
METRICS = "etc/kueue/metrics/certs"  # Kueue's
# Kueue has webhooks for the kinds of all controllers that it supports; these are for its own kinds, and for Jobs.
KUEUES = ("job", "clusterqueue", "resourceflavor", "workload", "cohort")
# The training operator creates the certificate for these webhooks itself, by this fixed name, and then waits for it.
TRAINING_WEBHOOKS = "validator.training-operator.kubeflow.org"


def one_version(crd):
    """Returns a Kueue kind with only the version that Kueue uses. Converting to its other version needs a webhook."""
    versions = [version for version in crd["spec"]["versions"] if version["name"] == "v1beta2"]
    return crd | {"spec": crd["spec"] | {"versions": [versions[0] | {"storage": True}]}}


def wait_until_webhooks_are_known(cluster):
    """Waits until the API server calls all webhooks that have been created before: it learns of them a moment later, in
    their order, and so of these last ones, which nobody answers."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    kinds = ("Mutating", "Validating")
    made = [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
         "metadata": {"name": "last"},
         "webhooks": [{"name": "last.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                       "failurePolicy": "Fail", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": rules,
                       "objectSelector": {"matchLabels": {"test/last": kind}}}]}
        for kind in kinds
    ]
    objects = [{"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": f"last-{kind.lower()}", "labels": {"test/last": kind}}} for kind in kinds]

    def known():
        told = cluster.kubectl("create", "--dry-run=server", objects=objects, check=False).stderr
        return told.count("last.example.com") >= len(kinds)

    cluster.kubectl("create", objects=made)
    try:
        wait_until(known, "the API server's view of the webhooks")
    finally:
        cluster.kubectl("delete", *(f"{one['kind']}/last" for one in made))


class JobController:
    """A process of a controller, with its kinds and its webhooks, which the API server calls on this machine."""

    def __init__(self, cluster, folder, name):
        self._cluster, self._name, self._kind = cluster, name, KINDS[name]
        self.log = folder / f"{name}.log"
        crt, key = certificate(folder, f"{name}-webhook")
        temporary = folder / f"{name}-temporary"
        for certificates in (temporary / CERTIFICATES, temporary / METRICS):
            certificates.mkdir(parents=True)
            shutil.copy(crt, certificates / "tls.crt")
            shutil.copy(key, certificates / "tls.key")
        self._certificates = temporary / CERTIFICATES
        self._port, self._health = free_port(), free_port()
        self._client = {"caBundle": base64.b64encode(crt.read_bytes()).decode()}
        # The kinds and webhooks from the module's manifests.
        made = yaml.load_all((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)
        made = [one for one in made if one]
        self._webhooks = [one for one in made if "webhooks" in one]
        self._called = []
        kinds = [one for one in made if "webhooks" not in one]
        if name == "kueue":
            kinds = [one_version(one) for one in kinds]
        cluster.kubectl("create", objects=kinds)
        wait_until(
            lambda: cluster.kubectl("get", self._kind.waits_for, check=False).returncode == 0,
            self._kind.waits_for,
        )
        self._argv = [*self._room(temporary), *self._command(folder)]
        self._environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "TMPDIR": str(temporary)}
        self.start()

    def start(self):
        """Also again, after end()."""
        with open(self.log, "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(self._argv, env=self._environment, stdout=log, stderr=log)

    def _command(self, folder):
        program = FOLDER / f"{self._name}-controller"
        if self._kind.group:
            path = folder / f"{self._name}.yaml"
            path.write_text(yaml.safe_dump(self._configuration()))
            return [program, f"--config={path}", *self._kind.flags]
        self._cluster.kubectl("create", "namespace", "kubeflow")
        secret = {"apiVersion": "v1", "kind": "Secret",
                  "metadata": {"name": "training-operator-webhook-cert", "namespace": "kubeflow"}}
        none = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": TRAINING_WEBHOOKS}}
        self._cluster.kubectl("create", objects=[secret, none])
        return [program, f"--webhook-server-port={self._port}", f"--health-probe-bind-address=127.0.0.1:{self._health}",
                "--metrics-bind-address=0"]

    def _room(self, temporary):
        """Returns the command prefix by which only its program sees its mount."""
        if not self._kind.mount:
            return []
        folder, place = self._kind.mount
        script = 'mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; exec "$@"'
        return ["unshare", "--mount", "sh", "-ec", script, "sh", temporary / folder, place]

    def _configuration(self):
        return {
            "apiVersion": self._kind.group,
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            self._kind.certificate_field: {"enable": False},
            "webhook": {"port": self._port, "host": "127.0.0.1"}
            | ({} if self._name == "trainer" else {"certDir": str(self._certificates)}),
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": "0"},
            **dict(self._kind.more),
        }

    def wait_until_ready(self):
        """Call wait_until_webhooks_are_known() afterwards, once for all controllers."""
        wait_until(lambda: answers(f"http://127.0.0.1:{self._health}/readyz"), self._name, self.log)
        wait_until(self._listens, f"the webhooks of {self._name}", self.log)
        self.call_webhooks("")

    def _listens(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self._port), timeout=30).close()
            return True
        return False

    def call_webhooks(self, before):
        """Enables its webhooks, with names that begin with `before`: the API server calls them in order of names."""
        for kind, name in self._called:
            self._cluster.kubectl("delete", kind, name)
        self._called = []
        for one in self._webhooks:
            webhooks = [
                hook
                | {
                    "timeoutSeconds": 30,  # a busy machine takes longer than the usual 10
                    "clientConfig": self._client
                    | {"url": f"https://127.0.0.1:{self._port}" + hook["clientConfig"]["service"]["path"]}
                }
                for hook in one["webhooks"]
                if self._name != "kueue" or hook["name"].split(".")[0][1:] in KUEUES
            ]
            name = f"{before}{self._name}-{one['metadata']['name']}"
            made = one | {"metadata": {"name": name}, "webhooks": webhooks}
            self._cluster.kubectl("create", objects=[made])
            self._called.append((one["kind"], name))

    def end(self):
        self._process.kill()
        self._process.wait()
