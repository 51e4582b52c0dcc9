#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The node agent against the real kubelet, on the tree of a DGX H100: no virtual machine, no cluster.

usage: run.py [TROUBLES]     how many restarts, kills and deleted sockets to live through (default 50)

The kubelet runs on this machine, in a mount namespace whose /var/lib/kubelet is its own. It admits
static pods, which is where devices are given out; their containers never start, as there is no image.
"""

import json
import os
import pathlib
import random
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Console, Failure, wait_for  # noqa: E402
from railbed.process import run  # noqa: E402

OUT = ROOT / "out" / "kubelet"
KUBELET_ROOT = pathlib.Path("/var/lib/kubelet")
PLUGINS = KUBELET_ROOT / "device-plugins"
READY = "http://127.0.0.1:18080/readyz"
SERVICES = ("containerd", "kubelet", "agent", "node")
GPU, HCA = "example.com/gpu", "rdma/hca"

CONTAINERD = """version = 3
root = "{out}/containerd"
state = "{out}/containerd-state"
[grpc]
address = "{out}/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "localhost/none"
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


class Node:
    """The services of one node, each of which may be killed and started again."""

    def __init__(self, kube_bin):
        build = ROOT / "build" / "release" / "device-plugin"
        self._children = {}
        (OUT / "manifests").mkdir()
        (OUT / "containerd.toml").write_text(CONTAINERD.format(out=OUT))
        (OUT / "kubelet.yaml").write_text(KUBELET.format(out=OUT))
        PLUGINS.mkdir(parents=True)
        os.environ["PATH"] = f"{kube_bin}:{os.environ['PATH']}"
        self._commands = {
            "containerd": ["containerd", "-c", OUT / "containerd.toml"],
            "kubelet": ["kubelet", f"--config={OUT}/kubelet.yaml", "--hostname-override=node",
                        f"--root-dir={KUBELET_ROOT}", "--v=2"],
            "node": [build / "railhead-test-node", "DGX H100", PLUGINS],
        }
        self.start("containerd")
        wait_for("containerd listens", (OUT / "containerd.sock").exists, 20)
        self.start("node")
        tree = self._children["node"].stdout.readline().decode().strip()
        self._commands["agent"] = [
            build / "railhead-device-plugin", "--root", tree, "--node-name", "node",
            "--health-address", "127.0.0.1:18080", "--metrics-address", ""]
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
        child.wait(20)

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
            with urllib.request.urlopen("https://127.0.0.1:20250/pods", timeout=5,
                                        context=context) as page:
                return {pod["metadata"]["uid"]: pod for pod in json.load(page)["items"] or []}
        except (urllib.error.URLError, ConnectionError):
            return None

    # -- pods ---------------------------------------------------------------------------------

    def submit(self, name, **limits):
        """Makes a static pod and returns what it was given, by resource."""
        resources = {{"gpus": GPU, "hcas": HCA}[key]: str(count) for key, count in limits.items()}
        new = OUT / f"{name}.new"
        new.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "none", "imagePullPolicy": "Never",
                 "resources": {"limits": resources}}]}}))
        new.rename(OUT / "manifests" / f"{name}.json")

        def given():
            status = (self.pods() or {}).get(name, {}).get("status", {})
            if status.get("phase") == "Failed":
                raise Failure(f"the kubelet refused {name}: {status.get('reason')}: "
                              f"{status.get('message')}", log=OUT / "kubelet.log")
            held = self.held().get(name, {})
            return held if set(held) == set(resources) else None

        return wait_for(f"{name} is admitted", given, 60, log=OUT / "kubelet.log", interval=0.1)

    def delete(self, name):
        """Takes the pod away, and waits until the kubelet has."""
        (OUT / "manifests" / f"{name}.json").unlink()
        def gone():
            pods = self.pods()
            return pods is not None and name not in pods

        wait_for(f"{name} is gone", gone, 60, log=OUT / "kubelet.log", interval=0.1)

    # -- the agent ----------------------------------------------------------------------------

    def ready(self):
        try:
            with urllib.request.urlopen(READY, timeout=2) as page:
                return page.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

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


def troubles(node, console, count):
    """Kubelet and agent killed, sockets deleted: the devices are back, and nobody loses or shares one.

    A pod whose container does not run is admitted anew by a new kubelet, when devices may not be back
    yet. So the pod that keeps its devices comes after each restart of the kubelet, and stays while the
    agent has its troubles.
    """
    keeper = node.submit("keeper", hcas=2)
    waits = []

    def kubelet_restarts():
        node.delete("keeper")
        old = (PLUGINS / "kubelet.sock").stat().st_ino
        node.stop("kubelet")
        node.start("kubelet")
        wait_for("the kubelet listens", lambda: (PLUGINS / "kubelet.sock").exists() and
                 (PLUGINS / "kubelet.sock").stat().st_ino != old, 60, interval=0.005,
                 log=OUT / "kubelet.log")

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
        trouble()
        begin = time.monotonic()
        time.sleep(0.05)  # a stream that is broken is noticed by then
        wait_for(f"the agent is served again after {trouble.__name__}", node.ready, 30,
                 log=OUT / "agent.log", interval=0.01)
        if trouble is kubelet_restarts:
            waits.append(time.monotonic() - begin)
            keeper = node.submit("keeper", hcas=2)
        held = node.held()
        if held.get("keeper") != keeper:
            raise Failure(f"a pod held {keeper}, and now {held.get('keeper')}", OUT / "kubelet.log")
        # Six are free, and given to one who asks for all of them.
        given = node.submit(f"new-{number}", hcas=6)
        if set(given[HCA]) & set(keeper[HCA]) or len(set(given[HCA])) != 6:
            raise Failure(f"a new pod got {given[HCA]} beside one with {keeper[HCA]}")
        node.delete(f"new-{number}")
    node.delete("keeper")
    if waits:
        console.line(f"    {count} troubles; after {len(waits)} kubelet restarts the devices were back "
                     f"{sorted(waits)[len(waits) // 2]:.2f} s (median), {max(waits):.2f} s (longest) "
                     "after the kubelet listened")


def inside(count):
    """In a mount namespace of our own."""
    console = Console()
    console.line(f"The node agent against the real kubelet. All logs are in {OUT}")
    run(["mount", "--make-rprivate", "/"])
    run(["mount", "-t", "tmpfs", "tmpfs", KUBELET_ROOT])
    kube_bin = run([ROOT / "tests" / "testbed" / "build-kube.sh"], seconds=7200).stdout.strip().splitlines()[-1]
    node = None
    try:
        with console.step("containerd, the kubelet, its GPUs and the agent"):
            node = Node(kube_bin)
            wait_for("the kubelet has all devices", lambda: node.registered() == {GPU: 8, HCA: 8}, 60,
                     log=OUT / "kubelet.log")
        with console.step("1, 2 and 4 GPUs, with as many HCAs"):
            aligned_sets(node, console)
        with console.step(f"{count} times the kubelet or the agent killed, or our sockets deleted"):
            troubles(node, console, count)
        return 0
    except Failure as failure:
        console.failed(failure)
        return 1
    finally:
        if node is not None:
            node.stop_all()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    if "RAILHEAD_INSIDE" in os.environ:
        return inside(count)
    run(["rm", "-rf", OUT])
    OUT.mkdir(parents=True)
    made = not KUBELET_ROOT.exists()
    KUBELET_ROOT.mkdir(parents=True, exist_ok=True)
    try:
        # A process namespace too: however this run ends, nothing of it stays.
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                               sys.executable, __file__, str(count)],
                              env={**os.environ, "RAILHEAD_INSIDE": "1"}, check=False).returncode
    finally:
        if made:
            KUBELET_ROOT.rmdir()


if __name__ == "__main__":
    sys.exit(main())
