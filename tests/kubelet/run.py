#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The node agent against the real kubelet, on the tree of a DGX H100: no virtual machine, no cluster.

usage: run.py [TROUBLES]     how many restarts, kills and deleted sockets to live through (default 50)

The kubelet and its containerd run on this machine, in namespaces whose network, /var/lib/kubelet, /run
and /dev are their own. Its pods are static ones; their only image waits for a signal and does nothing.
"""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import ssl
import stat
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Console, Failure, wait_for  # noqa: E402
from railbed.image import layer_of, write_image  # noqa: E402
from railbed.process import run  # noqa: E402

OUT = ROOT / "out" / "kubelet"
KUBELET_ROOT = pathlib.Path("/var/lib/kubelet")
PLUGINS = KUBELET_ROOT / "device-plugins"
READY = "http://127.0.0.1:18080/readyz"
METRICS = "http://127.0.0.1:18081/metrics"
SERVICES = ("containerd", "kubelet", "agent", "node")
GPU, HCA = "example.com/gpu", "rdma/hca"
CDI = pathlib.Path("/var/run/cdi")
IMAGE = "localhost/pause:test"
# Seconds until something must have happened: longer than a machine with ten times its load takes.
PATIENCE = 300

CONTAINERD = """version = 3
root = "{out}/containerd"
state = "{out}/containerd-state"
[grpc]
address = "{out}/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{image}"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true  # root in a container may not be allowed to lower it
"""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: {out}/manifests
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
containerRuntimeEndpoint: unix://{out}/containerd.sock
failSwapOn: false
localStorageCapacityIsolation: false
address: 127.0.0.1
port: 20250
readOnlyPort: 0
healthzPort: 0
evictionHard: {{memory.available: "1Mi", nodefs.available: "0%", imagefs.available: "0%"}}
"""


CTR = ["ctr", "-a", OUT / "containerd.sock", "-n", "k8s.io"]


def make_image():
    """An image of one program, which waits for a signal."""
    run(["gcc", "-static", "-O2", "-o", OUT / "pause", ROOT / "tests" / "testbed" / "pause" / "pause.c"])
    return write_image(OUT / "image.tar", IMAGE, [layer_of({"pause": (OUT / "pause").read_bytes()})],
                       ("/pause",))


def private_folders():
    """Mounts /run, /var/lib/kubelet and /dev anew, so that nothing we put there is seen outside."""
    run(["mount", "--make-rprivate", "/"])
    for folder in ("/run", KUBELET_ROOT):
        run(["mount", "-t", "tmpfs", "tmpfs", folder])
    CDI.mkdir()
    dev = OUT / "dev"
    dev.mkdir()
    run(["mount", "-t", "tmpfs", "tmpfs", dev])
    for path in pathlib.Path("/dev").iterdir():
        info = path.lstat()
        if path.is_symlink():
            (dev / path.name).symlink_to(os.readlink(path))
        elif path.is_dir():
            (dev / path.name).mkdir()
            run(["mount", "--rbind", path, dev / path.name])
        else:
            os.mknod(dev / path.name, info.st_mode, info.st_rdev)
            os.chmod(dev / path.name, stat.S_IMODE(info.st_mode))
    # What the machine's HCAs would have: any harmless device will do.
    (dev / "infiniband").mkdir(exist_ok=True)
    for name in ["rdma_cm", *(f"uverbs{i}" for i in range(16))]:
        os.mknod(dev / "infiniband" / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    run(["mount", "--move", dev, "/dev"])


class Node:
    """The services of one node, each of which may be killed and started again."""

    def __init__(self, kube_bin):
        build = ROOT / "build" / "release" / "device-plugin"
        self._children = {}
        (OUT / "manifests").mkdir()
        (OUT / "containerd.toml").write_text(CONTAINERD.format(out=OUT, image=IMAGE))
        (OUT / "kubelet.yaml").write_text(KUBELET.format(out=OUT))
        PLUGINS.mkdir(parents=True)
        os.environ["PATH"] = f"{kube_bin}:{os.environ['PATH']}"
        self._commands = {
            "containerd": ["containerd", "-c", OUT / "containerd.toml"],
            "kubelet": ["kubelet", f"--config={OUT}/kubelet.yaml", "--hostname-override=node",
                        f"--root-dir={KUBELET_ROOT}", "--v=3"],
            "node": [build / "railhead-test-node", "DGX H100", PLUGINS],
        }
        self.start("containerd")
        wait_for("containerd listens", (OUT / "containerd.sock").exists, PATIENCE)
        run([*CTR, "images", "import", make_image()], log=OUT / "containerd.log")
        self.start("node")
        self.tree = pathlib.Path(self._children["node"].stdout.readline().decode().strip())
        self._commands["agent"] = [
            build / "railhead-device-plugin", "--root", self.tree, "--node-name", "node",
            "--health-address", "127.0.0.1:18080", "--metrics-address", "127.0.0.1:18081"]
        self.start("kubelet")
        self.start("agent")

    def start(self, name):
        log = open(OUT / f"{name}.log", "ab")
        self._children[name] = subprocess.Popen(
            [str(word) for word in self._commands[name]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if name == "node" else log, stderr=log)

    def stop(self, name, how=signal.SIGKILL):
        child = self._children.pop(name)
        child.send_signal(how)
        child.wait(PATIENCE)

    def runs(self, name):
        return name in self._children

    def restart_agent(self, *flags, how=signal.SIGKILL, meanwhile=lambda: None):
        """With these flags beside those that it has."""
        self.stop("agent", how)
        meanwhile()
        self._commands["agent"] += flags
        self.start("agent")
        wait_for("the agent is served again", self.ready, PATIENCE, log=OUT / "agent.log", interval=0.01)

    def stop_all(self):
        for name in reversed(SERVICES):
            if name in self._children:
                self.stop(name)

    # -- what the kubelet says ----------------------------------------------------------------

    def _checkpoint(self):
        try:
            return json.loads((PLUGINS / "kubelet_internal_checkpoint").read_text())["Data"]
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def registered(self):
        """Resource to the number of its healthy devices."""
        return {resource: len(ids)
                for resource, ids in (self._checkpoint().get("RegisteredDevices") or {}).items()}

    def held(self):
        """Pod to resource to the ids that the kubelet has given it, from its own checkpoint. A pod
        that has gone may still be there: the kubelet forgets it with its next allocation."""
        held = {}
        for entry in self._checkpoint().get("PodDeviceEntries") or []:
            ids = [i for of_numa_node in entry["DeviceIDs"].values() for i in of_numa_node]
            held.setdefault(entry["PodUID"], {})[entry["ResourceName"]] = sorted(ids)
        return held

    def pods(self):
        """The pods that the kubelet knows, by uid; None while it does not answer."""
        context = ssl._create_unverified_context()  # its certificate is its own, on loopback
        try:
            with urllib.request.urlopen("https://127.0.0.1:20250/pods", timeout=30,
                                        context=context) as page:
                return {pod["metadata"]["uid"]: pod for pod in json.load(page)["items"] or []}
        except (OSError, http.client.HTTPException, ValueError):  # it may end, or be late, at any byte
            return None

    # -- pods ---------------------------------------------------------------------------------

    def submit(self, name, others=None, in_init=False, **limits):
        """Makes a static pod and returns what it was given, by resource. `others`: beside GPUs and HCAs.
        `in_init`: an init container gets all of it."""
        resources = {{"gpus": GPU, "hcas": HCA}[key]: str(count) for key, count in limits.items()}
        resources |= {resource: str(count) for resource, count in (others or {}).items()}
        main = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never"}
        holder = main | {"resources": {"limits": resources}}
        containers = {"initContainers": [holder | {"name": "init"}], "containers": [main]} if in_init else {
            "containers": [holder]}
        new = OUT / f"{name}.new"
        new.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 0} | containers}))
        new.rename(OUT / "manifests" / f"{name}.json")

        def given():
            status = (self.pods() or {}).get(name, {}).get("status", {})
            if status.get("phase") == "Failed":
                raise Failure(f"the kubelet refused {name}: {status.get('reason')}: "
                              f"{status.get('message')}", log=OUT / "kubelet.log")
            held = self.held().get(name, {})
            return held if set(held) == set(resources) else None

        return wait_for(f"{name} is admitted", given, PATIENCE, log=OUT / "kubelet.log", interval=0.1)

    def delete(self, name):
        """Takes the pod away, and waits until the kubelet has."""
        (OUT / "manifests" / f"{name}.json").unlink()
        def gone():
            pods = self.pods()
            return pods is not None and name not in pods

        wait_for(f"{name} is gone", gone, PATIENCE, log=OUT / "kubelet.log", interval=0.1)

    def order(self, name):
        """The resources of the pod in the order in which the kubelet has allocated them."""
        text = (OUT / "kubelet.log").read_text(errors="replace")
        lines = [line for line in text.splitlines()
                 if "Looking for needed resources" in line and f'{name}-node"' in line]
        return [re.search(r'resourceName="([^"]*)"', line)[1] for line in lines]

    def statuses(self, name):
        """Of the pod's containers, init containers first."""
        status = (self.pods() or {}).get(name, {}).get("status", {})
        return status.get("initContainerStatuses", []) + status.get("containerStatuses", [])

    def health(self, name):
        """Device ids to their health, as the pod's status tells it."""
        return {device["resourceID"]: device.get("health") for status in self.statuses(name)
                for resource in status.get("allocatedResourcesStatus", [])
                for device in resource.get("resources", [])}

    # -- containers ---------------------------------------------------------------------------

    def container(self, name, other_than=None):
        """Waits until the pod's container runs, and returns its id."""
        def running():
            for status in self.statuses(name):
                container = status.get("containerID", "").removeprefix("containerd://")
                if "running" in status["state"] and container not in ("", other_than):
                    return container
            return None

        return wait_for(f"the container of {name} runs", running, PATIENCE, log=OUT / "kubelet.log", interval=0.1)

    def spec(self, container):
        """What the container runtime was told to run."""
        return json.loads(run([*CTR, "containers", "info", container]).stdout)["Spec"]

    def process(self, container):
        """The line of its first process: id, process id and state."""
        lines = run([*CTR, "tasks", "ls"]).stdout.splitlines()
        return next((line.split() for line in lines if line.startswith(container)), None)

    # -- the agent ----------------------------------------------------------------------------

    def ready(self):
        try:
            with urllib.request.urlopen(READY, timeout=10) as page:
                return page.status == 200
        except (OSError, http.client.HTTPException):
            return False

    def metric(self, text):
        """Whether the agent's page has a line that fits this pattern."""
        try:
            with urllib.request.urlopen(METRICS, timeout=10) as page:
                return re.search(f"^{text}$", page.read().decode(), re.M) is not None
        except (OSError, http.client.HTTPException):
            return False

    def agent_said(self, begin, words):
        """Whether the agent's log has these words from this byte on."""
        with open(OUT / "agent.log", encoding="utf-8") as log:
            log.seek(begin)
            return words in log.read()

    def preferences(self):
        """All that the agent has said of whom it chose devices for."""
        return re.findall(r"prefer (.*) for a container with (.*)", (OUT / "agent.log").read_text())


def rail_of(device):
    return int(re.match(r"mlx5_(\d+)-", device)[1])


def aligned_sets(node, console):
    """1, 2 and 4 GPUs with as many HCAs: the kubelet allots them in random order. When the GPUs come
    first the HCAs are those at the GPUs' switches."""
    gpus = sorted(node.submit("all", gpus=8)[GPU])
    node.delete("all")
    orders = {"GPUs first": 0, "HCAs first": 0, "HCAs first, aligned": 0}
    for number in range(100):
        # Chance decides the order: go on until both have come.
        if number >= 24 and orders["GPUs first"] and orders["HCAs first"]:
            break
        blocked = random.randrange(4)
        if blocked:
            node.submit(f"blocker-{number}", gpus=blocked)
        count = (1, 2, 4)[number % 3]
        before = len(node.preferences())
        given = node.submit(f"pod-{number}", gpus=count, hcas=count)
        told = node.preferences()[before:]
        if len(told) != 1:
            raise Failure(f"the kubelet asked {len(told)} times which HCAs are preferred", OUT / "agent.log")
        aligned = [gpus.index(g) for g in given[GPU]] == sorted(rail_of(h) for h in given[HCA])
        if told[0][1].startswith("GPU"):
            orders["GPUs first"] += 1
            if not aligned:
                raise Failure(f"GPUs {given[GPU]} got {given[HCA]}", OUT / "agent.log")
        else:
            orders["HCAs first"] += 1
            orders["HCAs first, aligned"] += aligned
        node.delete(f"pod-{number}")
        if blocked:
            node.delete(f"blocker-{number}")
    console.line(f"    {orders}")
    if not orders["GPUs first"] or not orders["HCAs first"]:
        raise Failure(f"one of the two orders never came: {orders}")


def hcas_of(node, container):
    """The rails that the container got: its environment, device nodes and rails.json must agree."""
    spec = node.spec(container)
    env = next(e for e in spec["process"]["env"] if e.startswith("NCCL_IB_HCA="))
    told = re.findall(r"mlx5_(\d+):1", env)
    mount = next(m for m in spec["mounts"] if m["destination"] == "/run/railhead/rails.json")
    rails = json.loads(pathlib.Path(mount["source"]).read_text())["rails"]
    wanted = ",".join(f"{rail['device']}:{rail['port']}:{rail['rail']}" for rail in rails)
    if env != f"NCCL_IB_HCA=={wanted}":
        raise Failure(f"{env}, but rails.json says {rails}")
    nodes = sorted(d["path"] for d in spec["linux"]["devices"] if "uverbs" in d["path"])
    if nodes != sorted(path for rail in rails for path in rail["charDevices"]):
        raise Failure(f"the container has {nodes}, but rails.json says {rails}")
    return [int(rail) for rail in told], nodes


def late_binding(node, console):
    """Each HCA for four containers, by CDI: in both orders of allocation containers get the HCAs at
    their GPUs' switches, and keep them when the agent and they start again."""
    (OUT / "agent.yaml").write_text(f"resources: [{{name: {HCA}, slots: 4}}]\n")
    node.restart_agent("--config", OUT / "agent.yaml", "--cdi-dir", CDI, how=signal.SIGTERM)
    wait_for("the kubelet has four slots of each HCA", lambda: node.registered().get(HCA) == 32, PATIENCE,
             log=OUT / "agent.log")
    gpus = sorted(node.submit("every", gpus=8)[GPU])
    node.delete("every")
    orders = {(order, count): 0 for order in ("GPUs first", "HCAs first") for count in (1, 2, 4)}
    rebound = 0
    for number in range(100):
        if number >= 24 and all(orders.values()):
            break
        name, count = f"late-{number}", (1, 2, 4)[number % 3]
        blocked = random.randrange(4)
        if blocked:
            node.submit(f"other-{number}", gpus=blocked)
        given = node.submit(name, gpus=count, hcas=count)
        order = {(GPU, HCA): "GPUs first", (HCA, GPU): "HCAs first"}[tuple(node.order(name))]
        wanted = sorted(gpus.index(g) for g in given[GPU])
        container = node.container(name)
        got, nodes = hcas_of(node, container)
        if got != wanted:
            raise Failure(f"{order}: GPUs {wanted} with {given[HCA]} got HCAs {got}", OUT / "agent.log")
        orders[order, count] += 1
        if sorted(rail_of(h) for h in given[HCA]) != wanted:
            rebound += 1
            if rebound <= 3:
                starts_again(node, name, container, got, nodes)
            if rebound == 1:
                tells_of_its_hca(node, name, got[0])
        node.delete(name)
        if blocked:
            node.delete(f"other-{number}")
    told = ", ".join(f"{count} GPUs: {orders['GPUs first', count]} and {orders['HCAs first', count]}"
                     for count in (1, 2, 4))
    console.line(f"    GPUs first and HCAs first with {told}; {rebound} containers were bound to other "
                 "HCAs than the kubelet chose")
    if not all(orders.values()) or rebound < 3:
        raise Failure(f"an order never came, or nothing was bound late: {orders}, {rebound}")
    if not list(CDI.glob("railhead.io-hca_*.json")):
        raise Failure(f"there is no spec in {CDI}")
    # Kubelet cleans its file of pods that have ended when it gives devices to the next one. Until then a
    # kubelet that is young may not have told of them yet.
    node.submit("last", gpus=1)
    node.stop("agent", signal.SIGTERM)
    left = [path for folder in (CDI, PLUGINS / "railhead") if folder.exists() for path in folder.iterdir()
            if path.name != "rail-map.json"]
    if left:
        raise Failure(f"nobody holds an HCA, and the agent leaves {left}", OUT / "agent.log")


def other_offers(node, console):
    """Each rail as a resource, all HCAs as one device, and devices by their PCI addresses: what the
    kubelet gives is what the container gets."""
    def offer(config, resource, count):
        (OUT / "agent.yaml").write_text(f"resources: [{config}]\n")
        if not node.runs("agent"):
            node.start("agent")
        # A young kubelet may not have told of all pods yet, while its file has pods that have ended; it
        # cleans its file when it gives devices to the next one.
        node.submit(f"before-{resource.replace('/', '-')}", gpus=1)
        wait_for(f"the kubelet has {count} of {resource}",
                 lambda: node.registered().get(resource) == count, PATIENCE, log=OUT / "agent.log")

    offer("{name: rdma/rail, perRail: true}", "rdma/rail-7", 1)
    node.submit("rails", {"rdma/rail-5": 1, "rdma/rail-2": 1})
    got, _ = hcas_of(node, node.container("rails"))
    if got != [2, 5]:
        raise Failure(f"a container with rails 2 and 5 got {got}", OUT / "agent.log")
    node.delete("rails")

    offer("{name: rdma/all, allHcas: true, slots: 2}", "rdma/all", 2)
    for name in ("one", "two"):
        node.submit(name, {"rdma/all": 1})
        got, _ = hcas_of(node, node.container(name))
        if got != list(range(8)):
            raise Failure(f"a container with all HCAs got {got}", OUT / "agent.log")
    node.delete("one")
    node.delete("two")

    offer("{name: rdma/vf, deviceIds: pciAddress}", "rdma/vf", 8)
    given = sorted(node.submit("addresses", {"rdma/vf": 3})["rdma/vf"])
    spec = node.spec(node.container("addresses"))
    mount = next(m for m in spec["mounts"] if m["destination"] == "/run/railhead/rails.json")
    rails = json.loads(pathlib.Path(mount["source"]).read_text())["rails"]
    if given != sorted(rail["pciAddress"] for rail in rails):
        raise Failure(f"the kubelet gave {given}, and rails.json says {rails}", OUT / "agent.log")
    node.delete("addresses")
    console.line("    2 of 8 rails, all 8 HCAs for two containers, 3 HCAs by their addresses")


def starts_again(node, name, container, hcas, device_nodes):
    """The agent is killed, a driver numbers its device nodes otherwise, and the container dies: it
    starts with the same HCAs, under their new names."""
    def rename(old, new):
        for folder in ("sys/class/infiniband_verbs", "dev/infiniband"):
            (node.tree / folder / old).rename(node.tree / folder / new)

    old = pathlib.Path(device_nodes[0]).name
    node.restart_agent(meanwhile=lambda: rename(old, "uverbs15"))
    run([*CTR, "tasks", "kill", "-s", "SIGKILL", container])
    again = node.container(name, other_than=container)
    got, nodes = hcas_of(node, again)
    if got != hcas or nodes != sorted(["/dev/infiniband/uverbs15", *device_nodes[1:]]):
        raise Failure(f"HCAs {hcas} with {device_nodes} were {got} with {nodes} after a restart",
                      OUT / "agent.log")
    # Started again, so that the next pod is certain to get the old name. The container that runs has the other.
    node.restart_agent(meanwhile=lambda: rename("uverbs15", old))
    wait_for("the pod's status tells that it has another device node",
             lambda: "Unhealthy" in node.health(name).values(), PATIENCE, log=OUT / "agent.log")
    run([*CTR, "tasks", "kill", "-s", "SIGKILL", again])
    got, nodes = hcas_of(node, node.container(name, other_than=again))
    if got != hcas or nodes != device_nodes:
        raise Failure(f"HCAs {hcas} with {device_nodes} were {got} with {nodes} after another restart",
                      OUT / "agent.log")
    wait_for("the pod's status tells that all is well", lambda: set(node.health(name).values()) == {"Healthy"},
             PATIENCE, log=OUT / "agent.log")


def tells_of_its_hca(node, name, rail):
    """The pod's status tells of the HCA that its container has, whatever the kubelet chose."""
    state = node.tree / f"sys/class/infiniband/mlx5_{rail}/ports/1/state"
    before = state.read_text()
    state.write_text("1: DOWN\n")
    wait_for("the pod's status tells of an HCA that is down",
             lambda: "Unhealthy" in node.health(name).values(), PATIENCE, log=OUT / "kubelet.log")
    state.write_text(before)
    wait_for("the pod's status tells that it is up", lambda: set(node.health(name).values()) == {"Healthy"},
             PATIENCE, log=OUT / "kubelet.log")


def renumbering(node, console):
    """Two HCAs exchange their device nodes, as after a reload of the driver, while pods hold them: the
    pods' status, the log and the metrics tell, a container that starts again is refused with the reason,
    and nobody else gets the HCAs until these pods are gone."""
    verbs = node.tree / "sys/class/infiniband_verbs"

    def files():
        return {path.read_text().strip(): path for path in verbs.glob("uverbs*/ibdev")}

    def exchange(one, other):
        by_name = files()
        by_name[one].write_text(f"{other}\n")
        by_name[other].write_text(f"{one}\n")

    held = {name: node.submit(name, hcas=1)[HCA][0] for name in ("a", "b")}
    containers = {name: node.container(name) for name in held}
    hcas = {name: hca.split("-")[0] for name, hca in held.items()}
    nodes = {name: f"/dev/infiniband/{files()[hca].parent.name}" for name, hca in hcas.items()}
    exchange(*hcas.values())
    for name, hca in held.items():
        wait_for(f"the status of {name} tells", lambda: node.health(name) == {hca: "Unhealthy"}, PATIENCE,
                 log=OUT / "agent.log")
        wait_for("the metrics tell", lambda: node.metric(
            rf'railhead_device_renumbered{{.*device="{hcas[name]}",.*}} 1'), PATIENCE, log=OUT / "agent.log")
        wait_for("the log tells", lambda: node.agent_said(0, f"default/{name}-node: device nodes have changed: "
                                                             f"{hca} was given"), PATIENCE, log=OUT / "agent.log")
    wait_for("the others are offered", lambda: node.registered().get(HCA) == 6, PATIENCE, log=OUT / "agent.log")

    run([*CTR, "tasks", "kill", "-s", "SIGKILL", containers["a"]])

    def refused():
        told = [status["state"].get("waiting", {}).get("message", "") for status in node.statuses("a")]
        words = (held["a"], nodes["a"], nodes["b"], "delete the pod")
        return any(all(word in message for word in words) for message in told)

    wait_for("the container of a is refused, with both nodes and the fix", refused, PATIENCE,
             log=OUT / "kubelet.log")
    others = node.submit("others", hcas=6)[HCA]
    if set(others) & set(held.values()):
        raise Failure(f"a new pod got {others}, and pods with other device nodes have {held}")
    node.delete("others")
    node.delete("a")
    node.delete("b")
    wait_for("all are offered again", lambda: node.registered().get(HCA) == 8, PATIENCE, log=OUT / "agent.log")
    node.submit("c", hcas=8)
    got, _ = hcas_of(node, node.container("c"))
    if got != list(range(8)):
        raise Failure(f"a container with all HCAs got {got}", OUT / "agent.log")
    node.delete("c")
    console.line(f"    {held}: told, refused, and given again when the pods had gone")


def init_container(node, console):
    """A pod whose init container alone holds an HCA, which the kubelet does not list, keeps its files when
    the agent ends: the container starts again with its rails.json."""
    node.submit("init-only", in_init=True, hcas=1)
    container = node.container("init-only")
    node.restart_agent(how=signal.SIGTERM)
    run([*CTR, "tasks", "kill", "-s", "SIGKILL", container])
    hcas_of(node, node.container("init-only", other_than=container))
    node.delete("init-only")
    console.line("    its init container has started again, with its rails.json")


def troubles(node, console, count):
    """Kubelet and agent killed, sockets deleted: the devices are back, nobody loses or shares one, and
    a container that runs does not notice any of it."""
    keeper = node.submit("keeper", hcas=2)
    container = node.container("keeper")
    process = node.process(container)
    waits = []

    def kubelets_socket():
        """Which one it is; None when there is none: a kubelet that starts removes the old one first."""
        try:
            return (PLUGINS / "kubelet.sock").stat().st_ino
        except FileNotFoundError:
            return None

    def kubelet_restarts():
        old = kubelets_socket()
        node.stop("kubelet")
        node.start("kubelet")
        wait_for("the kubelet listens", lambda: kubelets_socket() not in (None, old), PATIENCE,
                 interval=0.005, log=OUT / "kubelet.log")

    def agent_is_killed():
        node.stop("agent")
        node.start("agent")

    def agent_is_replaced():
        node.stop("agent", signal.SIGTERM)
        node.start("agent")

    def sockets_are_deleted():
        for path in PLUGINS.glob("railhead-rdma-hca-*.sock"):
            path.unlink()

    for number in range(count):
        trouble = random.choice((kubelet_restarts, kubelet_restarts, agent_is_killed,
                                 agent_is_replaced, sockets_are_deleted))
        console.note(f"{number} of {count}: {trouble.__name__}")
        before = (OUT / "agent.log").stat().st_size
        trouble()
        begin = time.monotonic()
        # What is ready may be so since before the trouble; what the agent says now is of now.
        wait_for(f"the agent is served again after {trouble.__name__}",
                 lambda old=before: node.agent_said(old, "registered rdma/hca with kubelet") and node.ready(),
                 PATIENCE, log=OUT / "agent.log", interval=0.01)
        if trouble is kubelet_restarts:
            waits.append(time.monotonic() - begin)
        held = node.held()
        if held.get("keeper") != keeper:
            raise Failure(f"a pod held {keeper}, and now {held.get('keeper')}", OUT / "kubelet.log")
        if node.process(container) != process:
            raise Failure(f"{process} ran, and now {node.process(container)}", OUT / "kubelet.log")
        # Six are free, and given to one who asks for all of them.
        given = node.submit(f"new-{number}", hcas=6)
        if set(given[HCA]) & set(keeper[HCA]) or len(set(given[HCA])) != 6:
            raise Failure(f"a new pod got {given[HCA]} beside one with {keeper[HCA]}")
        node.delete(f"new-{number}")
    if node.container("keeper") != container:
        raise Failure("the kubelet has made the container anew", OUT / "kubelet.log")
    node.delete("keeper")
    if waits:
        console.line(f"    {count} troubles; after {len(waits)} kubelet restarts the devices were back "
                     f"{sorted(waits)[len(waits) // 2]:.2f} s (median), {max(waits):.2f} s (longest) "
                     "after the kubelet listened")


def inside(count, kube_bin):
    """In mount, network and process namespaces of our own."""
    console = Console()
    console.line(f"The node agent against the real kubelet. All logs are in {OUT}")
    private_folders()
    run(["ip", "link", "set", "lo", "up"])
    node = None
    try:
        with console.step("containerd, the kubelet, its GPUs and the agent"):
            node = Node(kube_bin)
            wait_for("the kubelet has all devices", lambda: node.registered() == {GPU: 8, HCA: 8}, PATIENCE,
                     log=OUT / "kubelet.log")
        with console.step("1, 2 and 4 GPUs, with as many HCAs"):
            aligned_sets(node, console)
        with console.step("device nodes that are another HCA's after a reload of the driver"):
            renumbering(node, console)
        with console.step("an init container that alone holds an HCA"):
            init_container(node, console)
        with console.step(f"{count} times the kubelet or the agent killed, or our sockets deleted"):
            troubles(node, console, count)
        with console.step("shared HCAs by CDI, bound when the GPUs are known"):
            late_binding(node, console)
        with console.step("rails as resources, all HCAs as one device, PCI addresses as ids"):
            other_offers(node, console)
        return 0
    except Failure as failure:
        console.failed(failure)
        return 1
    finally:
        if node is not None:
            node.stop_all()


def cgroups():
    """Of containers that containerd makes for a kubelet without cgroups of its own."""
    root = pathlib.Path("/sys/fs/cgroup")
    return {path for pattern in ("k8s.io", "k8s.io/*", "*/k8s.io", "*/k8s.io/*")
            for path in root.glob(pattern) if path.is_dir()}


def remove_cgroups(before):
    """Those of our containers, and then their parents, that have come since then: containers that end with their
    process namespace leave them. Another checkout may run this test, too."""
    logs = "".join(path.read_text(errors="replace") for path in OUT.glob("*.log"))
    for path in sorted(cgroups() - before, reverse=True):
        if path.name == "k8s.io" or path.name in logs:
            with contextlib.suppress(OSError):  # somebody else's, who is in it
                path.rmdir()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    if "RAILHEAD_INSIDE" in os.environ:
        return inside(count, os.environ["RAILHEAD_INSIDE"])
    kube_bin = run([ROOT / "tests" / "testbed" / "build-kube.sh"], seconds=7200).stdout.strip().splitlines()[-1]
    run(["rm", "-rf", OUT])
    OUT.mkdir(parents=True)
    before = cgroups()
    made = not KUBELET_ROOT.exists()
    KUBELET_ROOT.mkdir(parents=True, exist_ok=True)
    try:
        # A process namespace too: however this run ends, nothing of it stays. And a network namespace:
        # its ports are its own.
        return subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
                               "--mount-proc", sys.executable, __file__, str(count)],
                              env={**os.environ, "RAILHEAD_INSIDE": kube_bin}, check=False).returncode
    finally:
        if made:
            KUBELET_ROOT.rmdir()
        remove_cgroups(before)


if __name__ == "__main__":
    sys.exit(main())
