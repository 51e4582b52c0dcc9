# SPDX-License-Identifier: Apache-2.0
"""Frameworks as pods, from the job's object to its end: images without Railhead, the injection of a RailProfile,
data-parallel steps whose gradients go over two rails, and each rail's bytes in Prometheus. `nccl` is a program that
loads the injected network plugin as NCCL does, and exchanges messages.

Each pod is a process with a private network: eth0, and a link for each of the node's rails. The scripts of torch, JAX
and MLX are users' scripts.

usage: frameworks_run_test.py     installs the packages that FRAMEWORKS (torch jax mlx nccl; also keras mxnet) needs from
                                  PyPI, for tests/chart/apiserver.sh frameworks_run_test, which has no network
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "frameworks"), str(ROOT / "tests" / "kube")]

import cases  # noqa: E402
from one_torch import Torch  # noqa: E402

TORCH = "2.15"
RAILS = 2
STEPS = "/mnt"  # the folder `tests`, for pods
# By framework: its image, its script, and the last output of all ranks or of rank 0.
SCRIPTS = {
    "torch": ("torch", ["frameworks/steps.py", "gloo", "/tmp", "120"], r"^step 119 0\.\d+$", 1),
    "jax": ("mpi", ["mpi/jax_steps.py"], r"^rank \d+: \d{2,} collectives are right$", 2),
    "mlx": ("mpi", ["mpi/mlx_steps.py", "6000"], r"^rank \d+: \d{2,} collectives are right$", 2),
    "nccl": ("mpi", ["nccl/pod.py", "500"], r"^rank \d+: \d{2,} messages are right$", 2),
    "keras": ("keras", ["training/keras_steps.py"], r"^rank \d+ is done$", 2),
    "mxnet": ("mxnet", ["training/mxnet_steps.py", "1000"], r"^rank \d+ is done$", 2),
}
FRAMEWORKS = os.environ.get("FRAMEWORKS", "torch jax mlx nccl").split()
PROFILE = {
    "fabric": "RoCE",
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    "inject": {"runtime": {"image": "example.com/railhead/inject:test", "frameworks": ["torch", "jax", "mlx"]},
               "ncclPlugin": {"image": "example.com/railhead/inject:test"}},
    "env": {"RAILHEAD_TORCH_REPLACE": "gloo"},
}
LIBRARIES = "/opt/railhead"
# The kubelet's part: the container gets the pod's volume, which the init container has filled. A /tmp of its own hides a
# checkout that is there.
CONTAINER = f"""
mount --bind {shlex.quote(str(ROOT / "tests"))} {STEPS}
mount -t tmpfs none /opt
mkdir {LIBRARIES}
mount --bind "$1" {LIBRARIES}
mount -t tmpfs none /tmp
shift
exec nsenter --net="$@"
"""
# The init container in its image's root.
INIT = """
mkdir -p "$1/opt/railhead"
mount --bind "$2" "$1/opt/railhead"
root=$1
shift 2
exec chroot "$root" "$@"
"""


def python_of(image):
    if image == "torch":
        return Torch(TORCH).python
    if image == "mpi":
        return cases.kept_python("mpi", ROOT / "tests" / "mpi" / "requirements.txt", "--no-compile")
    return cases.kept_python(f"training-{image}", ROOT / "tests" / "training" / f"requirements-{image}.txt")


def images():
    return {SCRIPTS[name][0]: python_of(SCRIPTS[name][0]) for name in FRAMEWORKS}


if __name__ == "__main__":
    images()
    sys.exit(0)

from apiserver import profile  # noqa: E402
from job_controllers import JobController, wait_until_webhooks_are_known  # noqa: E402
from jobs_run_test import kubeflow  # noqa: E402
from owner_scene import HCAS, OwnerScene  # noqa: E402
from pod_processes import PodProcesses  # noqa: E402

from control_plane import free_port, wait_until  # noqa: E402

KINDS = {"torch": ("PyTorchJob", "pytorch", "Master"), "jax": ("JAXJob", "jax", "Worker"),
         "keras": ("TFJob", "tensorflow", "Chief")}


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class PodNetworks:
    """eth0 and rail0, rail1, ... in a network namespace for each pod; a bridge joins all interfaces of one name."""

    ETH = "10.78.0."

    def __init__(self):
        self._holders = {}
        for name in ("eth", *(f"rail{rail}" for rail in range(RAILS))):
            ip("link", "add", f"br-{name}", "type", "bridge")
            ip("link", "set", f"br-{name}", "up")
        ip("address", "add", f"{self.ETH}1/24", "dev", "br-eth")

    def end(self):
        for holder in self._holders.values():
            holder.kill()
            holder.wait()

    def namespace(self, address):
        """Returns the file of the namespace for the pod with this address."""
        if address not in self._holders:
            self._holders[address] = self._make(address)
        return f"/proc/{self._holders[address].pid}/ns/net"

    def _make(self, address):
        number = address.rpartition(".")[2]
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        with holder.stdout as ready:
            ready.readline()
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net", "ip"]
        for name, interface, prefix in (("eth", "eth0", self.ETH),
                                        *((f"rail{rail}", f"rail{rail}", f"10.79.{rail}.") for rail in range(RAILS))):
            ip("link", "add", f"{name}-{number}", "type", "veth", "peer", "name", interface, "netns", holder.pid)
            ip("link", "set", f"{name}-{number}", "master", f"br-{name}", "up")
            subprocess.run([*inside, "address", "add", f"{prefix}{number}/24", "dev", interface], check=True)
            subprocess.run([*inside, "link", "set", interface, "up"], check=True)
        subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
        return holder


class Prometheus:
    """A real Prometheus that scrapes all possible pod addresses: jobs here end before discovery would find them."""

    PORT = "9402"

    def __init__(self, folder):
        data = folder / "prometheus"
        data.mkdir()
        self._url = f"http://127.0.0.1:{free_port()}"
        addresses = [f"{PodNetworks.ETH}{number}:{self.PORT}" for number in range(2, 2 + 2 * len(SCRIPTS))]
        # Often, as jobs are short; and with patience, as a busy machine is slow, on which they are longer.
        scrapes = [{"job_name": f"every {interval}", "scrape_interval": interval, "scrape_timeout": interval,
                    "honor_labels": True, "static_configs": [{"targets": addresses}]} for interval in ("500ms", "5s")]
        (data / "prometheus.yml").write_text(json.dumps({"scrape_configs": scrapes}))
        with open(data / "log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={data}/prometheus.yml", f"--storage.tsdb.path={data}/data",
                 f"--web.listen-address={self._url.removeprefix('http://')}"], stdout=log, stderr=log)

    def end(self):
        self._process.kill()
        self._process.wait()

    def query(self, expression):
        """Returns {labels: value}; labels are tuples of values, in the order of the names."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError):
            with opener.open(f"{self._url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}", timeout=60) as got:
                rows = json.load(got)["data"]["result"]
            return {tuple(value for _, value in sorted(row["metric"].items())): float(row["value"][1]) for row in rows}
        return {}


class FrameworksRun(OwnerScene):
    values = ("--set=operator.gangs.kinds={PyTorchJob,JAXJob,TFJob}",)

    @classmethod
    def setUpClass(cls):
        cls.pythons = images()
        super().setUpClass()
        controller = JobController(cls.cluster, cls.folder, "training")
        cls.addClassCleanup(controller.end)
        controller.wait_until_ready()
        wait_until_webhooks_are_known(cls.cluster)
        cls.cluster.start_scheduler()
        cls.cluster.kubectl("create", objects=[profile("frameworks", PROFILE)])
        [wheel] = (ROOT / "out" / "wheel").glob("railhead-*.whl")
        cls.image = cls.folder / "inject"
        cases.run(ROOT / "images" / "inject" / "stage.sh", wheel, cls.image)
        cls.networks, cls.prometheus = PodNetworks(), Prometheus(cls.folder)
        cls.addClassCleanup(cls.networks.end)
        cls.addClassCleanup(cls.prometheus.end)
        wait_until(lambda: cls.prometheus.query("up"), "the first scrapes")
        rails = ",".join(f"rail{rail}" for rail in range(RAILS))
        # Replaces a node agent's information about rails, since the nodes have no RDMA devices.
        cls.processes = PodProcesses(cls.cluster, cls.folder, cls.start,
                                     {"RAILHEAD_TRANSPORT": "tcp", "RAILHEAD_SOCKET_IFNAME": rails,
                                      "RAILHEAD_TIMEOUT_SECONDS": "600"}, PodNetworks.ETH)
        cls.addClassCleanup(cls.processes.end)

    @classmethod
    def start(cls, pod):
        """Runs the pod's init containers, and returns the command of its container."""
        name, address = pod["metadata"]["name"], cls.processes.address(pod)
        volume = cls.folder / f"{name}.libraries"
        volume.mkdir()
        for init in pod["spec"].get("initContainers", []):
            if init["image"] != PROFILE["inject"]["runtime"]["image"]:
                continue  # the training operator's, which waits until DNS resolves the master
            cases.run("unshare", "--mount", "sh", "-ec", INIT, "init", cls.image, volume, *init["command"])
        [container] = pod["spec"]["containers"]
        return ["sh", "-ec", CONTAINER, "container", volume, cls.networks.namespace(address),
                cls.pythons[container["image"]], "-B", *container["args"]]

    def run_framework(self, framework):
        """Runs two pods of the framework's kind of job; returns their output."""
        kind, container, first = KINDS.get(framework, ("PyTorchJob", "pytorch", "Master"))
        image, (script, *arguments), _, _ = SCRIPTS[framework]
        replicas = {first: 2} if first == "Worker" else {first: 1, "Worker": 1}
        job = kubeflow(kind, framework, container, **replicas)
        for spec in next(iter(job["spec"].values())).values():
            [main] = spec["template"]["spec"]["containers"]
            main |= {"image": image, "args": [f"{STEPS}/{script}", *arguments],
                     "resources": {"limits": {"rdma/hca": HCAS}},
                     "env": [{"name": name, "value": value} for name, value in (
                         ("OMP_NUM_THREADS", "1"), ("HOME", "/tmp"), ("CUDA_VISIBLE_DEVICES", ""),
                         ("TF_CPP_MIN_LOG_LEVEL", "2"), ("NCCL_DEBUG", "INFO"))]}
        self.cluster.kubectl("create", objects=[job])
        self.addCleanup(self.cluster.kubectl, "delete", kind, framework)

        def ended():
            self.processes.look(list(self.pods_of(framework).values()))
            phases = [pod.get("status", {}).get("phase") for pod in self.pods_of(framework).values()]
            self.assertNotIn("Failed", phases, self.processes.outputs)
            return phases == ["Succeeded"] * 2
        cases.wait_until(ended, self.replica.log.read_text, 1800)
        self.wait_for_condition(kind.lower(), framework, "Succeeded")
        return {name: self.processes.outputs[name] for name in self.pods_of(framework)}

    def check(self, framework):
        outputs = self.run_framework(framework)
        _, _, said, ranks = SCRIPTS[framework]
        text = "\n".join(outputs.values())
        self.assertEqual(len(re.findall(said, text, re.M)), ranks, text)
        pods = self.pods_of(framework).values()
        self.assertEqual({pod["metadata"]["annotations"]["prometheus.io/port"] for pod in pods}, {Prometheus.PORT})
        pages = [f"{self.processes.address(pod)}:{Prometheus.PORT}" for pod in pods]
        sent = self.prometheus.query(
            'max by (instance, rail) (max_over_time(railhead_rail_transmit_bytes_total{transport="tcp", '
            f'instance=~"{"|".join(pages)}"}}[15m]))')
        self.assertEqual(set(sent), {(page, str(rail)) for page in pages for rail in range(RAILS)}, sent)
        self.assertTrue(all(sent.values()), sent)
        print(f"{framework}: 2 pods, a rail's bytes {min(sent.values()):,.0f} to {max(sent.values()):,.0f}", file=sys.stderr)

    def test_frameworks(self):
        for framework in FRAMEWORKS:
            with self.subTest(framework):
                self.check(framework)
