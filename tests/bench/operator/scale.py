#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the operator in a large cluster, as the chart installs it with all features: memory, time until it is
ready, and its requests after the API server was down.

usage: scale.py [NODES [PODS]]     prints Markdown; progress goes to standard error
"""

import collections
import json
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.parse

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "chart"), str(ROOT / "tests" / "bench" / "peers")]

import made  # noqa: E402
from apiserver import OPERATOR, Cluster  # noqa: E402
from helm import CHART, NAMESPACE, RELEASE  # noqa: E402
from process import cpu_seconds, memory  # noqa: E402
from replica import NAME, Replica, install, send_reviews_to  # noqa: E402
from tables import reached  # noqa: E402
from writers import Writers  # noqa: E402

from control_plane import wait_until  # noqa: E402

SPACES = 100
KINDS = ("railprofiles", "namespaces", "nodes", "pods")  # kinds that the operator watches
TOPOLOGY = "fabrictopologies"  # and with operator.topology
ALL_ON = ("--set=operator.gangs.enabled=true", "--set=operator.topology.enabled=true")
MEMORY_GOAL = 100  # MiB
BEATS = 2          # changes of each node's status
QUIET = 30         # seconds without requests after which a reconnect is over
AWAY = 15          # seconds
DEADLINE = 180     # for a reconnect
# Limits for each kind of objects after the server is back. Pauses between tries double, from half a second to at
# least 15 s, so there can be eight tries in a minute. One list suffices.
LISTS_GOAL, TRIES_GOAL = 1, 8

AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": [OPERATOR], "verbs": ["list", "watch"]},
        {"level": "None"},
    ],
}

ABOUT = """\
{nodes} nodes of {node_size:.1f} KB, {pods} pods of {pod_size:.1f} KB (without managedFields) and {spaces}
namespaces as objects in a real API server with etcd, and the operator's program as the chart starts
it, on the same machine ([tests/bench/operator](../tests/bench/operator/README.md)). MiB are of that
process. The pods are gangs of 64 that run; every node has the facts of an agent about 8 rails."""

ABOUT_PROCESS = """
## {title}

| | seconds | MiB | maximum, MiB | goal | |
|---|---|---|---|---|---|"""

ABOUT_REQUESTS = """
### When the API server was away

Killed, and started again at once or {away} s later. From then on until {quiet} s after every watch was
back, by the server's audit log: lists (with their pages) and watches of each kind, refused ones too.
Goals of each kind: {lists} list, and lists and watches together as many as pauses that double let
happen in a minute, {tries}.

| away | kind | watches back, s after readiness | lists | pages | watches | refused of these | |
|---|---|---|---|---|---|---|---|"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def fill(cluster, nodes, pods):
    """Creates these objects before the webhook exists: they are as old as the cluster."""
    writers = Writers(cluster)
    say("namespaces and nodes")
    writers.create(("/api/v1/namespaces", made.namespace(i)) for i in range(SPACES))
    writers.create(("/api/v1/nodes", made.node(i)) for i in range(nodes))
    say("pods")
    items = [made.pod(i, nodes, SPACES) for i in range(pods)]
    path = "/api/v1/namespaces/{}/pods".format
    writers.create((path(item["metadata"]["namespace"]), item) for item in items)
    say("their status")
    writers.patch(
        (
            f"{path(item['metadata']['namespace'])}/{item['metadata']['name']}/status",
            made.running(index),
        )
        for index, item in enumerate(items)
    )
    return writers


class Requests:
    """The operator's requests to the server since `mark`."""

    def __init__(self, path):
        self._path, self._begin = path, 0

    def mark(self):
        self._begin = self._path.stat().st_size

    def counts(self):
        """Returns {(kind, "lists" | "pages" | "watches" | "refused"): count}; "refused" counts requests of all
        kinds."""
        counts = collections.Counter()
        for event in self._events():
            kind = event["objectRef"]["resource"]
            query = urllib.parse.parse_qs(urllib.parse.urlparse(event["requestURI"]).query)
            counts[kind, "refused"] += event["responseStatus"]["code"] >= 300
            if event["verb"] == "watch":
                counts[kind, "watches"] += 1
            else:
                counts[kind, "pages"] += 1
                counts[kind, "lists"] += "continue" not in query
        return counts

    def all_watch(self, kinds):
        """Returns whether a watch of each of these kinds has begun and has not ended."""
        watching = {
            event["objectRef"]["resource"]
            for event in self._events()
            if event["verb"] == "watch" and event["stage"] == "ResponseStarted"
        }
        return watching.issuperset(kinds)

    def _events(self):
        """Returns the last audit event of each request: its response has begun, or is complete."""
        with open(self._path, encoding="utf-8") as log:
            log.seek(self._begin)
            events = (json.loads(line) for line in log if line.endswith("\n"))
            return {event["auditID"]: event for event in events}.values()


def reconnect(cluster, replica, requests, away, kinds):
    """Returns rows of the table."""
    say(f"the API server is away for {away} s")
    cluster.kill_apiserver()
    time.sleep(away)
    requests.mark()
    cluster.start_apiserver()
    cluster.wait_until_ready()
    begin = time.monotonic()

    while not requests.all_watch(kinds):
        if time.monotonic() > begin + DEADLINE:
            log = replica.log.read_text()
            raise AssertionError(f"no watch of every kind within {DEADLINE} s\n{log}")
        time.sleep(0.2)
    back = time.monotonic() - begin
    time.sleep(QUIET)
    counts = requests.counts()
    rows = []
    for kind in kinds:
        lists, pages, watches, refused = (
            counts[kind, what] for what in ("lists", "pages", "watches", "refused")
        )
        good = reached(lists <= LISTS_GOAL and lists + watches <= TRIES_GOAL)
        rows.append(
            f"| {away} s | {kind} | {back:.1f} | {lists} | {pages} | {watches} | {refused} | {good} |"
        )
    return rows


def row(what, seconds, replica, has_goal=False):
    now, most = memory(replica.pid)
    goal = f"{MEMORY_GOAL} | {reached(most < MEMORY_GOAL)}" if has_goal else " | "
    print(f"| {what} | {seconds:.1f} | {now:.1f} | {most:.1f} | {goal} |", flush=True)


def measure(cluster, folder, requests, nodes, pods):
    writers = fill(cluster, nodes, pods)
    install(cluster)
    writers.create(
        ("/apis/railhead.io/v1alpha1/railprofiles", made.profile(i)) for i in range(len(made.TEAMS))
    )
    sizes = [
        len(json.dumps(cluster.get(kind, name, "-n", space))) / 1000
        for kind, name, space in (("node", "node-00000", ""), ("pod", "job-0-worker-0", "space-000"))
    ]
    print(
        ABOUT.format(
            nodes=nodes, pods=pods, spaces=SPACES, node_size=sizes[0], pod_size=sizes[1]
        ),
        flush=True,
    )
    process(cluster, folder, requests, "As the chart installs it", nodes, pods, KINDS)
    # Restores the chart's objects that send_reviews_to has changed.
    cluster.kubectl("delete", "service", NAME, "-n", NAMESPACE)
    cluster.helm("upgrade", RELEASE, CHART, "--force-conflicts", *ALL_ON)
    cluster.kubectl(
        "wait", "--for=condition=Established", f"crd/{TOPOLOGY}.railhead.io", "--timeout=60s"
    )
    title = "With verdicts, gangs and the topology"
    process(cluster, folder, requests, title, nodes, pods, (*KINDS, TOPOLOGY))


def nodes_in_fabric(cluster):
    """Returns the number of nodes in the status of the FabricTopology."""
    fabric = cluster.kubectl(
        "get", TOPOLOGY, "cluster", "-o", "jsonpath={.status.counts.nodes}", check=False
    )
    return fabric.stdout.strip()


def process(cluster, folder, requests, title, nodes, pods, kinds):
    """Returns the tables of one process of the operator."""
    writers = Writers(cluster)  # private: restarting the API server has closed its connections
    print(ABOUT_PROCESS.format(title=title), flush=True)
    say(f"the operator: {title}")
    begin = time.monotonic()
    replica = Replica(cluster, folder, "operator")
    try:
        for kind, count in (("nodes", nodes), ("pods", pods)):
            synced = f'railhead_cache_objects{{resource="{kind}"}} {count}\n'
            wait_until(
                lambda synced=synced: synced in replica.ask("/metrics")[1], kind, replica.log
            )
        row("all nodes and pods known", time.monotonic() - begin, replica)
        replica.wait_until_ready()
        row("ready: the API server trusts it", time.monotonic() - begin, replica)
        if TOPOLOGY in kinds:
            wait_until(
                lambda: nodes_in_fabric(cluster) == str(nodes), "the fabric's status", replica.log
            )
            row("the fabric is known", time.monotonic() - begin, replica)
        send_reviews_to(cluster, replica, replica)
        before, begin = cpu_seconds(replica.pid), time.monotonic()
        for beat in range(BEATS):
            writers.patch(
                (f"/api/v1/nodes/node-{i:05}/status", made.heartbeat(beat + 1)) for i in range(nodes)
            )
        row(f"every node's status written {BEATS} times", time.monotonic() - begin, replica)
        cost = (cpu_seconds(replica.pid) - before) / (BEATS * nodes)
        begin = time.monotonic()
        rows = [
            line
            for away in (0, AWAY)
            for line in reconnect(cluster, replica, requests, away, kinds)
        ]
        row("the API server was away twice", time.monotonic() - begin, replica, True)
        print(f"\nA change of a node costs {cost * 1e3:.2f} ms of CPU time, all threads together.")
        print(
            ABOUT_REQUESTS.format(away=AWAY, quiet=QUIET, lists=LISTS_GOAL, tries=TRIES_GOAL)
        )
        print("\n".join(rows))
    finally:
        replica.end()


def main(nodes, pods):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-scale-"))
    policy, audit = folder / "audit.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump(AUDIT))
    cluster = Cluster(folder, f"--audit-policy-file={policy}", f"--audit-log-path={audit}")
    try:
        say("a cluster")
        cluster.start()
        measure(cluster, folder, Requests(audit), nodes, pods)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:]]
    main(*(numbers + [5000, 20000][len(numbers) :]))
