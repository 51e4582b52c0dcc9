# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster: the control plane as local processes, the nodes as virtual machines."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import sys
import tarfile
import time

from .accelerator import use_kvm
from .console import Failure, wait_for
from .host_clock import tsc_khz
from .machine import Machine
from .network import HOST, MTU, Network
from .pki import Pki
from .process import Processes, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
from check_machine import obstacles  # noqa: E402
from kube_api import ApiError, KubeApi  # noqa: E402

# What kubectl says of a busy API server or kubelet, before they have begun anything: it waits for seconds.
LATE = re.compile("TLS handshake timeout|i/o timeout|error dialing backend")
PORT = 6443
API = f"{HOST}:{PORT}"


_RBAC = "rbac.authorization.k8s.io"
_DNS_RIGHTS = {"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "testbed-dns"},
     "rules": [
         {"apiGroups": [""], "resources": ["services", "pods", "namespaces"],
          "verbs": ["list", "watch"]},
         {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
          "verbs": ["list", "watch"]}]},
    {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "testbed-dns"},
     "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "testbed-dns"},
     "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": "system:coredns"}]}]}


def told_to_linux(kvm):
    """Returns the kernel parameters about the CPUs of a node."""
    if kvm:
        return ""
    # An emulated CPU can use the real one's time-stamp counter, while each read of the alternative (HPET) is a call
    # into the emulator. It needs no mitigations for its own speculation. And programs start at a fixed address (no
    # randomization): QEMU translates code per address, and programs start three times as slowly if all code is
    # translated again.
    khz = tsc_khz()
    return (f"tsc=reliable {f'tsc_early_khz={khz} ' if khz else ''}mitigations=off norandmaps "
            "node.emulated=1 ")


class Parts:
    """The programs and disks of a cluster, which are built elsewhere."""

    def __init__(self, kube, node, images, pause):
        self.kube = pathlib.Path(kube)
        self.node = pathlib.Path(node)
        self.images = pathlib.Path(images)
        self.pause = pause  # name of the sandbox image on the images' disk
        self.cni = None  # folder of Multus and CNI plugins, for a fourth disk
        lines = (self.node / "missing").read_text("utf-8").splitlines()
        self.missing_modules = dict(line.split(" ", 1) for line in lines)  # {kernel module: reason}


def check_machine(folder):
    """Reports everything that is missing, one line each, before anything is started."""
    missing = list(obstacles(cluster=True, emulated=True))
    for tool in ("ip", "tc", "etcd", "prometheus", "qemu-system-x86_64", "openssl", "buildah",
                 "mke2fs"):
        if not shutil.which(tool):
            missing.append(f"{tool} is not installed: run tools/install-needs.sh build testbed")
    if missing:
        raise Failure("\n".join(missing))
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(base) / "railhead")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_locked_up(console):
    """Returns whether a CPU of the node with this console has been stuck for longer than load can explain."""
    with contextlib.suppress(OSError):
        stuck = re.findall(r"soft lockup - CPU#\d+ stuck for (\d+)s", console.read_text("utf-8", "replace"))
        return any(int(seconds) >= 60 for seconds in stuck)
    return False


class Cluster:
    """One cluster at a time in a folder. Clusters of other folders (another checkout, the demo beside the end-to-end
    test) are separate: the folder determines the name of the network namespace."""

    def __init__(self, folder, parts=None, nodes=2, rails=2):
        self.folder = pathlib.Path(folder).resolve()
        self.parts = parts
        self.nodes = nodes
        self.rails = rails
        self.kubeconfig = self.folder / "pki" / "admin.kubeconfig"
        self.server = f"https://{API}"
        self.pki = None  # set by up()
        self._api = None  # set by the first request
        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        self.network = Network(f"railhead-testbed-{name}")
        self._processes = Processes(self.folder)
        self._booted = {}  # by node: (machine, files)
        self._hung = set()  # nodes that have been booted a second time

    @property
    def kvm(self):
        return use_kvm()[0]

    @property
    def rate(self):
        """The rate of a rail. It is low enough that the rails, with traffic both ways on all of them at once, are the
        limit and not the nodes' CPUs: two cores carry rdma_rxe for four rails."""
        return "100mbit" if self.kvm else "8mbit"

    # -- life ---------------------------------------------------------------------------------

    def up(self, console):
        if self.network.exists():
            raise Failure(f"a testbed is already up in {self.folder}", advice="make demo-down")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with console.step("KVM or emulated CPUs, by trying both"):
            kvm, why = use_kvm()
            console.line(f"    {'KVM' if kvm else 'emulated CPUs'}: {why}")
        with console.step(f"network: {self.rails} rails, shaped to {self.rate}"):
            self.network.create(self.rate)
        with console.step(f"control plane and {self.nodes} nodes "
                          f"({'KVM' if self.kvm else 'emulated CPUs'})"):
            self.pki, self._api = Pki(self.folder / "pki"), None
            for i in range(1, self.nodes + 1):
                self._start_node(i, Machine(self.rails))
            console.note("waiting for the API server")
            self._start_control_plane(self.pki)
            console.note("waiting for the nodes")
            self._wait_ready(range(1, self.nodes + 1))

    def down(self):
        self._processes.stop()
        self.network.delete()

    @contextlib.contextmanager
    def more_nodes(self, machines, files=()):
        """Adds nodes inside the `with`; yields their numbers. They have `files` in /etc/kubernetes."""
        numbers = list(range(self.nodes + 1, self.nodes + len(machines) + 1))
        self.nodes += len(machines)
        try:
            for i, machine in zip(numbers, machines):
                self._start_node(i, machine, files)
            self._wait_ready(numbers)
            yield numbers
        finally:
            self.nodes -= len(machines)
            for i, machine in zip(numbers, machines):
                self._remove_node(i, machine)

    @contextlib.contextmanager
    def rails_as(self, kind):
        """Makes the rails of all nodes devices of another kind inside the `with`: "siw" (iWARP) or "rxe-in-pods"."""
        if kind in self.parts.missing_modules:
            raise Failure(f"the nodes' kernel has no module {kind}: {self.parts.missing_modules[kind]}")
        nodes = range(1, self.nodes + 1)
        try:
            for i in nodes:
                self.on_node(i, f"node-rails {kind}")
            yield
        finally:
            for i in nodes:
                self.on_node(i, "node-rails rxe")

    def _remove_node(self, i, machine):
        """Ends the machine, and removes the node and all its pods from the cluster."""
        self._hung.discard(i)
        self._processes.stop_one(f"qemu-{i}")
        self.network.remove_node(i, machine.rails)
        self.kubectl("delete", "node", f"node-{i}", "--ignore-not-found")
        # No kubelet is left to report the end of the pods.
        self.kubectl("delete", "pods", "--all-namespaces", "--field-selector",
                     f"spec.nodeName=node-{i}", "--force", "--grace-period=0")

    def start(self, name, argv):
        """Starts a daemon in the testbed's network, which ends with the testbed. Returns its log."""
        return self._processes.start(name, self.network.inside(argv))

    def stop(self, name):
        """Ends a daemon of start()."""
        self._processes.stop_one(name)

    def run_inside(self, argv, **options):
        return run(self.network.inside(argv), **options)

    def check(self):
        self._processes.check()

    def _start_node(self, i, machine, files=()):
        self.network.add_node(i, machine.rails)
        self._booted[i] = machine, files
        self._boot(i)

    def _boot_again_if_hung(self, i):
        """Emulated CPUs seldom lock each other up for good while a node boots. That is not a fault of the tested
        software, so this reports it and boots the node once more."""
        console = self.folder / f"node-{i}.console"
        if i in self._hung or not is_locked_up(console):
            return
        self._hung.add(i)
        console.rename(console.with_suffix(".hung"))
        print(f"    node-{i}: its emulated CPUs have locked up (log: {console.with_suffix('.hung')}); "
              "booting it again", flush=True)
        self._processes.stop_one(f"qemu-{i}")
        self._boot(i)

    def _boot(self, i):
        machine, files = self._booted[i]
        name = f"node-{i}"
        drives = [(self.parts.node / "root.img", "snapshot=on"), (self.parts.images, "snapshot=on"),
                  (self._node_secrets(i, name, files), "readonly=on")]
        if self.parts.cni:
            drives.append((self.parts.cni / "bin.img", "readonly=on"))
        disks = []
        for k, (path, options) in enumerate(drives):
            disks += ["-drive", f"file={path},if=none,id=disk{k},format=raw,{options}",
                      "-device", f"virtio-blk-pci,drive=disk{k}"]
        management, *rails = [
            ["-netdev", f"tap,id={wire},ifname={Network.tap(i, wire)},script=no,downscript=no",
             "-device", f"virtio-net-pci,netdev={wire},romfile=,host_mtu={MTU},"
             f"mac=52:54:00:00:0{k}:0{i}"] for k, wire in enumerate(Network.bridges(machine.rails))]
        for rail, wire in enumerate(rails):
            wire[-1] += machine.bus_of_rail(rail)
        # Paths of sockets are limited to 108 bytes: relative to the folder in which QEMU runs.
        self.start(f"qemu-{i}", [
            "qemu-system-x86_64", "-accel", "kvm" if self.kvm else "tcg,thread=multi",
            # Under emulation, carry-less multiplication is far slower than the CRC tables that it replaces, and every
            # RoCE packet has a CRC. The instruction that copies many bytes (ERMS) copies them one by one.
            "-cpu", "host" if self.kvm else "max,-pclmulqdq,-erms", "-smp", "2", "-m", "2048", "-display", "none",
            "-vga", "none", "-no-reboot", "-serial", f"file:{name}.console", "-serial",
            f"unix:{name}.control,server=on,wait=off", "-kernel", self.parts.node / "vmlinuz",
            "-initrd", self.parts.node / "initrd.gz", "-append",
            f"console=ttyS0 quiet panic=-1 {told_to_linux(self.kvm)}{machine.kernel} "
            f"node.name={name} node.id={i} "
            f"node.pause={self.parts.pause}",
            # In this order: a device that names no bus goes to the only bus, until the board adds others.
            *disks, *management, *machine.board, *sum(rails, [])])

    def _node_secrets(self, i, name, more):
        """Returns the node's keys and other files: a tar that the node reads from a separate disk."""
        pki, server = self.pki, self.server
        serving = pki.issue(f"{name}-serving", name, "system:nodes", (f"IP:10.0.9.{i}", f"DNS:{name}"))
        files = {
            "ca.crt": pki.ca,
            "kubelet.kubeconfig": pki.kubeconfig(f"{name}-kubelet", server, f"system:node:{name}",
                                                 "system:nodes"),
            "kube-proxy.kubeconfig": pki.kubeconfig(f"{name}-kube-proxy", server,
                                                    "system:kube-proxy"),
            "kubelet-serving.crt": serving[0],
            "kubelet-serving.key": serving[1],
        }
        path = pki.folder / f"{name}.tar"
        path.touch(mode=0o600)
        with tarfile.open(path, "w") as tar:
            for arcname, source in files.items():
                tar.add(source, arcname)
            for source in more:
                tar.add(source, source.name)
        return path

    def _start_control_plane(self, pki):
        kube, folder, server = self.parts.kube, self.folder, self.server
        etcd_crt, etcd_key = pki.issue("etcd", "etcd", sans=("IP:127.0.0.1",))
        api_crt, api_key = pki.issue("apiserver", "kube-apiserver", sans=(
            f"IP:{HOST}", "IP:10.96.0.1", "DNS:kubernetes", "DNS:kubernetes.default",
            "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local"))
        kubelet_crt, kubelet_key = pki.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client",
                                             "system:masters")
        accounts = pki.key_pair("service-accounts")
        pki.kubeconfig("admin", server, "admin", "system:masters")
        self.start("etcd", [
            "etcd", "--data-dir", folder / "etcd", "--listen-client-urls", "https://127.0.0.1:2379",
            "--advertise-client-urls", "https://127.0.0.1:2379", "--listen-peer-urls",
            "http://127.0.0.1:2380", "--cert-file", etcd_crt, "--key-file", etcd_key,
            "--trusted-ca-file", pki.ca, "--client-cert-auth", "--unsafe-no-fsync"])
        log = self.start("apiserver", [
            kube / "kube-apiserver", "--etcd-servers=https://127.0.0.1:2379",
            f"--etcd-cafile={pki.ca}", f"--etcd-certfile={etcd_crt}", f"--etcd-keyfile={etcd_key}",
            "--bind-address=0.0.0.0", f"--advertise-address={HOST}", "--secure-port=6443",
            f"--client-ca-file={pki.ca}", f"--tls-cert-file={api_crt}",
            f"--tls-private-key-file={api_key}", f"--kubelet-client-certificate={kubelet_crt}",
            f"--kubelet-client-key={kubelet_key}", f"--kubelet-certificate-authority={pki.ca}",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--service-account-issuer=https://kubernetes.default.svc", "--anonymous-auth=false",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            # Webhooks are called at pod addresses, since kube-proxy runs in the nodes only.
            "--enable-aggregator-routing=true"])

        def ready():
            self.check()
            return self._kube_api().is_ready()

        wait_for("the API server is ready", ready, 300, log=log)
        manager = pki.kubeconfig("controller-manager", server, "system:kube-controller-manager")
        self.start("controller-manager", [
            kube / "kube-controller-manager", f"--kubeconfig={manager}",
            f"--authentication-kubeconfig={manager}", f"--authorization-kubeconfig={manager}",
            f"--service-account-private-key-file={accounts}", "--use-service-account-credentials",
            f"--root-ca-file={pki.ca}", "--leader-elect=false", f"--cert-dir={pki.folder}/manager"])
        scheduler = pki.kubeconfig("scheduler", server, "system:kube-scheduler")
        self.start("scheduler", [
            kube / "kube-scheduler", f"--kubeconfig={scheduler}", "--leader-elect=false",
            f"--authentication-kubeconfig={scheduler}", f"--authorization-kubeconfig={scheduler}",
            f"--cert-dir={pki.folder}/scheduler"])
        self.apply(json.dumps(_DNS_RIGHTS))
        dns = pki.kubeconfig("coredns", server, "system:coredns")
        (folder / "Corefile").write_text(
            f".:53 {{\n  bind {HOST}\n  errors\n  kubernetes cluster.local in-addr.arpa ip6.arpa {{\n"
            f"    kubeconfig {dns}\n  }}\n}}\n")
        self.start("coredns", [kube / "coredns", "-conf", folder / "Corefile"])

    def _wait_ready(self, numbers):
        missing = {f"node-{i}": "has not registered" for i in numbers}

        def ready():
            self.check()
            for i in numbers:
                self._boot_again_if_hung(i)
            try:
                nodes = self.get("nodes")["items"]
            except Failure:
                return False
            for node in nodes:
                for condition in node["status"]["conditions"]:
                    if condition["type"] != "Ready" or node["metadata"]["name"] not in missing:
                        continue
                    missing[node["metadata"]["name"]] = condition["message"]
                    if condition["status"] == "True":
                        del missing[node["metadata"]["name"]]
            return not missing

        try:
            wait_for("the nodes are Ready", ready, 1200, interval=0.5)
        except Failure as failure:
            name = min(missing)
            told = "; ".join(f"{node}: {why}" for node, why in sorted(missing.items()))
            raise Failure(f"{failure}: {told}; the last words of its kubelet: {self._kubelet_says(name)}",
                          log=self.folder / f"{name}.console") from None

    def _kubelet_says(self, name):
        """Returns the last log lines of a node's kubelet, if the node responds."""
        try:
            return self.on_node(int(name.partition("-")[2]), "tail -n 4 /var/log/kubelet.log", 20)[1]
        except (Failure, OSError) as failure:
            return f"({failure})"

    # -- use ----------------------------------------------------------------------------------

    def kubectl(self, *words, stdin=None, check=True, seconds=600):
        command = [self.parts.kube / "kubectl", "--kubeconfig", self.kubeconfig, *words]
        for _ in range(5):
            done = self.run_inside(command, stdin=stdin, check=False, seconds=seconds)
            if done.returncode == 0 or not LATE.search(done.stderr):
                break
            time.sleep(1)
        if check and done.returncode != 0:
            raise Failure(f"kubectl {' '.join(map(str, words))[:300]}: exit {done.returncode}: "
                          f"{' '.join((done.stderr or done.stdout).strip().splitlines()[-3:])}")
        return done

    def helm(self, *words, check=True, seconds=900):
        env = dict(os.environ, HELM_CACHE_HOME=str(self.folder / "helm"),
                   HELM_CONFIG_HOME=str(self.folder / "helm"), HELM_DATA_HOME=str(self.folder / "helm"))
        return self.run_inside([self.parts.kube / "helm", "--kubeconfig", self.kubeconfig, *words],
                               check=check, seconds=seconds, env=env, log=self.folder / "helm.log")

    def get(self, *words):
        """Returns the JSON that `kubectl get` prints, without starting a process: the emulated nodes need the CPU."""
        try:
            return self._kube_api().get(*words)
        except ApiError as error:
            raise Failure(f"get {' '.join(words)}: {error}") from error

    def _kube_api(self):
        if self._api is None:
            keys = self.kubeconfig.parent
            context = ssl.create_default_context(cafile=keys / "ca.crt")
            context.load_cert_chain(keys / "admin.crt", keys / "admin.key")
            self._api = KubeApi((HOST, PORT), context, connect=self.network.connect)
        return self._api

    def apply(self, manifest):
        return self.kubectl("apply", "-f", "-", stdin=manifest)

    def on_node(self, i, command, seconds=300, check=True):
        """Runs a shell line on a node, over its serial line; returns (exit code, output)."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(f"/proc/self/fd/{folder}/node-{i}.control")
                line.sendall(command.encode() + b"\n")
                answer, deadline = b"", time.monotonic() + seconds
                while not (end := re.search(rb"^::exit (\d+)\r?\n", answer, re.M)):
                    line.settimeout(max(0.01, deadline - time.monotonic()))
                    try:
                        answer += line.recv(65536)
                    except TimeoutError:
                        raise Failure(f"node-{i}: no answer within {seconds} s to: {command}",
                                      log=self.folder / f"node-{i}.console") from None
        finally:
            os.close(folder)
        code, text = int(end[1]), answer[:end.start()].decode(errors="replace").replace("\r\n", "\n")
        if check and code != 0:
            raise Failure(f"node-{i}: exit {code} from: {command}: {text.strip()[-300:]}")
        return code, text
