# SPDX-License-Identifier: Apache-2.0
"""make e2e: the main job and its faults, on one real cluster.

usage: run.py [SCENE...]     default: all but the long ones; --long: the long ones; KEEP=1 leaves the cluster up
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback

from aligned_sets import aligned_sets
from alerts import alerts_fire_and_end, no_alert_while_all_is_well
from conformance import conformance
from documents import (at_ease, container_of, keeping_failed_pods, pod_of, until_told, with_env, with_sizes,
                       without_rdma_on_rank_1)
from doctor_faults import doctor_names_each_fault
from gangs import a_gang_lands_in_one_leaf
from helm_test import helm_test_passes_skips_and_fails
from main_job import measure, parse_log, report
from memlock import who_holds_an_hca_may_pin_memory
from networks import multus_host_device, multus_ipvlan, multus_macvlan, rdma_exclusive
from slow_alerts import slow_parts_raise_alerts
from stage import NAMESPACE, PATIENCE, ROOT, Stage, expect
from railbed.cluster import Cluster
from railbed.console import Console, Failure, wait_for
from railbed.network import HOST

FOLDER = ROOT / "out" / "e2e"


# -- test cases ----------------------------------------------------------------------------------

def main_job(stage):
    """The unchanged example: verified on every rank, over verbs, at line rate, with equal bytes on the rails."""
    result = measure(stage)
    report(stage.console, result)
    result.check()


def user_values_win(stage):
    """The user's values stay; the others are injected, once, into the container that requests RDMA."""
    documents = with_sizes(stage.example("mine"), "8", "8")
    with_env(documents, MASTER_PORT="31234", NCCL_DEBUG="INFO")
    stage.submit(documents)
    expect(stage.wait_for_job("mine") == "Complete", "the job did not complete")
    for rank, pod in enumerate(stage.pods("mine")):
        env = [e for e in pod["spec"]["containers"][0]["env"]]
        names = [e["name"] for e in env]
        expect(len(names) == len(set(names)), f"a name twice in {names}")
        values = {e["name"]: e.get("value") for e in env}
        for name, value in (("RANK", str(rank)), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "mine-0.mine"),
                            ("MASTER_PORT", "31234"), ("NCCL_DEBUG", "INFO"),
                            ("RAILHEAD_JOB", "mine")):
            expect(values.get(name) == value, f"rank {rank}: {name} is {values.get(name)}, not {value}")
        kept = pod["metadata"]["annotations"]["railhead.io/kept-environment"].split(",")
        expect(sorted(kept) == ["MASTER_PORT", "NCCL_DEBUG"], f"kept-environment says {kept}")
    # A pod that requests no rdma/* is not changed.
    stage.cluster.kubectl("run", "plain", "--image=docker.io/railhead/runtime:0.1.0",
                          "--restart=Never", "--command", "--", "/bin/true")
    plain = stage.cluster.get("pod", "plain")
    expect("env" not in plain["spec"]["containers"][0], "a pod without rdma/* got an environment")
    stage.cluster.kubectl("delete", "pod", "plain", "--wait=false")


def lost_device_falls_back_loudly(stage):
    """One rank lacks its device: all ranks finish over TCP, and all report why."""
    pods = stage.submit_held(at_ease(until_told(without_rdma_on_rank_1(
        with_sizes(stage.example("lost"), "8", "1M", "-n", "1", warmup=0)))))
    stage.release(pods)

    def degraded():
        """Returns {rank: why it is degraded}, as Prometheus has scraped it from the running pods."""
        told = stage.query('max_over_time(railhead_degraded{job="lost"}[10m])')
        return {labels["rank"]: labels["reason"] for labels, value in told if value == 1}

    wait_for("railhead_degraded is 1 on both ranks", lambda: sorted(degraded()) == ["0", "1"], PATIENCE,
             interval=1)
    stage.finish(pods)
    expect(stage.wait_for_job("lost") == "Complete", "the job did not complete over TCP")
    for rank, pod in enumerate(stage.pods("lost")):
        text = stage.logs(pod)
        expect(re.search(r"rank 1\b.*uverbs", text), f"rank {rank} does not say what rank 1 lacks")
    parsed = parse_log(stage.logs(stage.pods("lost")[0]))
    expect(parsed.transport == "tcp", f"transport is {parsed.transport}")
    expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    reasons = degraded()
    expect(sorted(reasons) == ["0", "1"], f"railhead_degraded is 1 on ranks {sorted(reasons)}")
    expect(all("rank 1" in reason for reason in reasons.values()), f"reasons: {reasons}")


def required_rdma_fails_fast(stage):
    """The same with RAILHEAD_REQUIRE_RDMA=1: every rank fails before it waits, naming rank and cause."""
    documents = keeping_failed_pods(without_rdma_on_rank_1(stage.example("strict")))
    # A rank that waited for something would wait longer than the test takes.
    with_env(documents, RAILHEAD_REQUIRE_RDMA="1", RAILHEAD_TIMEOUT_SECONDS="3600")
    stage.submit(documents)
    expect(stage.wait_for_job("strict") == "Failed", "the job did not fail")
    begins, ends = [], []
    for rank, pod in enumerate(stage.pods("strict")):
        text = stage.logs(pod)
        expect(re.search(r"rank 1\b.*uverbs", text), f"rank {rank} does not name rank 1 and the cause")
        state = pod["status"]["containerStatuses"][0]["state"].get("terminated")
        expect(state and state["exitCode"] != 0, f"rank {rank} did not fail")
        expect("# railhead-perf" not in text, f"rank {rank} has begun to measure")
        begins.append(_time(state["startedAt"]))
        ends.append(_time(state["finishedAt"]))
    # Timestamps are whole seconds.
    stage.console.line(f"    all ranks had failed {max(ends) - max(begins)} s after the last one began")


def _time(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def restarts_do_not_disturb(stage):
    """The device plugin is deleted, then the kubelets are killed, under a running job."""
    pods = stage.submit_held(at_ease(until_told(
        with_sizes(stage.example("steady"), "1M", "1M", "-n", "1", warmup=0))))
    stage.release(pods)
    stage.wait_until_it_moves("steady")
    why = {labels["rank"]: labels.get("unauthenticated", "")
           for labels, _ in stage.query('railhead_runtime_info{job="steady"}')}
    expect(why == {"0": "", "1": ""}, f"ranks are not authenticated: {why}")
    nodes = [int(pod["spec"]["nodeName"].split("-")[1]) for pod in pods]
    secret = stage.secret_of(pods)

    def processes():
        """Returns the ranks' process ids."""
        return [stage.cluster.on_node(node, "pgrep -x railhead-perf")[1].split() for node in nodes]

    ranks = processes()
    old = {pod["metadata"]["uid"] for pod in _plugin_pods(stage)}
    agents = {pod["spec"]["nodeName"] for pod in _plugin_pods(stage)}
    begin = time.monotonic()
    stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l",
                          "app.kubernetes.io/component=device-plugin", "--wait=false")
    wait_for("new plugin pods are ready", lambda: _plugin_pods_ready(stage) and not old & {
        pod["metadata"]["uid"] for pod in _plugin_pods(stage)}, PATIENCE, interval=1)
    wait_for("both kubelets have taken the new plugins' devices",
             lambda: _registered(stage, dict.fromkeys(agents, 0)), PATIENCE, interval=1)
    stage.console.line(f"    rdma/hca is back {time.monotonic() - begin:.1f} s after the plugin's deletion")
    stage.wait_until_it_moves("steady")

    before = _registrations(stage)
    expect(set(before) == agents, f"only the agents of {sorted(before)} answer")
    begin = time.monotonic()
    for node in (1, 2):
        stage.cluster.on_node(node, "pkill -KILL -x kubelet")
    # The API server would still show the allocatable resources from before; the agents know the current state.
    wait_for("both kubelets have begun anew and taken the devices",
             lambda: _registered(stage, before), PATIENCE, interval=1)
    stage.console.line(f"    rdma/hca is back {time.monotonic() - begin:.1f} s after the kubelets were killed")
    stage.wait_for_hcas(PATIENCE)
    stage.wait_until_it_moves("steady")
    expect(processes() == ranks, f"the ranks were the processes {ranks}, and are {processes()}")
    expect(stage.secret_of(pods) == secret, "the job's secret has changed")
    stage.finish(pods)
    expect(stage.wait_for_job("steady") == "Complete", "the running job was disturbed")
    pods = stage.pods("steady")
    expect(all(p["status"]["containerStatuses"][0]["restartCount"] == 0 for p in pods),
           "a container was restarted")
    parsed = parse_log(stage.logs(pods[0]))
    expect(parsed.transport == "verbs", "the job left verbs")
    expect(parsed.verified == "yes" and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    # Both nodes really offer devices to new pods.
    stage.submit(with_sizes(stage.example("after"), "8", "8"))
    expect(stage.wait_for_job("after") == "Complete", "a new job does not run after the restarts")


def _plugin_pods(stage):
    return stage.cluster.get("pods", "-n", NAMESPACE, "-l",
                             "app.kubernetes.io/component=device-plugin")["items"]


def _registrations(stage):
    """Returns {node: how often its agent has registered with the kubelet}, without agents that do not respond."""
    counts = {}
    for pod in _plugin_pods(stage):
        with contextlib.suppress(Failure, KeyError):
            page = stage.fetch(f"http://{pod['status']['podIP']}:9401/metrics")
            found = re.search(r"^railhead_agent_registrations_total{.*} (\S+)$", page, re.M)
            counts[pod["spec"]["nodeName"]] = float(found[1]) if found else 0
    return counts


def _registered(stage, before):
    """Returns whether every node's agent has registered with its kubelet since then."""
    now = _registrations(stage)
    return all(now.get(node, 0) > count for node, count in before.items())


@contextlib.contextmanager
def _holder(stage, hcas):
    """Runs the pod `holder` on node 2 inside the `with`; it holds `hcas` HCAs."""
    container = container_of(stage.example("holder"))
    container.update(command=["sleep", "3600"], env=[])
    container["resources"]["limits"]["rdma/hca"] = hcas
    stage.cluster.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder"},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "node-2"}, "containers": [container],
                 "terminationGracePeriodSeconds": 1}}))
    try:
        wait_for("the pod runs",
                 lambda: stage.cluster.get("pod", "holder")["status"]["phase"] == "Running", PATIENCE, interval=1)
        yield
    finally:
        stage.cluster.kubectl("delete", "pod", "holder", "--wait=true")
        stage.wait_for_hcas(PATIENCE)


def a_dead_link_is_told_and_recovers(stage):
    """A rail under a pod goes down: node, pod status and metrics report it. Then it recovers by itself."""
    with _holder(stage, stage.cluster.rails):
        try:
            _link_goes_down_and_up(stage)
        finally:
            stage.cluster.on_node(2, f"ip link set eth{stage.cluster.rails} up")


def _link_goes_down_and_up(stage):

    def health():
        """Returns {device: health} from the pod's status."""
        status = stage.cluster.get("pod", "holder")["status"]["containerStatuses"][0]
        return {device["resourceID"].partition("-")[0]: device["health"]
                for resource in status.get("allocatedResourcesStatus", [])
                for device in resource.get("resources", [])}

    def shown(device, healthy):
        agent = next(p for p in stage.cluster.get("pods", "-n", NAMESPACE)["items"]
                     if p["spec"]["nodeName"] == "node-2" and "device-plugin" in p["metadata"]["name"])
        lines = stage.fetch(f"http://{agent['status']['podIP']}:9401/metrics").splitlines()
        return any(re.match(rf'railhead_device_healthy{{.*device="{device}".*pod="holder".*}} {healthy}$',
                            line) for line in lines)

    def offered():
        return stage.cluster.get("node", "node-2")["status"]["allocatable"].get("rdma/hca")

    last = stage.cluster.rails - 1
    device, interface = f"rxe{last}", f"eth{last + 1}"
    begin = time.monotonic()
    stage.cluster.on_node(2, f"ip link set {interface} down")
    wait_for("the pod's status says that its device is unhealthy",
             lambda: health().get(device) == "Unhealthy", PATIENCE)
    told = time.monotonic() - begin
    wait_for("the node offers one device less", lambda: offered() == str(last), PATIENCE)
    stage.console.line(f"    link down: in the pod's status after {told:.1f} s, in the node's after "
                       f"{time.monotonic() - begin:.1f} s (the kubelet reports its node every 10 s)")
    wait_for("the metrics say so", lambda: shown(device, 0), PATIENCE)
    wait_for("the node's condition names the rail",
             lambda: f"rail {last} ({device}): " in stage.told_of(2)["condition"], PATIENCE)
    expect(stage.told_of(2)["condition"].startswith("False"), stage.told_of(2)["condition"])

    def events():
        return [event["message"] for event in stage.cluster.get(
            "events", "--field-selector", "involvedObject.name=node-2,reason=RailDown")["items"]]

    wait_for("an Event of the node names the rail",
             lambda: any(message.startswith(f"rail {last} ({device}): ") for message in events()), PATIENCE)
    expect(health().get("rxe0") == "Healthy", f"the other device is {health().get('rxe0')}")
    begin = time.monotonic()
    stage.cluster.on_node(2, f"ip link set {interface} up")
    wait_for("the device is healthy again", lambda: health().get(device) == "Healthy", PATIENCE)
    stage.console.line(f"    link up: healthy again after {time.monotonic() - begin:.1f} s "
                       "(it has to be well for 10 s, for 2 minutes when it has gone up and down often)")
    wait_for("the metrics say so", lambda: shown(device, 1), PATIENCE)
    wait_for("the node's condition is True again",
             lambda: stage.told_of(2)["condition"].startswith("True"), PATIENCE)


def events_of(stage, job, reason):
    """Returns the operator's Events with that reason about the job's pods."""
    names = {pod["metadata"]["name"] for pod in stage.pods(job)}
    return [e for e in stage.cluster.get("events", "--field-selector", f"reason={reason}")["items"]
            if e["involvedObject"]["name"] in names]


@contextlib.contextmanager
def stranger_between_pods(stage):
    """Redirects new TCP connections between pods of the two nodes to an impostor, which responds with the bytes that
    it received, with the tokens swapped. Yields a function that returns the number of responses."""
    port, pages = 9, 9402
    log = stage.cluster.start("stranger", ["/usr/bin/python3", ROOT / "tests" / "rails" / "impostor.py", port, "swap"])
    try:
        for node, other in ((1, 2), (2, 1)):
            stage.cluster.on_node(node, (
                "nft 'add table ip stranger; add chain ip stranger before { type nat hook prerouting priority -110; }; "
                f"add rule ip stranger before ip saddr 10.244.{node}.0/24 ip daddr 10.244.{other}.0/24 "
                f"tcp dport != {pages} dnat to {HOST}:{port}'"))
        yield lambda: log.read_text("utf-8").count("answered")
    finally:
        for node in (1, 2):
            stage.cluster.on_node(node, "nft delete table ip stranger", check=False)
        stage.cluster.stop("stranger")


def a_lost_rail_is_survived(stage):
    """A rail of a running job is lost repeatedly: the job continues, and uses the rail again, but never with an
    impostor at the peer's address."""
    pods = stage.submit_held(at_ease(until_told(
        with_sizes(stage.example("flapping"), "1M", "1M", "-n", "1", warmup=0))))
    stage.secret_of(pods)  # which differs from the previous job's
    stage.release(pods)
    last = stage.cluster.rails - 1

    def ranks(*more):
        """Returns each rank's data about the rail: (bytes sent, number of losses, 1 while it works), and `more`
        metrics. Prometheus may have missed a busy rank for some seconds: the last value counts."""
        series = f'{{job="flapping",rail="{last}"}}[1m]'
        said = [{labels["rank"]: value for labels, value in stage.query(f"last_over_time({metric}{series})")}
                for metric in ("railhead_rail_transmit_bytes_total", "railhead_rail_failovers_total",
                               "railhead_rail_state", *more)]
        return {rank: tuple(values[rank] for values in said)
                for rank in sorted(set.intersection(*map(set, said)))}

    def wait_for_ranks(what, holds, seconds, *more):
        """Waits until `holds(rank, sent, losses, up)`, with `more` metrics, is true for both ranks, including ranks
        that have not reported yet. Returns their data at that time."""
        now = {}

        def all_hold():
            nonlocal now
            now = ranks(*more)
            return len(now) == 2 and all(holds(rank, *said) for rank, said in now.items())

        try:
            wait_for(what, all_hold, seconds, interval=0.5)
        except Failure as failure:
            raise Failure(f"{failure}; (bytes, losses, works) of each rank: {now}") from failure
        return now

    before = wait_for_ranks("the job runs over both rails", lambda rank, sent, losses, up: sent > 1e6, PATIENCE)
    for trouble, spoil in (
            ("unplugged", lambda state: stage.cluster.network.set_wire(1, last, state)),
            ("interface", lambda state: stage.cluster.on_node(2, f"ip link set eth{last + 1} {state}")),
            ("unplugged", lambda state: stage.cluster.network.set_wire(2, last, state))):
        begin = time.monotonic()
        try:
            spoil("down")
            before = wait_for_ranks(f"both ranks lose rail {last} ({trouble})",
                                    lambda rank, sent, losses, up: losses > before[rank][1], PATIENCE)
            told = time.monotonic() - begin
            if trouble == "interface":
                wait_for(f"an Event names rail {last} of node-2",
                         lambda: any(f"rail {last} " in e["message"] and "node-2" in e["message"]
                                     for e in events_of(stage, "flapping", "RailDown")), PATIENCE, interval=2)
            begin = time.monotonic()
        finally:
            spoil("up")
        before = wait_for_ranks(f"rail {last} carries again ({trouble})",
                                lambda rank, sent, losses, up: up and sent > before[rank][0] + 1e5, PATIENCE)
        stage.console.line(f"    {trouble}: seen lost after {told:.1f} s, carries again "
                           f"{time.monotonic() - begin:.1f} s after it was repaired")
    returns = "railhead_rail_returns_total"
    with stranger_between_pods(stage) as answered:
        try:
            stage.cluster.network.set_wire(1, last, "down")
            before = wait_for_ranks(f"both ranks lose rail {last} (stranger)",
                                    lambda rank, sent, losses, up, back: losses > before[rank][1], PATIENCE, returns)
        finally:
            stage.cluster.network.set_wire(1, last, "up")
        # The NICs reach each other again; ranks that connect meet the impostor.
        first = answered()
        wait_for("ranks connect to the stranger", lambda: answered() >= first + 3, PATIENCE)
        now = wait_for_ranks("both ranks answer", lambda *_: True, PATIENCE, returns)
        expect(all(up == 0 and back == before[rank][3] for rank, (_, _, up, back) in now.items()),
               f"a stranger was taken for a rank: {now}, before {before}")
    wait_for_ranks(f"rail {last} carries again (stranger)",
                   lambda rank, sent, losses, up: up and sent > before[rank][0] + 1e5, PATIENCE)
    stage.finish(pods)
    expect(stage.wait_for_job("flapping") == "Complete", "the job did not survive")
    pods = stage.pods("flapping")
    expect(all(p["status"]["containerStatuses"][0]["restartCount"] == 0 for p in pods),
           "a container was restarted")
    parsed = parse_log(stage.logs(pods[0]))
    expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
    expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    for rank, pod in enumerate(pods):
        text = stage.logs(pod)
        expect(re.search(rf"rail {last} .*: lost", text) and re.search(rf"rail {last} .*: is back", text),
               f"rank {rank} does not say that rail {last} was lost and is back")


@contextlib.contextmanager
def _iwarp(stage):
    """Makes the rails iWARP (siw) inside the `with`; the nodes report it. Restores them afterwards."""
    def offers(kind):
        facts = [json.loads(stage.told_of(node)["annotations"].get("railhead.io/node-facts", "{}"))
                 for node in range(1, stage.cluster.nodes + 1)]
        return all([(rail["device"], rail["usable"]) for rail in node.get("rails", [])] ==
                   [(f"{kind}{rail}", True) for rail in range(stage.cluster.rails)]
                   for node in facts)

    def agents_find(kind):
        # A running agent would keep the rails of devices that have vanished.
        stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l",
                              "app.kubernetes.io/component=device-plugin")
        wait_for("the agents are back", lambda: _plugin_pods_ready(stage), PATIENCE)
        wait_for(f"the nodes say that their rails are {kind}", lambda: offers(kind), PATIENCE)
        stage.wait_for_hcas(PATIENCE)

    try:
        with stage.cluster.rails_as("siw"):
            agents_find("siw")
            yield
    except Exception:
        # Cleans up for later test cases; the original failure is the one to report.
        with contextlib.suppress(Failure):
            agents_find("rxe")
        raise
    agents_find("rxe")


def iwarp_rails(stage):
    """The same rails as iWARP (siw): discovered, allocated to pods, and an all-reduce over verbs."""
    with _iwarp(stage):
        documents = with_sizes(stage.example("iwarp"), "8", "1M", "-n", "3")
        # iWARP's connection manager accepts only addresses of the pod's own network.
        pod_of(documents).update(
            hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
        stage.submit(documents)
        outcome = stage.wait_for_job("iwarp")
        logs = [stage.logs(pod) for pod in stage.pods("iwarp")]
        expect(outcome == "Complete", f"the job did not complete: {logs[0].strip()[-600:]}")
        parsed = parse_log(logs[0])
        expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
        expect(parsed.degraded == "no", f"degraded: {parsed.degraded}")
        expect(parsed.verified == "yes" and all(row.wrong == 0 for row in parsed.rows),
               "wrong results")
        expect(sorted(device for device, _, _ in parsed.rails.values()) ==
               [f"siw{rail}" for rail in range(stage.cluster.rails)], f"rails: {parsed.rails}")
        expect(all(sent > 0 and received > 0 for _, sent, received in parsed.rails.values()),
               f"a rail carried nothing: {parsed.rails}")
        last = parsed.rows[-1]
        stage.console.line(f"    {last.size} bytes: {last.busbw / 1e6:.2f} MB/s over "
                           f"{len(parsed.rails)} rails; 8 bytes: {parsed.rows[0].time_us:.0f} us")
        conformance(stage, "conforming-iwarp", hostNetwork=True,
                    dnsPolicy="ClusterFirstWithHostNet")


def every_collective_is_right(stage):
    """The conformance matrix over RoCE (rxe), between two pods, with three queue pairs per connection; the other test
    cases use one."""
    conformance(stage, "conforming", {"RAILHEAD_IB_QPS_PER_RAIL": "3"})


def preflight_tells_what_is_wrong(stage):
    """railhead-perf --preflight in the pods: first all checks pass, then a rail leads nowhere."""
    def preflight(name):
        documents = stage.example(name)
        # If a job fails, Kubernetes deletes its running pods and with them their logs.
        container_of(documents)["command"] = [
            "/bin/sh", "-c", "railhead-perf --preflight -o json; echo exit code $?"]
        stage.submit(documents)
        expect(stage.wait_for_job(name) == "Complete", "the job did not complete")
        logs = [stage.logs(pod) for pod in stage.pods(name)]
        codes = {int(code) for log in logs for code in re.findall(r"^exit code (\d+)$", log, re.M)}
        return codes, json.loads(re.search(r"^\{.*^\}", logs[0], re.M | re.S)[0])

    codes, report = preflight("well")
    expect(codes == {0} and report["ranks"] == 2, f"exit codes {codes}: {report}")
    failed = [f for f in report["findings"] if f["verdict"] == "fail"]
    pings = {f["rail"] for f in report["findings"] if f["check"] == "ping" and f["verdict"] == "ok"}
    gids = {f["value"] for f in report["findings"] if f["check"] == "gid"}
    expect(not failed and pings == set(range(stage.cluster.rails)), f"{report}")
    stage.console.line(f"    well: {len(report['findings'])} findings; GIDs: {'; '.join(sorted(gids))}")

    last = stage.cluster.rails - 1
    stage.cluster.network.set_wire(2, last, "down")
    try:
        codes, report = preflight("unplugged")
    finally:
        stage.cluster.network.set_wire(2, last, "up")
    # One finding is about the job, which lacks a rail; another one about the rail, with the cause.
    failed = [f for f in report["findings"] if f["verdict"] == "fail" and f["rail"] is not None]
    expect(codes == {1} and failed and all(f["rail"] == last and f["fix"] for f in failed),
           f"exit codes {codes}: {report}")
    stage.console.line(f"    unplugged: {failed[0]['where']}: {failed[0]['value']}. "
                       f"Fix: {failed[0]['fix']}")


def a_pod_takes_its_own_gid(stage):
    """Pods with their own macvlan interfaces on the rails: the ports' tables contain the nodes' GIDs first, then
    holes, and further back the pods' GIDs. Each pod uses its own."""
    documents = with_sizes(stage.example("own-gid"), "8", "64K", "-n", "2")
    with_env(documents, RAILHEAD_LOG="info")
    pods = stage.submit_held(documents)
    rails = range(stage.cluster.rails)
    addresses = {}
    for number, pod in enumerate(pods):
        node = int(pod["spec"]["nodeName"].split("-")[1])
        # As a CNI plugin would do; the first two addresses leave holes in the table.
        shell = "pid=$(pgrep -f 'until .*/work/go' | head -n 1); "
        for rail in rails:
            addresses[number, rail] = f"10.10.{rail}.{100 + node}"
            shell += (f"for hole in 3 4; do ip addr add 10.9{rail}.$hole.{node}/24 dev eth{rail + 1}; done; "
                      f"ip link add own{rail} link eth{rail + 1} type macvlan mode bridge; "
                      f"ip link set own{rail} netns $pid; "
                      f"nsenter -t $pid -n ip addr add {addresses[number, rail]}/24 dev own{rail}; "
                      f"nsenter -t $pid -n ip link set own{rail} up; "
                      f"for hole in 3 4; do ip addr del 10.9{rail}.$hole.{node}/24 dev eth{rail + 1}; done; ")
        stage.cluster.on_node(node, shell)
    stage.release(pods)
    outcome = stage.wait_for_job("own-gid")
    for number, pod in enumerate(stage.pods("own-gid")):
        log = stage.logs(pod)
        expect(outcome == "Complete", f"the job did not complete: {log.strip()[-600:]}")
        for rail in rails:
            told = re.search(rf"rail {rail}, device .*?: .*? (\S+) \(GID index (\d+)\)", log)
            expect(told and told[1] == addresses[number, rail] and int(told[2]) > 3,
                   f"rank {number} rail {rail}: {told and told[0]}, not {addresses[number, rail]}")
    stage.console.line(f"    {told[0]}")


def nodes_say_what_they_have(stage):
    """Nodes have labels for selectors, an annotation for the operator, and a condition for people."""
    for node in range(1, stage.cluster.nodes + 1):
        told = wait_for("the agent has told of its node",
                        lambda: (t := stage.told_of(node))["condition"] and t, PATIENCE)
        rails = stage.cluster.rails
        labels = told["labels"]
        expect(labels.get("railhead.io/rails") == str(rails) and
               labels.get("railhead.io/link-layer") == "Ethernet" and
               labels.get("railhead.io/gpus") == "0" and
               "railhead.io/memlock-bytes" in labels, f"the labels are {labels}")
        facts = json.loads(told["annotations"]["railhead.io/node-facts"])
        expect([rail["device"] for rail in facts["rails"]] == [f"rxe{r}" for r in range(rails)] and
               all(rail["usable"] for rail in facts["rails"]), f"the facts are {facts}")
        expect(told["condition"] == f"True AllRailsUp: all {rails} rails carry data", told["condition"])

    def in_use():
        return stage.told_of(2)["annotations"].get("railhead.io/rails-in-use")

    with _holder(stage, 1):
        wait_for("the agent tells which rail a pod holds", lambda: in_use() == "0", PATIENCE)
    wait_for("no rail is in use any more", lambda: in_use() is None, PATIENCE)
    # An agent's token is valid for its own node only.
    agent = next(p["metadata"]["name"] for p in stage.cluster.get("pods", "-n", NAMESPACE)["items"]
                 if p["spec"]["nodeName"] == "node-1" and "device-plugin" in p["metadata"]["name"])
    token = stage.cluster.kubectl("create", "token", "railhead-device-plugin", "-n", NAMESPACE,
                                  "--bound-object-kind=Pod",
                                  f"--bound-object-name={agent}").stdout.strip()
    for node, allowed in ((1, True), (2, False)):
        done = stage.cluster.kubectl(
            "--kubeconfig=/dev/null", f"--server={stage.cluster.server}",
            f"--certificate-authority={stage.cluster.pki.ca}", f"--token={token}", "label", "node",
            f"node-{node}", "railhead.io/test=1", check=False)
        expect((done.returncode == 0) == allowed, f"node-{node}: {done.stderr}")
    stage.cluster.kubectl("label", "node", "node-1", "railhead.io/test-")


def _plugin_pods_ready(stage):
    pods = _plugin_pods(stage)
    return len(pods) == stage.cluster.nodes and all(
        "deletionTimestamp" not in p["metadata"] and any(
            c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))
        for p in pods)


def too_many_hcas_stay_pending(stage):
    """More HCAs than any node has: the job stays Pending, with the scheduler's own reason."""
    documents = stage.example("greedy")
    limits = container_of(documents)["resources"]["limits"]
    limits["rdma/hca"] = stage.cluster.rails + 1
    stage.submit(documents)
    try:
        stays_pending(stage)
    finally:
        # A later test case adds nodes that are large enough.
        stage.cluster.kubectl("delete", "job", "greedy", "--cascade=foreground")


def stays_pending(stage):
    def reason():
        for pod in stage.pods("greedy"):
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return condition["message"]
        return None

    message = wait_for("the scheduler gives its reason", reason, PATIENCE)
    stage.console.line(f"    {message}")
    expect("Insufficient rdma/hca" in message, f"the reason is: {message}")
    expect(all(p["status"]["phase"] == "Pending" for p in stage.pods("greedy")), "not Pending")


def chart_refuses_unknown_values(stage):
    """A misspelt value is reported, not ignored."""
    answer = stage.cluster.helm("upgrade", "railhead", ROOT / "charts" / "railhead", "--namespace",
                                NAMESPACE, "--set", "operator.replica=3", check=False)
    expect(answer.returncode != 0 and "replica" in answer.stderr, f"helm said: {answer.stderr}")


def upgrade_keeps_the_webhook(stage):
    """helm upgrade does not change the certificates: the next pod is still injected."""
    stage.upgrade("--set", "operator.environment.NCCL_DEBUG=TRACE")
    stage.wait_for_hcas(PATIENCE)
    stage.submit(with_sizes(stage.example("upgraded"), "8", "8"))
    expect(stage.wait_for_job("upgraded") == "Complete", "the job did not complete")
    env = {e["name"]: e.get("value") for e in stage.pods("upgraded")[0]["spec"]["containers"][0]["env"]}
    expect(env.get("NCCL_DEBUG") == "TRACE", f"NCCL_DEBUG is {env.get('NCCL_DEBUG')}")


def uninstall_leaves_nothing(stage):
    """Uninstalling the chart removes everything that came with it, from the cluster and the nodes."""
    # The test deletes the users' objects itself; "kubernetes" is the API server's own service.
    stage.cluster.kubectl("delete", "jobs,pods,services", "--field-selector",
                          "metadata.name!=kubernetes", "--wait=true", seconds=600)
    stage.upgrade("--set", "crds.keep=false")  # otherwise the kinds stay
    stage.cluster.helm("uninstall", "railhead", "--namespace", NAMESPACE, "--wait")

    def gone():
        return stage.objects() <= stage.objects_before and (
            [stage.traces_on_node(n) for n in (1, 2)] == stage.traces_before) and (
            not any(any(stage.told_of(n).values()) for n in (1, 2)))

    try:
        wait_for("all is as before", gone, PATIENCE, interval=2)
    except Failure:
        left = sorted(stage.objects() - stage.objects_before)
        files = [stage.traces_on_node(n) for n in (1, 2)]
        raise Failure(f"left behind: {left}; files on the nodes: {files}, "
                      f"before: {stage.traces_before}; the nodes still say "
                      f"{[stage.told_of(n) for n in (1, 2)]}") from None


def interrupted_demo_leaves_nothing(_stage):
    """Ctrl-C during the demo: no process, namespace or mount remains."""
    folder = str(ROOT / "out" / "demo")
    cluster = Cluster(folder)

    def processes():
        """Returns processes that run in the demo's folder, or name it, as PID and arguments."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # the process may have ended
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if folder in words or str((process / "cwd").readlink()).startswith(folder):
                    found[process.name] = words
        return found

    expect(not processes() and not cluster.network.exists(), "a demo runs here: make demo-down")
    log = FOLDER / "interrupted-demo.log"
    with open(log, "w", encoding="utf-8") as out:
        demo = subprocess.Popen([sys.executable, ROOT / "tests" / "e2e" / "demo.py"], stdout=out,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        # Everything is already built.
        wait_for("the demo starts its nodes", lambda: demo.poll() is not None or
                 "waiting for the nodes" in log.read_text(), 1200, log=log, interval=0.5)
        demo.send_signal(signal.SIGINT)
        try:
            expect(demo.wait(PATIENCE) == 1, "an interrupted demo does not exit with 1")
        except subprocess.TimeoutExpired:
            raise Failure("an interrupted demo goes on", log=log) from None
        expect("interrupted" in log.read_text(), "it does not say that it was interrupted")
    finally:
        if demo.poll() is None:
            demo.kill()
            demo.wait(10)
            cluster.down()
    mounts = pathlib.Path("/proc/mounts").read_text("ascii")
    expect(folder not in mounts, f"mounts are left behind: {mounts}")
    expect(not processes(), f"processes are left behind: {processes()}")
    expect(not cluster.network.exists(), f"left behind: network namespace {cluster.network.name}")


# A demo whose nodes are never ready, and which checks for that all the time.
ASKS_FOR_EVER = """
import sys, time
import demo
from railbed.cluster import Cluster

class Stage:
    def __init__(self, *_):
        self.cluster = Cluster(sys.argv.pop())
        self.cluster.check = lambda: None
        self.cluster._boot_again_if_hung = lambda _: None
        self.cluster.get = self.get
    def get(self, *_):
        print("asks", flush=True)
        time.sleep(600)
    def up(self):
        self.cluster._wait_ready([1])
    def down(self):
        print("down", flush=True)

demo.Stage = Stage
sys.exit(demo.main())
"""


def an_interrupt_is_no_answer(_stage):
    """Ctrl-C while the demo checks whether its nodes are ready: the interrupt must not count as "not yet"."""
    demo = subprocess.Popen([sys.executable, "-c", ASKS_FOR_EVER, FOLDER / "never-ready"], text=True,
                            cwd=ROOT / "tests" / "e2e", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        expect(any(line == "asks\n" for line in demo.stdout), "the demo does not ask")
        demo.send_signal(signal.SIGINT)
        told = demo.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        raise Failure("an interrupted demo goes on") from None
    finally:
        demo.kill()
    expect(demo.returncode == 1 and "down\n" in told and "interrupted (SIGINT)" in told,
           f"exit code {demo.returncode}: {told}")


# From memlock on, test cases use features that are off by default, until upgrade_keeps_the_webhook.
ON_THE_CLUSTER = (main_job, nodes_say_what_they_have, user_values_win, lost_device_falls_back_loudly,
                  required_rdma_fails_fast, restarts_do_not_disturb, a_lost_rail_is_survived,
                  every_collective_is_right, preflight_tells_what_is_wrong, a_pod_takes_its_own_gid,
                  iwarp_rails, a_dead_link_is_told_and_recovers, too_many_hcas_stay_pending,
                  chart_refuses_unknown_values, who_holds_an_hca_may_pin_memory, aligned_sets,
                  a_gang_lands_in_one_leaf, upgrade_keeps_the_webhook, uninstall_leaves_nothing)
WITHOUT = (an_interrupt_is_no_answer, interrupted_demo_leaves_nothing)
# With the pods' networks by Multus.
WITH_MULTUS = (multus_macvlan, multus_ipvlan, multus_host_device)
# Test cases of minutes or hours; `make soak` runs them, and then uninstalls the chart.
LONG = (helm_test_passes_skips_and_fails, doctor_names_each_fault, alerts_fire_and_end, slow_parts_raise_alerts,
        no_alert_while_all_is_well, *WITH_MULTUS, rdma_exclusive)


def traces_on_node(stage, node):
    """Returns files that the agent could leave on a node, except for its rail map, which stays. Folders of the kubelet
    and of CDI are not its own."""
    return stage.cluster.on_node(
        node, "find /var/lib/kubelet/device-plugins /var/run/cdi /etc/cdi -mindepth 1 ! -name 'kubelet*' "
        "! -path /var/lib/kubelet/device-plugins/railhead ! -name rail-map.json 2>/dev/null; "
        "find /run/railhead /var/lib/railhead 2>/dev/null; true")[1]


def kernels_trouble(stage):
    """Returns errors that the nodes' kernels have logged since their boot: the last lines, to append to a reason."""
    bad = "BUG|WARNING|Oops|Call Trace|Out of memory|hung|stall"
    told = ""
    for node in range(1, stage.cluster.nodes + 1):
        try:
            log = stage.cluster.on_node(node, f"dmesg | grep -E '{bad}'", check=False)[1]
        except Failure as failure:
            log = str(failure)
        if log.strip():
            told += f"; the kernel of node-{node}: {' | '.join(log.strip().splitlines()[-5:])}"
    return told


def play(console, stage, scene):
    """Returns why the scene failed, or None."""
    console.line(f"=== {scene.__name__}: {scene.__doc__}")
    try:
        with console.step(scene.__name__):
            scene(stage)
        return None
    except Failure as failure:
        console.failed(failure)
        return str(failure) + (kernels_trouble(stage) if stage else "")
    except Exception as failure:  # an exception fails this test case; the others still run
        console.plain(traceback.format_exc())
        return repr(failure)


def main():
    console = Console()
    chosen = sys.argv[1:]
    if chosen == ["--long"]:
        chosen = [scene.__name__ for scene in (*LONG, uninstall_leaves_nothing)]
    known = {scene.__name__ for scene in (*ON_THE_CLUSTER, *WITHOUT, *LONG)}
    if unknown := set(chosen) - known:
        sys.exit(f"run.py: no scene is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = {}
    on_cluster = [s for s in (*LONG, *ON_THE_CLUSTER) if s.__name__ in chosen] if chosen else ON_THE_CLUSTER
    stage = Stage(console, FOLDER)
    if on_cluster:
        stage.down()  # left over from KEEP=1 or a killed run
        try:
            stage.up(cni=not set(WITH_MULTUS).isdisjoint(on_cluster))
            # The administrator owns the namespace: helm does not remove it even if --create-namespace created it.
            stage.cluster.kubectl("create", "namespace", NAMESPACE)
            wait_for("the namespace is furnished", lambda: stage.cluster.kubectl(
                "-n", NAMESPACE, "get", "configmap/kube-root-ca.crt", "serviceaccount/default",
                check=False).returncode == 0, PATIENCE)
            stage.objects_before = stage.objects()
            stage.traces_on_node = lambda node: traces_on_node(stage, node)
            stage.traces_before = [stage.traces_on_node(n) for n in (1, 2)]
            stage.install()
            for scene in on_cluster:
                results[scene.__name__] = play(console, stage, scene)
        except Failure as failure:
            console.failed(failure)
            results["the stage"] = str(failure)
        finally:
            if os.environ.get("KEEP") != "1":
                stage.down()
    for scene in WITHOUT:
        if not chosen or scene.__name__ in chosen:
            results[scene.__name__] = play(console, None, scene)
    for name, why in results.items():
        console.plain(f"passed  {name}" if why is None else f"FAILED  {name}: {why}")
    failed = sum(why is not None for why in results.values())
    console.plain(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
