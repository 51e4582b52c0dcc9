# SPDX-License-Identifier: Apache-2.0
"""The chart's alerts about slow or expiring parts, on real nodes: a slow rank, a slow rail, a congested port, a
certificate that is not renewed. Most need ten minutes, so two run side by side.

Software RDMA counts no congestion, so a file replaces the driver's counter; everything from the agent on is real."""

import base64
import contextlib
import datetime
import json
import time

from alert_watch import AlertWatch
from documents import at_ease, container_of, job_of, pod_of, until_told, with_env, with_sizes
from stage import NAMESPACE, expect
from railbed.console import wait_for
from railbed.process import run

LONG = 3600  # maximum seconds of a job
AUTHORITY = "railhead-operator-ca"
ROLE = "railhead-operator"


def slow_parts_raise_alerts(stage):
    """A late rank, a CA that cannot be renewed, a congested port, and a rail with a fraction of its rate."""
    stage.with_options()
    watch = AlertWatch(stage)
    port = CountingPort(stage, node=1, rail=stage.cluster.rails - 1)
    with watch.running(), port.in_place():
        pods, even = _moving_job(stage), _even_job(stage)
        watch.stays_quiet(120)
        _slow_rank(stage, watch, even, lambda: _old_authority(stage, watch))
        stage.cluster.kubectl("delete", "job,service", "even")
        _slow_rail_and_congestion(stage, watch, pods, port)
        stage.finish(pods)
        expect(stage.wait_for_job("moving") == "Complete", "the job did not complete")
        watch.show()


def _give_cpu(stage, pod, percent):
    """Limits the CPU that the pod may use from now on, in percent of a core."""
    cgroup = f"/sys/fs/cgroup/kubepods/*/pod{pod['metadata']['uid']}"
    stage.cluster.on_node(int(pod["spec"]["nodeName"].split("-")[1]), (
        f"for file in {cgroup}/cpu.max {cgroup}/*/cpu.max; do echo {percent * 1000} 100000 > $file; done"))


def _moving_job(stage):
    """Starts two ranks that use both rails, with little CPU until _slow_rail_and_congestion()."""
    documents = at_ease(until_told(with_sizes(stage.example("moving"), "8M", "8M", "-n", "1", warmup=0)))
    job_of(documents)["spec"]["activeDeadlineSeconds"] = LONG
    pods = stage.submit_held(documents)
    stage.release(pods)
    stage.wait_until_it_moves("moving")
    return pods


def _slow_rail_and_congestion(stage, watch, pods, port):
    """Rail 0 has a fifth of the other's rate; with much less, RoCE would treat it as lost. The alert applies to ranks
    that send more than 1 MB/s, so the job gets more CPU. A port also counts a hundred thousand times as many
    notifications; the reference period of that alert ends ten minutes before, long after the job's start."""
    for pod in pods:
        _give_cpu(stage, pod, 200)
    watch.stays_quiet(150)  # the alert considers the last two minutes
    since = watch.expect("RailheadCongestionRising", "RailheadRailImbalance")
    port.notified(1_000_000)
    stage.cluster.network.shape(0, "3mbit")
    stage.cluster.network.shape(1, "16mbit")
    try:
        watch.fires("RailheadCongestionRising", since, node=f"node-{port.node}", rail=str(port.rail))
        watch.fires("RailheadRailImbalance", since, job="moving", rail="0")
    finally:
        port.notified(10)
        for rail in (0, 1):
            stage.cluster.network.shape(rail, stage.cluster.rate)
    since = time.monotonic()
    watch.ends("RailheadRailImbalance", since)
    # The alert considers the last five minutes.
    watch.ends("RailheadCongestionRising", since, 420)


def _old_authority(stage, watch):
    """The CA has used 80 of its 90 days, and the operator has lost the right to replace it."""
    kubectl = stage.cluster.kubectl
    certificate, key = _authority(stage.cluster.folder / "old-authority", days_over=80, days_left=10)
    secret = {"data": {"ca.crt": certificate, "ca.key": key}}
    _may(stage, "get")
    try:
        since = watch.expect("RailheadCertificateExpiring")
        kubectl("-n", NAMESPACE, "patch", "secret", AUTHORITY, "--type=merge", "--patch-file=/dev/stdin",
                stdin=json.dumps(secret))
        watch.fires("RailheadCertificateExpiring", since, namespace=NAMESPACE)
    finally:
        _may(stage, "get", "patch")
    watch.ends("RailheadCertificateExpiring", time.monotonic())


def _may(stage, *verbs):
    """Sets the operator's rights to its Secret."""
    rules = stage.cluster.get("role", ROLE, "-n", NAMESPACE)["rules"]
    rule = next(i for i, rule in enumerate(rules) if "secrets" in rule["resources"])
    stage.cluster.kubectl("-n", NAMESPACE, "patch", "role", ROLE, "--type=json", "-p", json.dumps(
        [{"op": "replace", "path": f"/rules/{rule}/verbs", "value": verbs}]))


def _authority(folder, days_over, days_left):
    """Returns a self-signed CA in the middle of its lifetime: certificate and key, in base64."""
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "index").write_text("")
    (folder / "ca.cnf").write_text(
        f"[ca]\ndefault_ca = old\n[old]\ndatabase = {folder}/index\nnew_certs_dir = {folder}\nrand_serial = yes\n"
        "default_md = sha256\npolicy = any\nx509_extensions = authority\n[any]\ncommonName = supplied\n"
        "[authority]\nbasicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign\n")
    now = datetime.datetime.now(datetime.timezone.utc)
    begin, end = ((now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ") for days in (-days_over, days_left))
    run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=old", "-keyout", folder / "key", "-out", folder / "request"])
    run(["openssl", "ca", "-batch", "-config", folder / "ca.cnf", "-selfsign", "-keyfile", folder / "key", "-in",
         folder / "request", "-notext", "-startdate", begin, "-enddate", end, "-out", folder / "crt"])
    return [base64.b64encode((folder / name).read_bytes()).decode() for name in ("crt", "key")]


def _even_job(stage):
    """Starts four ranks over TCP, since the rails are in use. Each pauses for half a second between collectives."""
    documents = with_sizes(stage.example("even"), "64K", "64K", "-n", "1", "--transport", "tcp",
                           "--pause", "/work/pause", warmup=0)
    # The operator would set the ranks of pods that request a rail.
    with_env(until_told(documents), WORLD_SIZE="4", MASTER_ADDR="even-0.even", RAILHEAD_JOB="even")
    job_of(documents)["spec"].update(completions=4, parallelism=4, activeDeadlineSeconds=LONG)
    pod, container = pod_of(documents), container_of(documents)
    container["command"] = ["/bin/sh", "-c", 'echo 0.5 > /work/pause; exec "$@"', "sh", *container["command"]]
    container["env"].append({"name": "RANK", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}})
    container["resources"] = {}
    container["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
    pod["volumes"] = [{"name": "work", "emptyDir": {}}]
    pod["affinity"] = {}
    pod["topologySpreadConstraints"] = [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}}}]
    stage.submit(documents)

    def running():
        pods = stage.pods("even")
        return pods if [pod["status"]["phase"] for pod in pods] == ["Running"] * 4 else None

    pods = wait_for("the four pods run", running, 180, interval=1)
    wait_for("the ranks have begun", lambda: " float " in stage.logs(pods[0]), 300, interval=2)
    return pods


def _slow_rank(stage, watch, pods, meanwhile):
    """Rank 3 pauses for ten seconds each time."""
    since = watch.expect("RailheadStraggler")
    stage.in_pod(pods[3], "echo 10 > /work/pause")
    try:
        meanwhile()
        watch.fires("RailheadStraggler", since, job="even", rank="3")
    finally:
        stage.in_pod(pods[3], "echo 0.5 > /work/pause")
    # The alert considers the last five minutes.
    watch.ends("RailheadStraggler", time.monotonic(), 420)


class CountingPort:
    """A port whose counters and rate are files: the driver's counters, the notifications (CNP) that a NIC would
    count, and the line rate, which software RDMA does not have."""

    FILES = "/run/counting-port"

    def __init__(self, stage, node, rail):
        self._stage, self.node, self.rail = stage, node, rail
        self._port = f"/sys/class/infiniband/rxe{rail}/ports/1"

    def notified(self, per_second):
        self._on_node(f"echo {per_second} > {self.FILES}/told && mv {self.FILES}/told {self.FILES}/per-second")

    @contextlib.contextmanager
    def in_place(self):
        files, port = self.FILES, self._port
        self._on_node(
            f"mkdir -p {files}/hw && cp {port}/hw_counters/* {files}/hw && echo '0.008 Gb/sec' > {files}/rate && "
            f"echo 10 > {files}/per-second && mount --bind {files}/hw {port}/hw_counters && "
            f"mount --bind {files}/rate {port}/rate")
        self._on_node(
            f"(n=0; while sleep 1; do n=$((n + $(cat {files}/per-second))) || break; echo $n > {files}/new && "
            f"mv {files}/new {files}/hw/rp_cnp_handled || break; done) > /dev/null 2>&1 &")
        try:
            self._agent_looks_anew()
            yield self
        finally:
            self._on_node(f"umount {port}/hw_counters; umount {port}/rate; rm -r {files}")
            self._agent_looks_anew()

    def _agent_looks_anew(self):
        """Restarts the agent, since a container keeps the mounts from its start."""
        self._stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/component=device-plugin",
                                    f"--field-selector=spec.nodeName=node-{self.node}")
        self._stage.wait_for_hcas(120)

    def _on_node(self, command):
        self._stage.cluster.on_node(self.node, command)
