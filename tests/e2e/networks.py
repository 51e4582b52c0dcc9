# SPDX-License-Identifier: Apache-2.0
"""Pods with interfaces of their own on the rails, by the real Multus and CNI plugins: rows of docs/networks.md."""

import contextlib
import ipaddress
import json
import re

from documents import container_of, job_of, with_env, with_sizes
from main_job import parse_log
from stage import NAMESPACE, ROOT, expect
from railbed.console import Failure, wait_for
from railbed.machine import Machine

EXAMPLES = ROOT / "manifests" / "examples" / "networks"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
STATUS = "k8s.v1.cni.cncf.io/network-status"
CNI = "/etc/cni/net.d"
MULTUS = f"{CNI}/00-multus.conf"  # written by Multus
PROGRAMS = "/run/programs"


# -- scenes ---------------------------------------------------------------------------------------

def multus_macvlan(stage):
    """The example macvlan.yaml: each pod has an address of its own on each rail, and its all-reduce uses them. An
    attachment to a NIC that the pod did not get is reported."""
    with attached(stage, "macvlan", "bridge") as pod:
        all_reduce(stage, "by-macvlan", pod)
        preflight_names_a_wrong_attachment(stage)


def multus_ipvlan(stage):
    """The same all-reduce with ipvlan."""
    with attached(stage, "ipvlan", "l2") as pod:
        all_reduce(stage, "by-ipvlan", pod)


def multus_host_device(stage):
    """The example sriov.yaml with host-device and whole NICs: Multus passes the NICs that the kubelet chose, and their
    interfaces move into the pods. A move is no failure of the rail."""
    networks, pod = example("sriov", type="host-device", vlan=None)
    values = values_of("sriov")
    vf, _ = values["devicePlugin"]["config"]["resources"]
    del vf["selectors"]
    values["devicePlugin"]["config"]["resources"] = [vf]
    offers = {vf["name"]: stage.cluster.rails}
    with in_networks(stage, values, offers, networks):
        failures = rails_down(stage)
        try:
            all_reduce(stage, "by-host-device", pod)
        finally:
            interfaces_return(stage)
        offered(stage, offers)
        expect(rails_down(stage) == failures, f"Events RailDown: before {failures}, after {rails_down(stage)}")


def rdma_exclusive(stage):
    """A node with exclusive RDMA namespaces: facts, Event, `railhead doctor`, the ranks of a job and their pre-flight
    name it and what helps."""
    machine = Machine(stage.cluster.rails, kernel="ib_core.netns_mode=0")
    stage.upgrade()
    with stage.cluster.more_nodes([machine]) as (number,):
        with stage.console.step("the node agent reports exclusive RDMA namespaces"):
            offered(stage, {"rdma/hca": stage.cluster.rails})
            facts = json.loads(stage.told_of(number)["annotations"]["railhead.io/node-facts"])
            expect(facts.get("rdmaNamespaces") == "exclusive", f"the facts are {facts}")
            event, = wait_for("the Event RdmaNamespacesExclusive", lambda: stage.cluster.get(
                "events", "--field-selector",
                f"involvedObject.name=node-{number},reason=RdmaNamespacesExclusive")["items"], 60, interval=1)
            expect("network: moved" in event["message"] and "rdma system set netns shared" in event["message"],
                   event["message"])
            stage.console.line(f"    {event['message']}")
            doctor = stage.cluster.run_inside([ROOT / "build" / "release" / "cli" / "railhead", "doctor",
                                               "--kubeconfig", stage.cluster.kubeconfig], check=False).stdout
            expect(re.search(rf"^WARN .*node node-{number}: RdmaNamespacesExclusive: .*rdma-cni", doctor, re.M), doctor)
        stage.cluster.kubectl("cordon", "node-2")
        try:
            ranks_name_exclusive_namespaces(stage)
            preflight_names_exclusive_namespaces(stage)
        finally:
            stage.cluster.kubectl("uncordon", "node-2")


# -- parts ----------------------------------------------------------------------------------------

EXCLUSIVE = r"`rdma system show` on the node prints \"netns exclusive\", use hostNetwork or have rdma-cni move"


def ranks_name_exclusive_namespaces(stage):
    """Runs a job whose rank on the node cannot open its HCAs: it completes over TCP, and all ranks report why."""
    with job(stage, "exclusive", with_sizes(stage.example("exclusive"), "8", "64K", "-n", "1")) as (outcome, _, logs):
        for rank, log in enumerate(logs):
            expect(outcome == "Complete" and re.search(EXCLUSIVE, log),
                   f"rank {rank} does not name the cause: {outcome}: {log[-900:]}")
        parsed = parse_log(logs[0])
        expect(parsed.transport == "tcp", f"transport is {parsed.transport}")
        expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
        stage.console.line(f"    {parsed.degraded}")


def preflight_names_exclusive_namespaces(stage):
    documents = stage.example("exclusive-preflight")
    container_of(documents)["command"] = ["/bin/sh", "-c", "railhead-perf --preflight; echo exit code $?"]
    with job(stage, "exclusive-preflight", documents) as (outcome, _, logs):
        told = logs[0].replace('\n', ' ')
        expect(outcome == "Complete" and "exit code 1" in told and re.search(EXCLUSIVE, told),
               f"the pre-flight does not name the cause: {outcome}: {told[-1500:]}")


@contextlib.contextmanager
def attached(stage, kind, mode):
    """Provides the networks of the example macvlan.yaml inside the `with`, with interfaces of this kind; yields the
    example's pod."""
    networks, pod = example("macvlan", type=kind, mode=mode)
    offers = {f"rdma/rail-{rail}": 1 for rail in range(stage.cluster.rails)}
    with in_networks(stage, values_of("macvlan"), offers, networks):
        yield pod


@contextlib.contextmanager
def in_networks(stage, values, offers, networks):
    """Provides networks inside the `with`, and these values of the chart, by which each node offers `offers`."""
    with rails_in_pods(stage):
        with stage.console.step(f"each node offers {offers}"):
            path = stage.cluster.folder / "networks.values.yaml"
            path.write_text(json.dumps(values))  # JSON is valid YAML
            stage.upgrade("-f", path)
            offered(stage, offers)
        with multus(stage, networks):
            yield


def preflight_names_a_wrong_attachment(stage):
    """Runs the pre-flight in pods with the HCA of rail 0 and an interface on rail 1."""
    documents = stage.example("astray")
    job_of(documents)["spec"]["template"]["metadata"]["annotations"][NETWORKS] = "rail-1"
    limits = container_of(documents)["resources"]["limits"]
    del limits["rdma/hca"]
    limits["rdma/rail-0"] = 1
    container_of(documents)["command"] = ["railhead-perf", "--preflight", "-o", "json"]
    with job(stage, "astray", documents) as (outcome, pods, logs):
        expect(outcome == "Complete", f"the pre-flight failed: {logs[0].strip()[-900:]}")
        report = json.loads(re.search(r"^\{.*^\}", logs[0], re.M | re.S)[0])
        found = [finding for finding in report["findings"] if finding["check"] == "attachment"]
        given = {ip for pod in pods for network in json.loads(pod["metadata"]["annotations"][STATUS])
                 if not network.get("default") for ip in network["ips"]}
        expect(len(found) == len(given) == 2 and all(
            f["verdict"] == "note" and f["rail"] == 0 and "perRail: true" in f["fix"] and
            re.search(r"\b(\S+) is an address of rxe1 \(0000:00:..\..\), which the pod did not get", f["value"])[1]
            in given for f in found), f"{given}: {report}")
        stage.console.line(f"    {found[0]['where']}: {found[0]['value']}. Fix: {found[0]['fix']}")


def rails_down(stage):
    """Returns how often each rail of a node has been reported as failed."""
    return {(event["involvedObject"]["name"], event["message"]): event.get("count", 1) for event in
            stage.cluster.get("events", "--field-selector", "reason=RailDown")["items"]}


def interfaces_return(stage):
    """Waits until the rails' interfaces are back on the nodes, and gives them their addresses, as the network
    configuration of a host does."""
    for node in nodes(stage):
        for rail in range(stage.cluster.rails):
            interface = f"eth{rail + 1}"
            wait_for(f"{interface} is back on node-{node}", lambda: stage.cluster.on_node(
                node, f"ip link set {interface} up", check=False)[0] == 0, 60, interval=1)
            stage.cluster.on_node(node, f"ip addr replace 10.10.{rail}.{node}/24 dev {interface}")


@contextlib.contextmanager
def rails_in_pods(stage):
    """Makes the rails RoCE that works for interfaces in pods, inside the `with`."""
    with contextlib.ExitStack() as stack:
        with other_hcas(stage):
            stack.enter_context(stage.cluster.rails_as("rxe-in-pods"))
        try:
            yield
        finally:
            with other_hcas(stage):
                stack.close()


@contextlib.contextmanager
def other_hcas(stage):
    """Exchanges HCAs inside the `with`. Agents that run would count that as failures, and agents that start would miss
    the HCAs of the rail map."""
    def run_on(selector):
        stage.cluster.kubectl("-n", NAMESPACE, "patch", "daemonset", "railhead-device-plugin", "-p", json.dumps(
            {"spec": {"template": {"spec": {"nodeSelector": selector}}}}))

    run_on({"railhead.io/none": "true"})
    try:
        wait_for("the agents have stopped", lambda: not stage.cluster.get(
            "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=device-plugin")["items"], 90, interval=1)
        for node in nodes(stage):
            stage.cluster.on_node(node, "rm -f /var/lib/kubelet/device-plugins/railhead/rail-map.json")
        yield
    finally:
        run_on({"railhead.io/none": None})


@contextlib.contextmanager
def multus(stage, networks):
    """Runs Multus with these networks inside the `with`, which leaves no pod behind that it has connected."""
    cluster = stage.cluster
    manifest = multus_manifest(cluster.parts.cni / "multus.yaml")
    with stage.console.step("Multus"):
        for node in nodes(stage):
            cluster.on_node(node, (
                f"mkdir -p {PROGRAMS} && {{ mountpoint -q {PROGRAMS} || mount -o ro /dev/vdd {PROGRAMS}; }} && "
                f"{addresses_of(node, networks)} "
                f"find {PROGRAMS} -type f -exec ln -sf {{}} /opt/cni/bin ';'"))
        stage.submit(manifest)
    try:
        with stage.console.step("Multus configures the nodes"):
            cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s",
                            "crd/network-attachment-definitions.k8s.cni.cncf.io")
            stage.submit(networks)
            wait_for("Multus has configured the nodes", lambda: all(
                cluster.on_node(node, f"[ -s {MULTUS} ]", check=False)[0] == 0 for node in nodes(stage)), 300,
                interval=2, advice="kubectl -n kube-system logs daemonset/kube-multus-ds")
        yield
    finally:
        cluster.kubectl("delete", "-f", "-", "--cascade=foreground", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": manifest}))
        for node in nodes(stage):
            cluster.on_node(node, f"rm -f {MULTUS}")


def multus_manifest(path):
    """Returns Multus' own manifest; its programs come from the node, in an image that the node has."""
    import yaml
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    pod = next(d for d in documents if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    del pod["initContainers"]
    container, = pod["containers"]
    del container["resources"]
    container.update(image="docker.io/railhead/runtime:0.1.0", command=[f"{PROGRAMS}/multus-daemon"])
    container["securityContext"]["runAsUser"] = 0
    container["volumeMounts"].append({"name": "programs", "mountPath": PROGRAMS})
    pod["volumes"].append({"name": "programs", "hostPath": {"path": PROGRAMS}})
    return documents


def nodes(stage):
    return range(1, stage.cluster.nodes + 1)


def addresses_of(node, networks):
    """Returns a shell line that makes host-local on this node continue behind the addresses of the other nodes."""
    shell = ""
    for network in networks:
        folder = f"/var/lib/cni/networks/{network['metadata']['name']}"
        subnet = json.loads(network["spec"]["config"])["ipam"]["subnet"]
        shell += (f"mkdir -p {folder} && "
                  f"echo -n {ipaddress.ip_network(subnet)[256 * node]} > {folder}/last_reserved_ip.0 && ")
    return shell


def example(name, **changes):
    """Returns the networks of an example, with `changes` in their configuration (None removes a field), and its pod.
    The masters are the nodes' interfaces, and addresses come from host-local: whereabouts elects a leader for each
    address, in seconds that an emulated node does not have."""
    import yaml
    text = (EXAMPLES / f"{name}.yaml").read_text()
    text = re.sub(r'"ens(\d+)f0np0"', r'"eth\1"', text)
    text = text.replace('"type": "whereabouts", "range"', '"type": "host-local", "subnet"')
    *networks, pod = yaml.safe_load_all(text)
    for network in networks:
        config = json.loads(network["spec"]["config"]) | changes
        network["spec"]["config"] = json.dumps({key: value for key, value in config.items() if value is not None})
    return networks, pod


def values_of(name):
    """Returns an example's values of the chart."""
    import yaml
    return yaml.safe_load((EXAMPLES / f"{name}.values.yaml").read_text())


def offered(stage, resources):
    """Waits until every node offers these resources."""
    wanted = {name: str(count) for name, count in resources.items()}

    def offers():
        return {node["metadata"]["name"]: {name: count for name, count in node["status"]["allocatable"].items()
                                           if name.startswith("rdma/")}
                for node in stage.cluster.get("nodes")["items"]}

    try:
        wait_for(f"every node offers {wanted}",
                 lambda: all(wanted.items() <= node.items() for node in offers().values()), 180, interval=1)
    except Failure as failure:
        raise Failure(f"{failure}; they offer {offers()}; "
                      f"{[stage.told_of(node)['condition'] for node in nodes(stage)]}") from None


@contextlib.contextmanager
def job(stage, name, documents):
    """Runs a job to its end; yields its condition, pods and logs. Removes its pods, also if it fails."""
    stage.submit(documents)
    try:
        outcome = stage.wait_for_job(name)
        pods = stage.pods(name)
        yield outcome, pods, [stage.logs(pod) for pod in pods]
    except Failure as failure:
        raise Failure(f"{failure}; {warnings(stage, name)}") from None
    finally:
        stage.cluster.kubectl("delete", "job", name, "--cascade=foreground")


def all_reduce(stage, name, like):
    """Runs the example job in pods with the networks and devices of `like`. Checks that the all-reduce used the pods'
    own addresses, over verbs."""
    documents = with_env(with_sizes(stage.example(name), "8", "64K", "-n", "2"), RAILHEAD_LOG="info")
    job_of(documents)["spec"]["template"]["metadata"]["annotations"][NETWORKS] = (
        like["metadata"]["annotations"][NETWORKS])
    limits = container_of(documents)["resources"]["limits"]
    del limits["rdma/hca"]
    limits.update(like["spec"]["containers"][0]["resources"]["limits"])
    with job(stage, name, documents) as (outcome, pods, logs):
        for rank, (pod, log) in enumerate(zip(pods, logs)):
            expect(outcome == "Complete", f"the job did not complete: {log.strip()[-600:]}")
            given = {ip for network in json.loads(pod["metadata"]["annotations"][STATUS])
                     if not network.get("default") for ip in network["ips"]}
            used = re.findall(r"(rail \d+, device .*?): .*? (\S+) \(GID index \d+\)", log)
            expect(sorted(address for _, address in used) == sorted(given) and len(given) == stage.cluster.rails,
                   f"rank {rank} has the addresses {given}, and used {used}")
            stage.console.line(f"    rank {rank}: {', '.join(f'{rail} has {address}' for rail, address in used)}")
        parsed = parse_log(logs[0])
        expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
        expect(parsed.degraded == "no", f"degraded: {parsed.degraded}")
        expect(parsed.verified == "yes" and all(row.wrong == 0 for row in parsed.rows), "wrong results")


def warnings(stage, name):
    """Returns the last warnings about a job's pods."""
    events = stage.cluster.get("events", "--field-selector", "type=Warning")["items"]
    return "; ".join([event["message"] for event in events if event["involvedObject"]["name"].startswith(name)][-3:])
