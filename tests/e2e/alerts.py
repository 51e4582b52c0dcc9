# SPDX-License-Identifier: Apache-2.0
"""The chart's alerts on real nodes: each fires on the fault that it is for, names the place, and ends after the
repair; none fires on a healthy cluster. These test cases take as long as the alerts' own delays: `make soak` runs
them. slow_alerts.py has the alerts about slow parts."""

import contextlib
import json
import os
import re
import sys
import time

from alert_watch import ADDRESS, AlertWatch
from documents import at_ease, container_of, job_of, pod_of, until_told, with_sizes, without_rdma_on_rank_1
from stage import NAMESPACE, ROOT, expect
from railbed.console import Failure, wait_for

OPERATOR = "railhead-operator"
WEBHOOK = f"{NAMESPACE}-{OPERATOR}"
LONG = 7200  # maximum seconds of a job


def alerts_fire_and_end(stage):
    """Each fault raises its own alert, and no other."""
    stage.with_options()
    watch = AlertWatch(stage)
    with watch.running(), contextlib.ExitStack() as stack:
        waiting = _gang_without_room(stage, stack)
        watch.expect("RailheadGangWaiting")
        _tcp(stage, watch)
        _fewer_rails(stage, watch)
        pods = _job(stage, "observed")
        stack.callback(stage.cluster.kubectl, "delete", "job", "observed", "--ignore-not-found")
        stage.console.line("    all is well for two minutes")
        watch.stays_quiet(120)
        _dashboards(stage)
        _misspelt_resource(stage, watch, lambda: _page_closed(stage, watch, pods, lambda: _rail_down(stage, watch)))
        flapping = _flapping(stage, watch)
        _webhook_untrusted(stage, watch)
        _agent_page_closed(stage, watch, lambda: _no_kubelet(stage, watch))
        _no_leader(stage, watch)
        stage.finish(pods)
        expect(stage.wait_for_job("observed") == "Complete", "the job did not complete")
        watch.ends("RailheadLinkFlapping", flapping, 20 * 60)
        watch.fires("RailheadGangWaiting", waiting + 1800, gang="waiting")
        since = time.monotonic()
        stage.cluster.kubectl("delete", "job", "waiting", "--ignore-not-found")
        watch.ends("RailheadGangWaiting", since)
        watch.show()


def no_alert_while_all_is_well(stage):
    """Jobs, restarts and upgrades for RAILHEAD_HEALTHY_MINUTES (default 60): no alert fires."""
    minutes = float(os.environ.get("RAILHEAD_HEALTHY_MINUTES", "60"))
    stage.with_options()
    watch = AlertWatch(stage)
    begin, rounds = time.monotonic(), 0
    with watch.running():
        while time.monotonic() - begin < minutes * 60:
            rounds += 1
            pods = _job(stage, f"well-{rounds}")
            watch.stays_quiet(60)
            stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/component=device-plugin")
            watch.stays_quiet(60)
            stage.cluster.on_node(1 + rounds % 2, "pkill -KILL -x kubelet")
            watch.stays_quiet(60)
            stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/component=operator")
            watch.stays_quiet(60)
            stage.upgrade_options("--set", f"operator.environment.ROUND=r{rounds}")
            watch.stays_quiet(60)
            stage.wait_until_it_moves(f"well-{rounds}")
            stage.finish(pods)
            expect(stage.wait_for_job(f"well-{rounds}") == "Complete", "the job did not complete")
        expect(not watch.ever_fired(int(minutes) + 10), f"fired: {watch.ever_fired(int(minutes) + 10)}")
    stage.console.line(f"    {rounds} rounds of a job, restarts and an upgrade in {(time.monotonic() - begin) / 60:.0f} min")


def _dashboards(stage):
    """Checks that every panel of every dashboard has data, and draws each dashboard into the run's folder."""
    for path in sorted((ROOT / "charts" / "railhead" / "dashboards").glob("*.json")):
        asked = stage.cluster.run_inside(
            [sys.executable, ROOT / "tests" / "e2e" / "dashboard_queries.py", f"http://{ADDRESS}", "--dashboard", path,
             "--rate-interval", "30s", "--step", "5"], check=False)
        stage.console.line(f"    {path.stem}: {asked.stdout.strip().splitlines()[-1]}")
        expect(asked.returncode == 0, f"{path.name} has panels without data: {asked.stdout[-600:]} {asked.stderr[-300:]}")
        stage.cluster.run_inside([ROOT / "tools" / "pictures.sh", f"http://{ADDRESS}", "--output",
                                  stage.cluster.folder / "pictures", "--dashboard", path, "--rate-interval", "30s"])


def _lasting(documents):
    job_of(documents)["spec"]["activeDeadlineSeconds"] = LONG
    return at_ease(until_told(documents))


def _job(stage, name):
    """Starts a job that runs until stage.finish(); returns its pods once bytes move on all rails."""
    pods = stage.submit_held(_lasting(with_sizes(stage.example(name), "1M", "1M", "-n", "1", warmup=0)))
    stage.release(pods)
    stage.wait_until_it_moves(name)
    return pods


def _gang_without_room(stage, stack):
    """Creates a gang of three pods for two nodes; returns the time since which they wait."""
    documents = stage.example("waiting")
    job = job_of(documents)
    job["metadata"]["labels"] = {"railhead.io/gang": "true"}
    job["spec"].update(completions=3, parallelism=3, activeDeadlineSeconds=LONG)
    stage.submit(documents)
    stack.callback(stage.cluster.kubectl, "delete", "job", "waiting", "--ignore-not-found")
    return time.monotonic()


def _spoilt_job(stage, watch, alert, documents):
    """Runs a job with less than it requested until its alert has fired."""
    name = job_of(documents)["metadata"]["name"]
    pods = stage.submit_held(_lasting(documents))
    watch.expect(alert)
    stage.release(pods)
    # The ranks take a while to start and to agree.
    page = f"http://{pods[0]['status']['podIP']}:9402/metrics"
    wait_for(f"{name} says that it is degraded", lambda: _says(stage, page, r"^railhead_degraded{.*} 1$"), 120, interval=0.5)
    since = time.monotonic()
    watch.fires(alert, since, job=name, namespace="default")
    since = time.monotonic()
    stage.finish(pods)
    expect(stage.wait_for_job(name) == "Complete", f"{name} did not complete")
    stage.cluster.kubectl("delete", "job", name)
    watch.ends(alert, since)


def _says(stage, page, line):
    with contextlib.suppress(Failure):
        return re.search(line, stage.fetch(page), re.M)
    return None


def _tcp(stage, watch):
    _spoilt_job(stage, watch, "RailheadTcpInsteadOfRdma",
                without_rdma_on_rank_1(with_sizes(stage.example("over-tcp"), "8", "64K", "-n", "1", warmup=0)))


def _fewer_rails(stage, watch):
    """Rank 1 finds only the first of its devices."""
    documents = with_sizes(stage.example("fewer"), "8", "64K", "-n", "1", warmup=0)
    container = container_of(documents)
    take = 'if [ "$RANK" = 1 ]; then rm $(ls /dev/infiniband/uverbs* | tail -n 1); fi && exec "$@"'
    container["command"] = ["/bin/sh", "-c", take, "sh"] + container["command"]
    pod_of(documents)["securityContext"] = {}
    container["securityContext"] = {}
    _spoilt_job(stage, watch, "RailheadJobDegraded", documents)


def _rail_down(stage, watch):
    last = stage.cluster.rails - 1
    since = watch.expect("RailheadRailDown", "RailheadNodeRailDown")
    stage.cluster.on_node(2, f"ip link set eth{last + 1} down")
    try:
        watch.fires("RailheadRailDown", since, job="observed", namespace="default", rail=str(last), node="node-2")
        watch.fires("RailheadNodeRailDown", since, node="node-2", rail=str(last))
    finally:
        stage.cluster.on_node(2, f"ip link set eth{last + 1} up")
    since = time.monotonic()
    watch.ends("RailheadRailDown", since)
    watch.ends("RailheadNodeRailDown", since)


def _misspelt_resource(stage, watch, meanwhile):
    container = container_of(stage.example("misspelt"))
    container["resources"]["limits"] = {"rdma/hcas": 1}
    container["resources"]["requests"] = {}
    since = watch.expect("RailheadJobFinding")
    stage.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "misspelt"},
                                    "spec": {"containers": [container]}}))
    try:
        meanwhile()
        watch.fires("RailheadJobFinding", since, reason="RdmaResourceUnknown")
    finally:
        stage.cluster.kubectl("delete", "pod", "misspelt")
    watch.ends("RailheadJobFinding", time.monotonic())


def _page_closed(stage, watch, pods, meanwhile):
    """Drops packets to the port of a rank's metrics page on node 1; `meanwhile` checks that of node 2."""
    pod = next(pod for pod in pods if pod["spec"]["nodeName"] == "node-1")
    with _closed(stage, 1, pod, 9402):
        since = watch.expect("RailheadPageNotScraped")
        meanwhile()
        watch.fires("RailheadPageNotScraped", since, job="observed", pod=pod["metadata"]["name"])
    watch.ends("RailheadPageNotScraped", time.monotonic())


def _agent_page_closed(stage, watch, meanwhile):
    """Drops packets to the port of an agent's metrics page on node 2; `meanwhile` must not need that page."""
    pods = stage.cluster.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=device-plugin")["items"]
    with _closed(stage, 2, next(pod for pod in pods if pod["spec"]["nodeName"] == "node-2"), 9401):
        since = watch.expect("RailheadAgentDown")
        meanwhile()
        watch.fires("RailheadAgentDown", since, node="node-2")
    watch.ends("RailheadAgentDown", time.monotonic())


@contextlib.contextmanager
def _closed(stage, node, pod, port):
    """Drops packets to a pod's port on its node inside the `with`."""
    stage.cluster.on_node(
        node, "nft add table inet closed; nft add chain inet closed forward '{ type filter hook forward priority -200; }'; "
        f"nft add rule inet closed forward ip daddr {pod['status']['podIP']} tcp dport {port} drop")
    try:
        yield
    finally:
        stage.cluster.on_node(node, "nft delete table inet closed")


@contextlib.contextmanager
def webhook_without_bundle(stage):
    """Removes the webhook's caBundle inside the `with`, without the operator's right to correct it."""
    role = stage.cluster.get("clusterrole", WEBHOOK)
    rule = next(i for i, rule in enumerate(role["rules"]) if "mutatingwebhookconfigurations" in rule["resources"])

    def may(*verbs):
        patch = [{"op": "replace", "path": f"/rules/{rule}/verbs", "value": verbs}]
        stage.cluster.kubectl("patch", "clusterrole", WEBHOOK, "--type=json", "-p", json.dumps(patch))

    may("get")
    try:
        stage.cluster.kubectl("patch", "mutatingwebhookconfiguration", WEBHOOK, "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]))
        yield
    finally:
        may("get", "patch")


def _webhook_untrusted(stage, watch):
    with webhook_without_bundle(stage):
        since = watch.expect("RailheadWebhookUntrusted")
        watch.fires("RailheadWebhookUntrusted", since, namespace=NAMESPACE)
    watch.ends("RailheadWebhookUntrusted", time.monotonic())


def _no_kubelet(stage, watch):
    """Stops a kubelet for good: its list of devices is then missing."""
    since = watch.expect("RailheadAgentNotRegistered")
    stage.cluster.on_node(1, "mv /usr/local/bin/kubelet /usr/local/bin/kubelet.away; pkill -KILL -x kubelet")
    try:
        watch.fires("RailheadAgentNotRegistered", since, node="node-1")
    finally:
        stage.cluster.on_node(1, "mv /usr/local/bin/kubelet.away /usr/local/bin/kubelet")
    watch.ends("RailheadAgentNotRegistered", time.monotonic())
    stage.wait_for_hcas(120)


def _no_leader(stage, watch):
    """Stops the operator's replicas."""
    replicas = stage.cluster.get("deployment", OPERATOR, "-n", NAMESPACE)["spec"]["replicas"]
    since = watch.expect("RailheadNoLeader")
    stage.cluster.kubectl("-n", NAMESPACE, "scale", "deployment", OPERATOR, "--replicas=0")
    try:
        watch.fires("RailheadNoLeader", since, namespace=NAMESPACE)
    finally:
        stage.cluster.kubectl("-n", NAMESPACE, "scale", "deployment", OPERATOR, f"--replicas={replicas}")
    watch.ends("RailheadNoLeader", time.monotonic())


def _flapping(stage, watch):
    """A link goes down twice more within a quarter of an hour after _rail_down(), each time for longer than a scrape
    interval; returns the time since which it is up for good. The agent withholds such a device for two minutes."""
    last = stage.cluster.rails - 1
    for _ in range(2):
        since = watch.expect("RailheadLinkFlapping", "RailheadNodeRailDown")
        stage.cluster.on_node(2, f"ip link set eth{last + 1} down")
        try:
            watch.stays_quiet(20)
        finally:
            stage.cluster.on_node(2, f"ip link set eth{last + 1} up")
        up = time.monotonic()
        watch.stays_quiet(20)
    watch.fires("RailheadLinkFlapping", since, node="node-2", rail=str(last))
    watch.is_over("RailheadNodeRailDown", 300)
    return up
