# SPDX-License-Identifier: Apache-2.0
"""Allocation of GPUs and HCAs that belong together by the real kubelet, on a machine with PCIe switches.

The expected result is computed here from the paths in the node's sysfs, not by the agent's code: each switch has one
GPU and one NIC, so a set is aligned if its GPUs and HCAs have the same switches.
"""

import contextlib
import json
import re
from datetime import datetime

from stage import NAMESPACE, ROOT, expect
from railbed.console import Failure, wait_for
from railbed.machine import gpu_server

TEST_NODE = ROOT / "build" / "release" / "device-plugin" / "railhead-test-node"
PLUGINS = "/var/lib/kubelet/device-plugins"
GPU, HCA = "example.com/gpu", "rdma/hca"
LABEL = "scene=aligned-sets"
# Number of GPUs that another pod holds, and of GPUs and HCAs of the observed pod.
ROUNDS = ((1, 1), (1, 2), (0, 4), (2, 1), (2, 2), (3, 1))
# Go iterates a map of a few keys from one of eight slots, so HCAs come before GPUs in about one container of eight,
# and not all of these are misaligned: 24 rounds missed such a container one time in seven.
MOST_ROUNDS = 150
PATIENCE = 180    # seconds for an emulated node, on a busy machine
# As in sysfs, or as in the id of an HCA.
PCI_ADDRESS = re.compile(r"([0-9a-f]{4})[:_]([0-9a-f]{2})[:_]([0-9a-f]{2})[._]([0-7])")


def aligned_sets(stage):
    """1, 2 and 4 GPUs with the same number of HCAs, on a machine with PCIe switches and two NUMA nodes."""
    step = stage.console.step
    stage.with_options()
    with contextlib.ExitStack() as stack:
        with step("a node with PCIe switches, GPUs and four rails"):
            number, = stack.enter_context(stage.cluster.more_nodes([gpu_server()], [TEST_NODE]))
            node = GpuNode(stage, number)
            node.offer_gpus()
        discovery_is_right(node)
        with step("1, 2 and 4 GPUs, with as many HCAs"):
            sets_are_aligned_or_told(node)
        with step("kubelet restarts, and the agent is killed"):
            nobody_loses_devices(node)


class GpuNode:
    """The node, as its own sysfs and its kubelet's checkpoint describe it."""

    def __init__(self, stage, number):
        self.stage = stage
        self.cluster = stage.cluster
        self.number = number
        self.name = f"node-{number}"
        self._number = number
        self.gpus, self.nics, self.numa_nodes, self._switches = [], [], {}, {}
        self._read_sysfs()

    def shell(self, command):
        return self.cluster.on_node(self._number, command)[1]

    def _read_sysfs(self):
        # In one command, since an emulated node is slow to start programs.
        lines = self.shell("cd /sys/bus/pci/devices; for d in *; do echo $(cd -P $d; pwd) "
                           "$(<$d/vendor) $(<$d/class) $(<$d/numa_node); done").splitlines()
        for path, vendor, pci_class, numa_node in (line.split() for line in lines):
            above, address = path.split("/")[:-1], path.split("/")[-1]
            self.numa_nodes[address] = int(numa_node)
            if (vendor, pci_class) == ("0x1234", "0x038000"):
                self.gpus.append(address)
            elif pci_class == "0x020000" and "pci0000:00" not in above:
                self.nics.append(address)
            else:
                continue
            self._switches[address] = above[-2]  # above[-1] is the switch's slot

    def switches(self, ids):
        return {self._switches["{}:{}:{}.{}".format(*PCI_ADDRESS.search(text).groups())]
                for text in ids}

    def aligned(self, devices):
        return self.switches(devices[GPU]) == self.switches(devices[HCA])

    # -- plugins ------------------------------------------------------------------------------

    def offer_gpus(self):
        """Runs the GPUs' plugin, and waits until the node offers all its devices."""
        self.cluster.apply(json.dumps(gpu_plugin(self.name)))

        def offered():
            has = self.cluster.get("node", self.name)["status"]["allocatable"]
            return (has.get(GPU), has.get(HCA)) == (str(len(self.gpus)), str(len(self.nics)))

        wait_for(f"{self.name} offers {len(self.gpus)} GPUs and {len(self.nics)} HCAs", offered,
                 PATIENCE, interval=1, advice="kubectl logs gpu-plugin")

    def agent(self):
        return self.cluster.get(
            "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=device-plugin",
            "--field-selector", f"spec.nodeName={self.name}")["items"][0]

    def agent_log(self):
        """Returns the agent's whole log, which is also kept in the run's folder."""
        name = self.agent()["metadata"]["name"]
        text = self.cluster.kubectl("logs", "-n", NAMESPACE, name).stdout
        (self.cluster.folder / f"pod-{name}.log").write_text(text)
        return text

    def metric(self, name):
        """Returns the agent's metric, or None if it does not respond."""
        try:
            page = self.stage.fetch(f"http://{self.agent()['status']['podIP']}:9401/metrics")
        except Failure:
            return None
        found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", page, re.M)
        return float(found[1]) if found else None

    def registrations(self):
        """Returns how often the agent has registered with the kubelet."""
        return wait_for("the agent answers",
                        lambda: self.metric("railhead_agent_registrations_total"), PATIENCE)

    # -- pods ---------------------------------------------------------------------------------

    def submit(self, pods, change=lambda pod: pod):
        """Creates pods, name to (GPUs, HCAs); returns the devices that each got, by resource."""
        self.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            change(pod_with(self.name, name, *counts)) for name, counts in pods.items()]}))

        def counted(devices):
            return tuple(len(devices.get(resource, ())) for resource in (GPU, HCA))

        def given():
            held = self.held()
            return held if all(counted(held.get(name, {})) == counts
                               for name, counts in pods.items()) else None

        return wait_for(f"{', '.join(pods)} have their devices", given, PATIENCE, interval=0.5)

    def held(self):
        """Returns {pod: {resource: ids of its devices}}, from the kubelet's own checkpoint."""
        uids = {}
        for pod in self.pods():
            uids[pod["metadata"]["uid"]] = pod["metadata"]["name"]
            if pod["status"]["phase"] == "Failed":
                raise Failure(f"{pod['metadata']['name']}: {pod['status'].get('message')}")
        held = {}
        data = json.loads(self.shell(f"cat {PLUGINS}/kubelet_internal_checkpoint; echo"))["Data"]
        for entry in data["PodDeviceEntries"] or []:
            if entry["PodUID"] in uids:
                ids = [i for of_numa_node in entry["DeviceIDs"].values() for i in of_numa_node]
                held.setdefault(uids[entry["PodUID"]], {})[entry["ResourceName"]] = sorted(ids)
        return held

    def pods(self):
        return self.cluster.get("pods", "-l", LABEL)["items"]

    def delete_pods(self):
        self.cluster.kubectl("delete", "pods", "-l", LABEL, "--force", "--grace-period=0")


def gpu_plugin(node):
    """Returns railhead-test-node as a pod, since the agent's image has its libraries."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu-plugin"},
        "spec": {
            "nodeName": node,
            "containers": [{
                "name": "gpu-plugin", "image": "docker.io/railhead/device-plugin:0.1.0",
                "command": ["/test-node", "/", PLUGINS], "stdin": True,  # it runs until stdin ends
                "volumeMounts": [{"name": "program", "mountPath": "/test-node"},
                                 {"name": "plugins", "mountPath": PLUGINS}]}],
            "volumes": [
                {"name": "program", "hostPath": {"path": f"/etc/kubernetes/{TEST_NODE.name}"}},
                {"name": "plugins", "hostPath": {"path": PLUGINS}}]}}


def pod_with(node, name, gpus, hcas):
    """Returns a pod that prints its rails.json, and then keeps its devices."""
    limits = {resource: count for resource, count in ((GPU, gpus), (HCA, hcas)) if count}
    show = "cat /run/railhead/rails.json; " if hcas else ""
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": dict([LABEL.split("=")])},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "enableServiceLinks": False,
                 "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
                 "containers": [{"name": "main", "image": "docker.io/railhead/runtime:0.1.0",
                                 "command": ["sh", "-c", show + "exec sleep 3600"],
                                 "resources": {"limits": limits}}]}}


def that_never_starts(pod):
    """Makes the pod wait for a volume. The kubelet allocates devices at admission; container starts would only cost
    time."""
    pod["spec"]["volumes"] = [{"name": "never", "configMap": {"name": "there-is-none"}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "never", "mountPath": "/never"}]
    return pod


# -- checks ---------------------------------------------------------------------------------------

def discovery_is_right(node):
    """`discover` finds the machine's GPUs and NUMA nodes, and each GPU's NIC at its own switch."""
    found = json.loads(node.cluster.kubectl(
        "exec", "-n", NAMESPACE, node.agent()["metadata"]["name"], "--", "railhead-device-plugin",
        "discover", "--root", "/host", "--config", "/etc/railhead/agent.yaml", "-o", "json").stdout)
    expect(len(node.gpus) == len(node.nics) == 4, f"sysfs has GPUs {node.gpus}, NICs {node.nics}")
    expect(sorted(node.numa_nodes[gpu] for gpu in node.gpus) == [0, 0, 1, 1],
           f"sysfs has NUMA nodes {node.numa_nodes}")
    for kind, addresses in (("gpus", node.gpus), ("hcas", node.nics)):
        expect({d["pciAddress"]: d["numaNode"] for d in found[kind]} ==
               {address: node.numa_nodes[address] for address in addresses},
               f"discover says of {kind}: {found[kind]}")
    addresses = {hca["name"]: hca["pciAddress"] for hca in found["hcas"]}
    for entry in found["nearest"]:
        near = [addresses[name] for name in entry["hcas"]]
        expect(len(near) == 1 and node.switches([entry["gpu"]]) == node.switches(near),
               f"discover says that {near} are nearest to GPU {entry['gpu']}")
    labels = wait_for("the agent has told of its node",
                      lambda: node.stage.told_of(node.number)["labels"], PATIENCE)
    expect((labels.get("railhead.io/gpus"), labels.get("railhead.io/rails")) == ("4", "4"),
           f"the node's labels are {labels}")
    for hca in found["hcas"]:
        address = node.shell(f"ip -4 -o addr show {hca['netdev']}").split()[3]
        expect(address.startswith(f"10.10.{hca['rail']}."), f"rail {hca['rail']} is {address}")


def sets_are_aligned_or_told(node):
    """The kubelet allocates a container's resources in random order. If GPUs come first, the HCAs are those at their
    switches. If HCAs come first, the agent reports the misaligned sets."""
    orders = {"GPUs first": 0, "HCAs first": 0, "HCAs first, misaligned": 0}
    for number in range(MOST_ROUNDS):
        # The order is random: continue until all cases have occurred.
        if number >= len(ROUNDS) and all(orders.values()):
            break
        blocked, count = ROUNDS[number % len(ROUNDS)]
        node.stage.console.note(f"round {number + 1}: {orders}")
        one_round(node, f"aligned-{number}", blocked, count, orders)
    node.stage.console.line(f"    after {number} rounds: {orders}")
    expect(all(orders.values()), f"something never came: {orders}")


def one_round(node, name, blocked, count, orders):
    pods = {f"{name}-blocker": (blocked, 0)} if blocked else {}
    before = len(node.agent_log())
    given = node.submit({**pods, name: (count, count)}, that_never_starts)[name]
    log = node.agent_log()[before:]
    told = re.findall(r"prefer (.*) for a container with (.*)", log)
    expect(len(told) == 1, f"the agent was asked {len(told)} times which HCAs it prefers: {told}")
    hcas, whom = told[0]
    expect(sorted(hcas.split(", ")) == given[HCA], f"preferred were {hcas}, given {given[HCA]}")
    aligned = node.aligned(given)
    if whom.startswith("GPU "):
        orders["GPUs first"] += 1
        expect(sorted(whom[4:].split(", ")) == given[GPU], f"{given[GPU]} were taken for {whom}")
        expect(aligned, f"GPUs {given[GPU]} came first, and got {given[HCA]}")
    # The order is unknown if the kubelet was too slow to report it.
    elif "chosen without GPU affinity" not in log:
        orders["HCAs first"] += 1
        orders["HCAs first, misaligned"] += not aligned
    if not aligned:
        misaligned_is_told(node, name)
    node.delete_pods()


def misaligned_is_told(node, name):
    warning = rf"^(\S+)Z warning default/{name}: container main has GPU .* not the nearest"

    def found():
        # The metric alone may be from the previous round.
        return (node.metric("railhead_agent_misaligned_containers") == 1 and
                re.search(warning, node.agent_log(), re.M))

    told = wait_for(f"log and metric tell of {name}", found, PATIENCE, interval=0.5)
    allocated = re.findall(r"^(\S+)Z info allocated", told.string[:told.start()], re.M)[-1]
    seconds = (datetime.fromisoformat(told[1]) - datetime.fromisoformat(allocated)).total_seconds()
    node.stage.console.line(f"    {name} is misaligned: told after {seconds:.1f} s")
    wait_for("the pod has an event", lambda: node.cluster.get(
        "events", "--field-selector",
        f"involvedObject.name={name},reason=HcasNotNearest")["items"], PATIENCE)


def nobody_loses_devices(node):
    """Restarts the kubelet and kills the agent under pods that hold devices: they keep running, and a new pod gets
    free devices."""
    wanted = {"holder-1": (1, 1), "holder-2": (2, 2)}
    held = node.submit(wanted)
    wait_for("the pods run", lambda: all(p["status"]["phase"] == "Running" for p in node.pods()),
             PATIENCE, interval=1)
    for name in wanted:
        rails = json.loads(node.cluster.kubectl("logs", name).stdout)["rails"]
        expect(node.switches(r["pciAddress"] for r in rails) == node.switches(held[name][HCA]),
               f"{name} has {held[name][HCA]}, and its rails.json says {rails}")
    containers = containers_of(node, wanted)
    for _ in range(3):
        registrations = node.registrations()
        node.shell("pkill -x kubelet")
        wait_for("the new kubelet has the agent's devices",
                 lambda: node.registrations() > registrations, PATIENCE)
    node.shell("pkill -KILL -x railhead-device")
    wait_for("the new agent is served", lambda: node.metric("railhead_agent_registered") == 1 and
             node.agent()["status"]["containerStatuses"][0]["restartCount"] == 1, PATIENCE)
    expect(node.held() == held, f"the pods held {held}, and now {node.held()}")
    # A pod's status may be late, but a process is not: create the new pod after the restart.
    new = node.submit({"newcomer": (1, 1)}, that_never_starts)["newcomer"]
    for resource, ids in new.items():
        expect(not set(ids) & {i for name in wanted for i in held[name][resource]},
               f"{ids} are held twice")
    expect(containers_of(node, wanted) == containers,
           f"containers were {containers}, and are {containers_of(node, wanted)}")
    node.delete_pods()


def containers_of(node, names):
    return {pod["metadata"]["name"]: (pod["status"]["phase"], status["containerID"],
                                      status["restartCount"])
            for pod in node.pods() if pod["metadata"]["name"] in names
            for status in pod["status"]["containerStatuses"]}
