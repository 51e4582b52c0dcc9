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

EXAMPLES = ROOT / "manifests" / "examples" / "networks"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
STATUS = "k8s.v1.cni.cncf.io/network-status"
CNI = "/etc/cni/net.d"
MULTUS = f"{CNI}/00-multus.conf"  # written by Multus
PROGRAMS = "/run/programs"


# -- scenes ---------------------------------------------------------------------------------------

def multus_macvlan(stage):
    """The example macvlan.yaml: each pod has an address of its own on each rail, and its all-reduce uses them."""
    networks, pod = example("macvlan")
    with rails_in_pods(stage):
        with stage.console.step("each rail is a resource"):
            stage.upgrade("-f", EXAMPLES / "macvlan.values.yaml")
            offered(stage, {f"rdma/rail-{rail}": 1 for rail in range(stage.cluster.rails)})
        with multus(stage, networks):
            all_reduce(stage, "by-macvlan", pod)


# -- parts ----------------------------------------------------------------------------------------

@contextlib.contextmanager
def rails_in_pods(stage):
    """Makes the rails RoCE that works for interfaces in pods, inside the `with`. Running agents would count the change
    as failures of the rails, and for some minutes not offer them."""
    def new_agents():
        stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/component=device-plugin")

    with stage.cluster.rails_as("rxe-in-pods"):
        new_agents()
        yield
    new_agents()


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


def example(name):
    """Returns the networks of an example, and its pod. The masters are the nodes' interfaces, and addresses come from
    host-local: whereabouts elects a leader for each address, in seconds that an emulated node does not have."""
    import yaml
    text = (EXAMPLES / f"{name}.yaml").read_text()
    text = re.sub(r'"ens(\d+)f0np0"', r'"eth\1"', text)
    text = text.replace('"type": "whereabouts", "range"', '"type": "host-local", "subnet"')
    *networks, pod = yaml.safe_load_all(text)
    return networks, pod


def offered(stage, resources):
    """Waits until every node offers these resources."""
    wanted = {name: str(count) for name, count in resources.items()}

    def all_offer():
        return all(wanted.items() <= node["status"]["allocatable"].items()
                   for node in stage.cluster.get("nodes")["items"])

    wait_for(f"every node offers {wanted}", all_offer, 180, interval=1)


def all_reduce(stage, name, like):
    """Runs the example job in pods with the networks and devices of `like`. Checks that the all-reduce used the pods'
    own addresses, over verbs."""
    documents = with_env(with_sizes(stage.example(name), "8", "64K", "-n", "2"), RAILHEAD_LOG="info")
    job_of(documents)["spec"]["template"]["metadata"]["annotations"][NETWORKS] = (
        like["metadata"]["annotations"][NETWORKS])
    limits = container_of(documents)["resources"]["limits"]
    del limits["rdma/hca"]
    limits.update(like["spec"]["containers"][0]["resources"]["limits"])
    stage.submit(documents)
    try:
        outcome = stage.wait_for_job(name)
        pods = stage.pods(name)
        logs = [stage.logs(pod) for pod in pods]
    except Failure as failure:
        raise Failure(f"{failure}: {warnings(stage, name)}") from None
    finally:
        stage.cluster.kubectl("delete", "job", name, "--cascade=foreground")
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
