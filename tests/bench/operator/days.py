#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Bad days of a cluster: gangs from the real controllers of Jobs, JobSets, LeaderWorkerSets, StatefulSets and PyTorchJobs
run on a real API server, scheduler and controller manager, with KWOK as the kubelets and two replicas of the operator.
Meanwhile nodes are lost and drained, pods crash, a foreign webhook fails, and leaders and controllers are killed.

usage: days.py [DAYS [NODES [GANGS [SEED]]]]     default: 1000 200 40 1; prints Markdown, and progress to standard error

Fails if an invariant of ledger.py does not hold, or if a workload fails although none of its pods crashed.
kube-apiserver, kube-scheduler and kube-controller-manager come from PATH, kwok from RAILHEAD_KWOK, the controllers from
RAILHEAD_CONTROLLERS.
"""

import collections
import pathlib
import random
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "chart"), str(ROOT / "tests" / "bench" / "peers")]

from apiserver import Cluster  # noqa: E402
from gangs import ALLOCATABLE, Kubelets, node  # noqa: E402
from ledger import MOST_HALF, Ledger  # noqa: E402
from owned import COLLECTIONS, KINDS, Workload, object_of  # noqa: E402
from replica import Replica, install, send_reviews_to  # noqa: E402
from tables import reached  # noqa: E402
from writers import Writers  # noqa: E402

from control_plane import wait_until  # noqa: E402
from job_controllers import JobController  # noqa: E402

TICK = 1.0           # seconds between looks
TICKS = (1, 4)       # per day
LIFE = (5, 40)       # seconds for which a whole gang runs
ABSENCE = (3, 12)    # days that a node is away
SETTLED = 10         # seconds that a restarted component may take to work again
DEADLINE = 180       # seconds until all gangs are done after the last fault
QUIET_SHARE = 10     # before the bad days, a tenth of their number passes without faults
LOST = {"key": "test/lost", "effect": "NoExecute"}
PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
BROKEN = {"test/webhook": "broken"}  # label of the pods that the foreign webhook selects
CONTROLLERS = ("job-controller", "statefulset-controller", "garbage-collector-controller", "pod-garbage-collector-controller",
               "taint-eviction-controller", "disruption-controller")


def say(text):
    print(text, file=sys.stderr, flush=True)


class Site:
    """The cluster with its operator and controllers, and the current faults."""

    def __init__(self, folder, nodes):
        self.folder = folder
        # KWOK would list by watching, which cannot be done with Debian's etcd.
        self.cluster = Cluster(folder, "--feature-gates=WatchList=false")
        self.cluster.start()
        self.kubelets = Kubelets(self.cluster, folder)
        self.writers = Writers(self.cluster)
        self.nodes = {f"n{number:05}": True for number in range(nodes)}
        self.writers.create(("/api/v1/nodes", node(number)) for number in range(nodes))
        ready = {"allocatable": ALLOCATABLE, "capacity": ALLOCATABLE, "conditions": [{"type": "Ready", "status": "True"}]}
        for name in self.nodes:
            self.mark(name, None)
        self.writers.patch((f"/api/v1/nodes/{name}/status", {"status": ready}) for name in self.nodes)
        self.cluster.start_controllers(*CONTROLLERS)
        self.cluster.start_scheduler()
        install(self.cluster, "--set=operator.gangs.enabled=true",
                f"--set=operator.gangs.kinds={{{','.join(KINDS[1:3] + KINDS[4:])}}}")
        self.replicas, self._made = [], 0
        for _ in range(2):
            self._start_replica()
        self._share_reviews()
        self.controllers = [JobController(self.cluster, folder, name) for name in ("jobset", "lws", "training")]
        for controller in self.controllers:
            controller.wait_until_ready()
        wait_until(self.leader, "a leader", self.replicas[0].log)
        self.excused_until = 0.0
        self.refuses = False  # the foreign webhook

    def end(self):
        for one in (*self.controllers, *self.replicas, self.kubelets):
            one.end()
        self.cluster.stop()

    def leader(self):
        return next((replica for replica in self.replicas if replica.leads()), None)

    def excuse(self):
        self.excused_until = time.monotonic() + SETTLED

    def _start_replica(self):
        self._made += 1
        self.replicas.append(Replica(self.cluster, self.folder, f"replica-{self._made}"))
        self.replicas[-1].wait_until_ready()

    def _share_reviews(self):
        send_reviews_to(self.cluster, self.replicas[0], self.replicas[-1])

    def mark(self, name, taint, **spec):
        self.writers.patch([(f"/api/v1/nodes/{name}", {"spec": {"taints": taint and [taint], **spec}})])

    # Faults. Those of nodes return the node's name.

    def lose_node(self, rng, _):
        name = self._some_node(rng)
        self.mark(name, LOST)
        return name

    def drain_node(self, rng, pods):
        name = self._some_node(rng)
        self.mark(name, None, unschedulable=True)
        for pod in pods:
            if pod["spec"].get("nodeName") == name:
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}}
                self.writers.send("POST", "application/json",
                                  [(f"{PODS}/{pod['metadata']['name']}/eviction", eviction)], (404, 429))
        return name

    def _some_node(self, rng):
        name = rng.choice([name for name, takes in self.nodes.items() if takes])
        self.nodes[name] = False
        return name

    def bring_back(self, name):
        self.mark(name, None, unschedulable=None)
        self.nodes[name] = True

    def kill_leader(self, *_):
        leader = self.leader()
        if leader is None:
            return
        self.replicas.remove(leader)
        send_reviews_to(self.cluster, self.replicas[0], self.replicas[0])
        leader.end()
        self._start_replica()
        self._share_reviews()
        self.excuse()

    def restart_controller(self, rng, _):
        one = rng.choice(self.controllers)
        one.end()
        one.start()

    def restart_scheduler(self, *_):
        self.cluster.stop_scheduler()
        self.cluster.start_scheduler()
        self.excuse()

    def restart_apiserver(self, *_):
        self.cluster.kill_apiserver()
        self.cluster.start_apiserver()
        self.cluster.wait_until_ready()
        self.excuse()

    def toggle_webhook(self, *_):
        """Creates or deletes a fail-closed webhook without a server, which blocks changes of the labelled pods."""
        name = "foreign"
        if self.refuses:
            self.cluster.kubectl("delete", "validatingwebhookconfiguration", name)
        else:
            hook = {
                "name": "pods.foreign.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Fail", "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
                "objectSelector": {"matchLabels": BROKEN},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}],
            }
            self.cluster.kubectl("create", objects=[{
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": name}, "webhooks": [hook]}])
        self.refuses = not self.refuses


FAULTS = {  # with relative frequencies
    "a node is lost": (Site.lose_node, 30),
    "a node is drained": (Site.drain_node, 15),
    "a pod crashes": (None, 20),
    "a team's webhook breaks or works again": (Site.toggle_webhook, 8),
    "a controller restarts": (Site.restart_controller, 8),
    "the leader is killed": (Site.kill_leader, 6),
    "the scheduler restarts": (Site.restart_scheduler, 5),
    "the API server restarts": (Site.restart_apiserver, 3),
    "nothing": (lambda *_: None, 5),
}


class Days:
    def __init__(self, site, gangs, rng):
        self._site, self._rng, self._gangs = site, rng, gangs
        self.ledger = Ledger()
        self.workloads, self._ends, self._away, self._made = {}, {}, [], 0
        self.happened = collections.Counter()
        self.outcomes = collections.Counter()
        self.waits = collections.defaultdict(list)  # seconds until whole, by phase
        self.phase = "quiet"
        self._pods = []

    def live(self, days, faults):
        self.phase = "bad" if faults else "quiet"
        for day in range(days):
            if faults:
                self._fault(day)
            for _ in range(self._rng.randint(*TICKS)):
                self._tick()
            if (day + 1) % 50 == 0:
                say(f"{day + 1} {self.phase} days: {dict(self.outcomes)}, {len(self.ledger.faults)} faults "
                    f"{self.ledger.faults[-3:]}")

    def settle(self):
        """Ends all faults and waits until all gangs are done."""
        if self._site.refuses:
            self._site.toggle_webhook()
        for name, _ in self._away:
            self._site.bring_back(name)
        self._away.clear()
        self._gangs = 0
        end = time.monotonic() + DEADLINE
        while self.workloads and time.monotonic() < end:
            self._tick()
        for name in self.workloads:
            self.ledger.faults.append(f"{name} ({self.workloads[name].kind}) is still there in the end: "
                                      f"{self.ledger.gangs[name].state}")

    def _fault(self, day):
        names = list(FAULTS)
        name = self._rng.choices(names, [FAULTS[one][1] for one in names])[0]
        self.happened[name] += 1
        if name == "a pod crashes":
            self._crash()
        else:
            lost = FAULTS[name][0](self._site, self._rng, self._pods)
            if lost:
                self._away.append((lost, day + self._rng.randint(*ABSENCE)))
        for gone, until in [one for one in self._away if one[1] <= day]:
            self._site.bring_back(gone)
            self._away.remove((gone, until))

    def _crash(self):
        """Fails a running pod of a kind whose kubelet does not restart containers."""
        running = [(workload, pod) for workload in self.workloads.values() if workload.kind in ("Job", "JobSet")
                   for pod in self._pods if workload.owns(pod) and pod.get("status", {}).get("phase") == "Running"]
        if running:
            workload, pod = self._rng.choice(running)
            workload.crashes += 1
            self._tell([pod], "Failed", 1)

    def _tell(self, pods, phase, code):
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        status = {"phase": phase, "containerStatuses": [
            {"name": "", "image": "none", "imageID": "none", "ready": False, "restartCount": 0, "state": state}]}
        items = []
        for pod in pods:
            mine = {**status, "containerStatuses": [
                {**status["containerStatuses"][0], "name": pod["spec"]["containers"][0]["name"]}]}
            items.append((f"{PODS}/{pod['metadata']['name']}/status", {"status": mine}))
        self._site.writers.send("PATCH", STRATEGIC, items, (404, 409, 500))

    def _tick(self):
        time.sleep(TICK)
        self._pods = self._site.writers.read(PODS)["items"]
        by_name = collections.defaultdict(list)
        for pod in self._pods:
            by_name[pod["metadata"]["name"].split("-")[0]].append(pod)
        now = time.monotonic()

        def excused(name):
            return now < self._site.excused_until or (self._site.refuses and self._is_broken(name))

        self.ledger.look(by_name, self._site.nodes, now, excused)
        self._end_some(by_name, now)
        while len(self.workloads) < self._gangs:
            self._arrive(now)

    @staticmethod
    def _is_broken(name):
        """Returns whether the workload's pods have the label that the foreign webhook selects: every fifth."""
        return int(name[1:]) % 5 == 0

    def _arrive(self, now):
        self._made += 1
        pods = self._rng.choice((2, 2, 3, 4, 4, 6, 8, 12))
        workload = Workload(f"w{self._made}", self._rng.choice(KINDS), pods)
        made = object_of(workload)
        if self._is_broken(workload.name):
            mark_pods(made, BROKEN)
        self._site.writers.create([(COLLECTIONS[workload.kind], made)])
        self.workloads[workload.name] = workload
        self.ledger.come(workload.name, pods, now)

    def _end_some(self, by_name, now):
        statuses = {}
        for kind in ("Job", "JobSet", "PyTorchJob"):
            for item in self._site.writers.read(COLLECTIONS[kind])["items"]:
                statuses[kind, item["metadata"]["name"]] = item.get("status", {})
        for name, workload in list(self.workloads.items()):
            status = statuses.get((workload.kind, name), {})
            done = any(one["type"] in ("Complete", "Completed", "Succeeded") and one["status"] == "True"
                       for one in status.get("conditions", []))
            if workload.failed(status) and not workload.crashes:
                self.ledger.faults.append(f"{name} ({workload.kind}) failed, and no pod of it had crashed: {status}")
            gang = self.ledger.gangs[name]
            if gang.state == "whole" and name not in self._ends:
                self._ends[name] = now + self._rng.uniform(*LIFE)
            over = gang.whole and now > self._ends.get(name, now + 1) and gang.state == "whole"
            if over and workload.ends:
                self._tell([pod for pod in by_name[name] if pod.get("status", {}).get("phase") == "Running"], "Succeeded", 0)
            if done or workload.failed(status) or (over and not workload.ends):
                self._leave(workload, "failed" if workload.failed(status) else "done")

    def _leave(self, workload, outcome):
        self._site.writers.delete(f"{COLLECTIONS[workload.kind]}/{workload.name}")
        gang = self.ledger.go(workload.name)
        if gang.whole:
            self.waits[self.phase].append(gang.whole - gang.came)
        del self.workloads[workload.name]
        self._ends.pop(workload.name, None)
        self.outcomes[outcome] += 1


def mark_pods(made, labels):
    """Adds labels to every pod template in the object."""
    if isinstance(made, list):
        for one in made:
            mark_pods(one, labels)
    elif isinstance(made, dict):
        if "containers" in made.get("spec", {}):
            made.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
        for one in made.values():
            mark_pods(one, labels)


def row(what, value, goal="", good=None):
    print(f"| {what} | {value} | {goal} | {'' if good is None else reached(good)} |", flush=True)
    return good is not False


def middle_and_longest(waits):
    waits = sorted(waits) or [0.0]
    return f"{waits[len(waits) // 2]:.1f}, {waits[-1]:.1f}"


def main(days, nodes, gangs, seed):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-days-"))
    site = None
    try:
        site = Site(folder, nodes)
        life = Days(site, gangs, random.Random(seed))
        life.live(max(1, days // QUIET_SHARE), faults=False)
        life.live(days, faults=True)
        life.settle()
        faults = life.ledger.faults
        print(f"{nodes} nodes, {gangs} gangs at a time of 2 to 12 pods with a node each, of {len(KINDS)} kinds, seed {seed}.\n")
        print("| | | goal | |\n|---|---|---|---|")
        for name, count in sorted(life.happened.items()):
            row(f"days on which {name}", count)
        good = [
            row("workloads that were done; failed by a crash of a pod", f"{life.outcomes['done']}; {life.outcomes['failed']}"),
            row(f"broken rules: half done for {MOST_HALF} s, a node held twice, failed without a crash, never whole",
                len(faults), 0, not faults),
            row("from object to whole without faults: median, longest, s", middle_and_longest(life.waits["quiet"])),
            row("from object to whole on bad days: median, longest, s", middle_and_longest(life.waits["bad"])),
        ]
        for fault in faults[:20]:
            say(fault)
        if faults:
            shutil.copytree(folder, ROOT / "out" / "days", dirs_exist_ok=True)
        return 0 if all(good) else 1
    finally:
        if site:
            site.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:]]
    sys.exit(main(*(numbers + [1000, 200, 40, 1][len(numbers):])))
