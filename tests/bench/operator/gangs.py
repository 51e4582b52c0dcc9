#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs in a large cluster: a real API server and scheduler, KWOK as the kubelets, and two replicas of the operator.
The leader is killed halfway, while nodes fail. Checks that no gang stays partly placed, no node is over-allocated and
no pod is lost; measures how long gangs take.

usage: gangs.py [NODES [GANGS [MOST]]]     prints Markdown; progress goes to standard error.
Fails if a check fails. MOST is the maximum size of a gang, in pods. kube-apiserver and kube-scheduler come from PATH,
kwok from RAILHEAD_KWOK.
"""

import os
import pathlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time


ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "chart"), str(ROOT / "tests" / "bench" / "peers")]

from apiserver import Cluster  # noqa: E402
from process import cpu_seconds, memory  # noqa: E402
from replica import Replica, install, send_reviews_to  # noqa: E402
from stream import HCAS, Stream  # noqa: E402
from tables import reached  # noqa: E402
from writers import Writers  # noqa: E402

from control_plane import wait_until  # noqa: E402

LEAF, SPINE = 16, 16  # nodes per leaf, leaves per spine
PODS = "/api/v1/namespaces/default/pods"
GOAL = 10         # seconds from complete to bound, in addition to the API server's and the scheduler's time
BUSY_GOAL = 120   # the same in a small cluster, which is no benchmark but a test on a busy machine
LARGE = 1000      # nodes of a benchmark
DEADLINE = 1800   # seconds for all gangs
BETWEEN = 2.0     # seconds between failures of nodes
ABSENCE = 8       # failures after which a node returns
LIFE = (1, 8)     # minimum and maximum seconds that a gang runs
MERGE, PATCH = "application/merge-patch+json", "application/json-patch+json"
ALLOCATABLE = {
    "cpu": "96",
    "memory": "1Ti",
    "pods": "110",
    "rdma/hca": str(HCAS),
    "nvidia.com/gpu": str(HCAS),
}
# Without a stage for nodes KWOK manages no nodes: this stage matches none. A pod with a node runs, and a deleted pod
# goes: no more of a kubelet is needed here.
STAGES = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: no-node}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector: {matchLabels: {test/none: "true"}}
  next: {}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-runs}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.podIP, operator: DoesNotExist}
  next:
    statusTemplate: |
      phase: Running
      podIP: 192.0.2.7
      conditions:
      - {type: Ready, status: "True"}
      - {type: Initialized, status: "True"}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-goes}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next:
    finalizers: {empty: true}
    delete: true
"""
ABOUT = """\
{nodes} nodes in leaves of {leaf} and spines of {spine} leaves, {gangs} gangs of 8 to {most} pods that
arrive at random while nodes fail, as objects in a real API server with kube-scheduler; KWOK plays the
kubelets. Two replicas of the operator, of which the leader is killed when half of the gangs have come.
Faults are counted in the watch of all pods: a pod that is released before its gang is all there, a
node that holds more than it has, a pod that is elsewhere than it was sent
([tests/bench/operator](../tests/bench/operator/README.md)).

| | | goal | |
|---|---|---|---|"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def node(number):
    name = f"n{number:05}"
    leaf = number // LEAF
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.railhead.io/spine": f"s{leaf // SPINE}",
                "topology.railhead.io/leaf": f"l{leaf}",
            },
        },
    }


def status(ready):
    word = "True" if ready else "False"
    return {
        "status": {
            "allocatable": ALLOCATABLE,
            "capacity": ALLOCATABLE,
            "conditions": [{"type": "Ready", "status": word}],
        }
    }


def taints(ready):
    """Returns the taints that the node controller sets."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {"spec": {"taints": None if ready else [taint]}}


def pod(gang, index, size, hcas):
    """Returns a pod as a Job controller makes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang}-{index}",
            "labels": {"railhead.io/gang": "true"},
            "annotations": {
                "railhead.io/gang-size": str(size),
                "batch.kubernetes.io/job-completion-index": str(index),
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": gang,
                    "uid": f"uid-of-{gang}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"limits": {"rdma/hca": hcas, "nvidia.com/gpu": hcas}},
                }
            ],
        },
    }


class Kubelets:
    """KWOK, for pods only: it does not change the state of nodes."""

    def __init__(self, cluster, folder):
        stages = folder / "stages.yaml"
        stages.write_text(STAGES)
        with open(folder / "kwok.log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [
                    os.environ.get("RAILHEAD_KWOK", "kwok"),
                    f"--kubeconfig={cluster.kubeconfig}",
                    f"--config={stages}",
                    "--manage-all-nodes=true",
                    "--node-lease-duration-seconds=0",
                ],
                stdout=log,
                stderr=log,
            )

    def end(self):
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Load:
    """Creates gangs, and recreates their pods when they are deleted, as a Job controller does."""

    def __init__(self, cluster, nodes):
        self.nodes = nodes
        self.writers = Writers(cluster)
        self.sizes = {}  # (pods, HCAs of a pod) of the existing gangs
        self._gone = queue.Queue()
        self.stream = Stream(cluster, self._gone.put)
        self.away = []   # failed nodes

    def fill(self):
        numbers = range(self.nodes)
        path = "/api/v1/nodes/n{:05}{}".format
        self.writers.create(("/api/v1/nodes", node(i)) for i in numbers)
        self.writers.patch((path(i, ""), taints(True)) for i in numbers)
        self.writers.patch((path(i, "/status"), status(True)) for i in numbers)

    def arrive(self, gang, size, hcas=HCAS):
        self.sizes[gang] = size, hcas
        self.stream.expect(gang, size)
        self.writers.create((PODS, pod(gang, index, size, hcas)) for index in range(size))

    def leave(self, gang):
        size, _ = self.sizes.pop(gang)
        self.stream.forget(gang)
        self.delete(f"{gang}-{index}" for index in range(size))

    def delete(self, names):
        body = {"gracePeriodSeconds": 0}
        self.writers.send("DELETE", "application/json", ((f"{PODS}/{name}", body) for name in names), (404,))

    def bring_back(self):
        """Recreates pods that were deleted while their gang exists."""
        names = []
        while not self._gone.empty():
            names.append(self._gone.get())
        again = []
        for name in names:
            gang, index = name.rsplit("-", 1)
            if gang in self.sizes:
                again.append((PODS, pod(gang, int(index), *self.sizes[gang])))
        self.writers.send("POST", "application/json", again, (409,))

    def fail_node(self, rng):
        """Fails one node and its pods; the node that failed first returns."""
        number = rng.randrange(self.nodes)
        if number in self.away:
            return 0
        path = f"/api/v1/nodes/n{number:05}"
        self.writers.patch([(f"{path}/status", status(False))])
        self.writers.patch([(path, taints(False))])
        on_it = self.stream.pods_on(f"n{number:05}")
        self.delete(on_it)
        self.away.append(number)
        if len(self.away) > ABSENCE:
            self.come_back(self.away.pop(0))
        return len(on_it)

    def come_back(self, number):
        self.writers.patch([(f"/api/v1/nodes/n{number:05}", taints(True))])
        self.writers.patch([(f"/api/v1/nodes/n{number:05}/status", status(True))])


def wait_for(ready, what):
    """Waits longer than a test would: the machine is busy."""
    end = time.monotonic() + DEADLINE / 4
    while not ready():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not after {DEADLINE // 4} s")
        time.sleep(0.05)


def without_controller(load, size):
    """Measures the API server's and the scheduler's time for the same number of pods without the operator: one patch
    each, with as many concurrent requests as the operator sends."""
    gang = "plain"
    load.sizes[gang] = size, HCAS
    load.stream.expect(gang, size)
    items = []
    for index in range(size):
        item = pod(gang, index, size, HCAS)
        del item["metadata"]["labels"]
        item["spec"]["schedulingGates"] = [{"name": "test/gate"}]
        items.append((PODS, item))
    load.writers.create(items)
    wait_for(lambda: load.stream.gangs[gang].complete, "the pods")
    begin = time.monotonic()
    load.writers.send(
        "PATCH",
        PATCH,
        (
            (
                f"{PODS}/{gang}-{index}",
                [
                    {"op": "remove", "path": "/spec/schedulingGates/0"},
                    {
                        "op": "add",
                        "path": "/spec/nodeSelector",
                        "value": {"kubernetes.io/hostname": f"n{index:05}"},
                    },
                ],
            )
            for index in range(size)
        ),
        (),
    )
    wait_for(lambda: load.stream.gangs[gang].whole, "the scheduler")
    took = load.stream.gangs[gang].whole - begin
    load.leave(gang)
    return took


def with_controller(load, size):
    load.arrive("alone", size)
    wait_for(lambda: load.stream.gangs["alone"].whole, "the gang")
    gang = load.stream.gangs["alone"]
    took = gang.whole - gang.complete
    load.leave("alone")
    return took


class Run:
    """All gangs arrive, run and end."""

    def __init__(self, cluster, load, replicas, gangs, most, rng):
        self.cluster, self.load, self.replicas, self.rng = cluster, load, replicas, rng
        sizes = [size for size in (8, 16, 32, 64, 128, 256) if size <= most] or [most]
        self.to_come = [(f"g{number}", rng.choice(sizes)) for number in range(gangs)]
        self.to_come[rng.randrange(gangs)] = ("largest", most)
        self.count = gangs
        self.waits, self.ends = {}, {}
        self.killed, self.failures, self.lost_pods = None, 0, 0
        self.done = 0

    def leader(self):
        return next((replica for replica in self.replicas if replica.leads()), None)

    def go(self):
        begin = next_arrival = next_failure = time.monotonic()
        while self.done < self.count:
            now = time.monotonic()
            if now > begin + DEADLINE:
                raise AssertionError(f"not done after {DEADLINE} s: {self.load.stream.states()}")
            if self.to_come and now >= next_arrival:
                self.arrive()
                next_arrival = time.monotonic() + self.rng.expovariate(1.0)
            if now >= next_failure:
                self.lost_pods += self.load.fail_node(self.rng)
                self.failures += 1
                next_failure = now + BETWEEN
            self.load.bring_back()
            self.end_some()
            if self.killed is None and len(self.to_come) * 2 <= self.count:
                self.kill_leader()
            time.sleep(0.1)
        return time.monotonic() - begin

    def end_some(self):
        """Ends gangs that have run for long enough, with all of their pods at the same time."""
        whole, _, _ = self.load.stream.states()
        now = time.monotonic()
        for gang in whole:
            known = self.load.stream.gangs[gang]
            self.waits.setdefault(gang, known.whole - known.complete)
            end = self.ends.setdefault(gang, now + self.rng.uniform(*LIFE))
            if now >= end:
                self.load.leave(gang)
                self.done += 1

    def arrive(self):
        gang, size = self.to_come.pop()
        self.load.arrive(gang, size, self.rng.choice((HCAS, HCAS, HCAS // 2)))

    def kill_leader(self):
        """Kills the leader, if possible while a gang is partly released. The other replica already admits pods: that
        a Service may send reviews to a dead replica for a moment is not measured here."""
        wait_until(self.leader, "a leader")
        leader = self.leader() or self.replicas[0]
        other = next(replica for replica in self.replicas if replica is not leader)
        send_reviews_to(self.cluster, other, other)
        if self.to_come:
            self.arrive()
        end = time.monotonic() + 10
        while time.monotonic() < end and not self.load.stream.states()[1]:
            time.sleep(0.002)
        self.killed = self.load.stream.states()[1]
        leader.end()
        self.replicas.remove(leader)
        say(f"the leader was killed, with {len(self.killed)} gangs half done")


def row(what, value, goal="", good=None):
    mark = "" if good is None else reached(good)
    print(f"| {what} | {value} | {goal} | {mark} |", flush=True)
    return good is not False


def measure(cluster, folder, nodes, gangs, most):
    rng = random.Random(84)
    goal = GOAL if nodes >= LARGE else BUSY_GOAL
    load = Load(cluster, nodes)
    say("nodes")
    load.fill()
    cluster.start_scheduler()
    say("what the API server and the scheduler need")
    plain = without_controller(load, most)
    say("two replicas")
    install(cluster, "--set=operator.gangs.enabled=true")
    replicas = [Replica(cluster, folder, name) for name in ("first", "second")]
    try:
        send_reviews_to(cluster, *replicas)
        wait_until(lambda: any(replica.leads() for replica in replicas), "a leader", replicas[0].log)
        say("one gang alone")
        alone = with_controller(load, most)
        run = Run(cluster, load, replicas, gangs, most, rng)
        say("all gangs")
        took = run.go()
        replica = replicas[0]
        now, peak = memory(replica.pid)
        cpu = cpu_seconds(replica.pid)
        print(ABOUT.format(nodes=nodes, leaf=LEAF, spine=SPINE, gangs=gangs, most=most))
        stream = load.stream
        waits = sorted(run.waits.values())
        good = [
            row(f"a gang of {most} pods, from complete to bound, s", f"{alone:.1f}"),
            row("the same patches and bindings without the operator, s", f"{plain:.1f}"),
            row("difference, s", f"{alone - plain:.1f}", f"< {goal}", alone - plain < goal),
            row("gangs that ran, of all", f"{run.done} of {gangs}", gangs, run.done == gangs),
            row("gangs left half done", len(stream.states()[1]), 0, not stream.states()[1]),
            row("faults in the stream", len(stream.faults), 0, not stream.faults),
            row("changes of pods in the stream", stream.changes),
            row("nodes that failed; pods that went with them and came back",
                f"{run.failures}; {run.lost_pods}"),
            row("gangs half done when the leader was killed", len(run.killed or ())),
            row("longest from a gang's first release to its last binding, s",
                f"{stream.longest_half:.1f}"),
            row("from complete to bound: median, longest, s",
                f"{waits[len(waits) // 2]:.1f}, {waits[-1]:.1f}"),
            row("all of it, s", f"{took:.0f}"),
            row("MiB of the replica that is left, now and at most", f"{now:.0f}, {peak:.0f}"),
            row("its CPU time, s", f"{cpu:.1f}"),
        ]
        for fault in stream.faults[:20]:
            say(fault)
        return all(good)
    finally:
        load.stream.ended = True
        for replica in replicas:
            replica.end()


def main(nodes, gangs, most):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-gangs-"))
    # KWOK would use streaming lists, which do not work with Debian's etcd.
    cluster = Cluster(folder, "--feature-gates=WatchList=false")
    kubelets = None
    try:
        say("a cluster")
        cluster.start()
        kubelets = Kubelets(cluster, folder)
        good = measure(cluster, folder, nodes, gangs, most)
    finally:
        if kubelets:
            kubelets.end()
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:]]
    sys.exit(main(*(numbers + [2000, 50, 256][len(numbers):])))
