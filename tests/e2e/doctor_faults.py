# SPDX-License-Identifier: Apache-2.0
"""`railhead doctor` on real nodes: all checks pass on a healthy cluster, and each fault is named with its fix.

Faults that no emulated node has (wrong cables, GPUDirect, low memlock) are tested at a real API server in
tests/chart/doctor_test.py, or with values in cli/doctor/doctor_test.cc."""

import contextlib
import dataclasses
import json
import re
import time

import yaml

from alerts import WEBHOOK, webhook_without_bundle
from documents import at_ease, container_of, job_of, until_told, with_env, with_sizes, without_rdma_on_rank_1
from stage import NAMESPACE, ROOT, expect
from railbed.console import Failure, table, wait_for

PROGRAM = ROOT / "build" / "release" / "cli" / "railhead"
LEAF = "topology.railhead.io/leaf"
OPERATOR = "railhead-operator"
AGENT = "railhead-device-plugin"
PATIENCE = 120  # seconds until agents, kubelets and operator have detected a fault, or its end
RUN = 10        # maximum seconds of a run


@dataclasses.dataclass
class Fault:
    """The expected finding: regular expressions of its parts."""
    name: str
    check: str
    verdict: str
    object: str
    cause: str
    fix: str


def doctor_names_each_fault(stage):
    """A healthy cluster passes all checks; then 16 faults, each named with its fix."""
    stage.with_options()
    stage.cluster.kubectl("label", "nodes", "--all", f"{LEAF}=west")
    rows = []
    try:
        _healthy(stage)
        for faults, cause_them in ((OF_NODES_AND_OBJECTS, _nodes_and_objects), (OF_JOBS, _jobs), (OF_THE_CHART, _chart),
                                   (OF_THE_AGENTS, _no_agents), (OF_KUBELET, _no_kubelet)):
            with cause_them(stage):
                _all_named(stage, faults, rows)
            _healthy(stage)
        _right_missing(stage, rows)
    finally:
        stage.cluster.kubectl("label", "nodes", "--all", f"{LEAF}-")
    stage.console.plain(table(rows, ["fault", "named after (s)", "the run took (s)", "finding"]))
    expect(len(rows) == 16, f"{len(rows)} faults")
    slow = [row for row in rows if float(row[2]) > RUN]
    expect(not slow, f"these runs took longer than {RUN} s: {slow}")


def _doctor(stage, *words, kubeconfig=None):
    """Returns (exit status, output, seconds)."""
    begin = time.monotonic()
    done = stage.cluster.run_inside([PROGRAM, "doctor", "-o", "json", "--kubeconfig", kubeconfig or stage.cluster.kubeconfig,
                                     *words], check=False)
    seconds = time.monotonic() - begin
    if not done.stdout:
        raise Failure(f"railhead doctor says nothing: {done.stderr}")
    return done.returncode, json.loads(done.stdout), seconds


def _healthy(stage):
    told = {}

    def all_pass():
        nonlocal told
        code, told, _ = _doctor(stage)
        return code == 0 and told["counts"]["pass"] == len({f["check"] for f in told["findings"]})

    try:
        wait_for("all checks pass", all_pass, PATIENCE * 2, interval=1)
    except Failure as failure:
        raise Failure(f"{failure}; {[f for f in told['findings'] if f['verdict'] != 'pass']}") from None
    stage.console.line(f"    all is well: {told['counts']['pass']} checks pass")


def _finding(answer, fault):
    for found in answer["findings"]:
        if found["check"] == fault.check and found["verdict"] == fault.verdict and all(
                re.search(getattr(fault, part), found[part]) for part in ("object", "cause", "fix")):
            return found
    return None


def _all_named(stage, faults, rows):
    """Waits until each of the faults is named, and records how long that took."""
    begin, answer = time.monotonic(), {}
    missing = list(faults)

    def named():
        nonlocal answer
        _, answer, seconds = _doctor(stage)
        for fault in list(missing):
            if found := _finding(answer, fault):
                rows.append([fault.name, f"{time.monotonic() - begin:.0f}", f"{seconds:.1f}",
                             f"{found['object']}: {found['cause']}"[:110]])
                stage.console.line(f"    {fault.name}: {found['verdict']} {found['check']}: {found['object']}: {found['cause']}")
                stage.console.line(f"        fix: {found['fix']}")
                missing.remove(fault)
        return not missing

    try:
        wait_for("each fault is named", named, PATIENCE * 2, interval=0.5)
    except Failure:
        raise Failure(f"not named: {missing}; but {[f for f in answer['findings'] if f['verdict'] != 'pass']}") from None


OF_NODES_AND_OBJECTS = (
    Fault("a link is down", "nodes", "fail", "node node-2", r"rail 1 \(rxe1\)", "repair"),
    Fault("a RoCE port has lost its address", "nodes", "fail", "node node-1", r"rail 0 \(rxe0\).*address", "address|repair"),
    Fault("a resource's name is misspelt", "jobs", "fail", "misspelt", "RdmaResourceUnknown", "correct the resource's name"),
    Fault("a gang has no room", "gangs", "warn", "gang default/", "wait: ", "railhead why"),
    Fault("two profiles contradict", "profiles", "warn", "railprofile (one|two)", "one|two", "another priority"),
    Fault("a kind is of another version", "versions", "warn", "", "0.0.9: crd railreports", "helm upgrade"),
    Fault("the webhook's bundle is reset", "webhook", "fail", "mutatingwebhookconfiguration", "no caBundle", "exclude that field"),
)


@contextlib.contextmanager
def _nodes_and_objects(stage):
    last = stage.cluster.rails - 1
    kubectl = stage.cluster.kubectl
    container = container_of(stage.example("misspelt"))
    container["resources"]["limits"] = {"rdma/hcas": 1}
    container["resources"]["requests"] = {}
    gang = stage.example("crowd")
    job_of(gang)["metadata"]["labels"] = {"railhead.io/gang": "true"}
    job_of(gang)["spec"].update(completions=3, parallelism=3)
    profiles = [{"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile", "metadata": {"name": name},
                 "spec": {"priority": 7, "fabric": fabric, "namespaceSelector": {"matchLabels": {
                     "kubernetes.io/metadata.name": "default"}}}} for name, fabric in (("one", "RoCE"), ("two", "InfiniBand"))]
    version = yaml.safe_load((ROOT / "charts" / "railhead" / "Chart.yaml").read_text())["appVersion"]
    try:
        stage.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "misspelt"}, "spec": {"containers": [container]}},
            *gang, *profiles]}))
        # Without the webhook, pods would not be gated.
        wait_for("the gang's pods are there", lambda: len(stage.pods("crowd")) == 3, 60, interval=1)
        stage.cluster.on_node(2, f"ip link set eth{last + 1} down")
        stage.cluster.on_node(1, "ip addr flush dev eth1")
        kubectl("label", "crd", "railreports.railhead.io", "app.kubernetes.io/version=0.0.9", "--overwrite")
        with webhook_without_bundle(stage):
            yield
    finally:
        stage.cluster.on_node(2, f"ip link set eth{last + 1} up")
        stage.cluster.on_node(1, "ip addr replace 10.10.0.1/24 dev eth1")
        kubectl("delete", "railprofile", "one", "two", "--ignore-not-found")
        kubectl("delete", "pod/misspelt", "job/crowd", "service/crowd", "--wait=true", "--ignore-not-found")
        kubectl("label", "crd", "railreports.railhead.io", f"app.kubernetes.io/version={version}", "--overwrite")
        stage.wait_for_hcas(180)


OF_JOBS = (
    Fault("a rank has no device: TCP in place of RDMA", "jobs", "fail", "job default/lost", "RdmaNotUsed", "."),
    Fault("a user has switched RDMA off", "jobs", "fail", "switched-off", "RdmaDisabledByUser", "remove the variable"),
)


@contextlib.contextmanager
def _jobs(stage):
    documents = without_rdma_on_rank_1(with_sizes(stage.example("lost"), "8", "64K", "-n", "1", warmup=0))
    container_of(documents)["resources"]["limits"]["rdma/hca"] = 1
    pods = stage.submit_held(at_ease(until_told(documents)))
    container = container_of(with_env(stage.example("switched-off"), NCCL_IB_DISABLE="1"))
    container.update(command=["sleep", "600"])
    container["resources"]["limits"]["rdma/hca"] = 1
    stage.cluster.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "switched-off"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}))
    stage.release(pods)
    try:
        yield
    finally:
        stage.cluster.kubectl("delete", "job/lost", "pod/switched-off", "--wait=true", "--ignore-not-found")
        stage.cluster.kubectl("delete", "railreports", "--all")


OF_THE_CHART = (
    Fault("an agent's image cannot be pulled", "agents", "fail", "node node-[12], pod", "Image", "correct the registry and tag"),
    Fault("the operator is scaled to 0", "operator", "fail", f"deployment/{OPERATOR}", "scaled to 0", "operator.replicas"),
    Fault("no replica leads", "leader", "fail", "lease", "no replica of the operator leads|has not renewed", "logs"),
    Fault("the webhook's configuration is gone", "webhook", "fail", "", "MutatingWebhookConfiguration is missing", "helm upgrade"),
)


@contextlib.contextmanager
def _chart(stage):
    """Deletes objects that the fix restores: helm upgrade with the same values."""
    kubectl = stage.cluster.kubectl
    workloads = ("-n", NAMESPACE)
    name = stage.cluster.get("daemonset", AGENT, *workloads)["spec"]["template"]["spec"]["containers"][0]["name"]
    image = stage.cluster.get("daemonset", AGENT, *workloads)["spec"]["template"]["spec"]["containers"][0]["image"]
    replicas = stage.cluster.get("deployment", OPERATOR, *workloads)["spec"]["replicas"]
    kubectl("set", "image", f"daemonset/{AGENT}", f"{name}={image}-missing", *workloads)
    kubectl("scale", f"deployment/{OPERATOR}", "--replicas=0", *workloads)
    kubectl("delete", "mutatingwebhookconfiguration", WEBHOOK)
    try:
        yield
    finally:
        kubectl("set", "image", f"daemonset/{AGENT}", f"{name}={image}", *workloads)
        kubectl("scale", f"deployment/{OPERATOR}", f"--replicas={replicas}", *workloads)
        stage.upgrade_options()


OF_THE_AGENTS = (
    Fault("the agents' DaemonSet is gone", "install", "fail", "", "no node offers rdma/", "helm upgrade"),
)


@contextlib.contextmanager
def _no_agents(stage):
    stage.cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", AGENT)
    try:
        yield
    finally:
        stage.upgrade_options()


OF_KUBELET = (
    Fault("a node's kubelet does not answer", "nodes", "warn", "node node-1", "kubelet does not report", "kubectl describe node node-1"),
)


@contextlib.contextmanager
def _no_kubelet(stage):
    stage.cluster.on_node(1, "mv /usr/local/bin/kubelet /usr/local/bin/kubelet.away; pkill -KILL -x kubelet")
    try:
        yield
    finally:
        stage.cluster.on_node(1, "mv /usr/local/bin/kubelet.away /usr/local/bin/kubelet")
        stage.wait_for_hcas(180)


def _right_missing(stage, rows):
    """A user who may only list pods: a warning for each missing right, with verb and kind; other checks run."""
    kubectl = stage.cluster.kubectl
    kubectl("create", "clusterrole", "few-rights", "--verb=list", "--resource=pods")
    kubectl("create", "serviceaccount", "few-rights", "-n", "default")
    kubectl("create", "clusterrolebinding", "few-rights", "--clusterrole=few-rights", "--serviceaccount=default:few-rights")
    try:
        config = yaml.safe_load(stage.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": kubectl("create", "token", "few-rights", "-n", "default").stdout.strip()}
        path = stage.cluster.kubeconfig.with_name("few-rights.kubeconfig")
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        code, answer, seconds = _doctor(stage, kubeconfig=path)
        found = next((f for f in answer["findings"] if f["check"] == "rights" and "no permission to list nodes " in f["cause"]), None)
        expect(code == 1 and found and "kubectl auth can-i list nodes" in found["fix"], f"{answer}")
        rows.append(["a right is missing", "0", f"{seconds:.1f}", found["cause"][:110]])
    finally:
        kubectl("delete", "clusterrolebinding/few-rights", "clusterrole/few-rights")
        kubectl("delete", "serviceaccount", "few-rights", "-n", "default")
