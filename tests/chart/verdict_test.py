# SPDX-License-Identifier: Apache-2.0
"""The operator reports every fault of a job, and nothing else: it runs the matrix of operator/verdict/testing at a
real API server, with the rights that the chart gives it. Pods are objects without a node; the test serves their
metrics pages, at addresses of its network namespace. All cases run at once: each has its own namespace, nodes and
resource.

The classes mostly wait, and each has its own API server: apiserver.sh runs them in parallel."""

import collections
import copy
import datetime
import http.client
import http.server
import json
import ssl
import subprocess
import threading
import time
import unittest
import uuid

from apiserver import Cluster, profile
from helm import ROOT
from replica import Replica, install, wait_for_kinds

from control_plane import COMMAND, folder_for, wait_until

PRINT_CASES = ROOT / "build" / "release" / "operator" / "railhead_verdict_print_cases"
REPORTS = "/apis/railhead.io/v1alpha1"
PORT = 9402
PROMISED = 5  # seconds from a pod's start to its Event, on an idle machine
SILENCE = 60  # more seconds if its runtime may still report
PATIENCE = 240  # more seconds, on a busy machine
STARTED = 1767225600  # start time of the cases' pods
REASON = "RdmaAdmissionMissed"  # of a pod that shows that all pods before it have been diagnosed


class Api:
    """The API server, over one connection: thousands of calls of kubectl would take minutes."""

    def __init__(self, cluster):
        context = ssl.create_default_context(cafile=cluster.authority)
        self._server = http.client.HTTPSConnection(
            "127.0.0.1", cluster.port, timeout=COMMAND, context=context
        )
        self._token = cluster.token
        self._lock = threading.Lock()

    def call(self, method, path, body=None):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        with self._lock:
            try:
                answer, text = self._ask(method, path, body, headers)
            except http.client.RemoteDisconnected:  # the server ends connections that were idle for 90 s
                answer, text = self._ask(method, path, body, headers)
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status}\n{text}")
        return json.loads(text)

    def _ask(self, method, path, body, headers):
        self._server.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._server.getresponse()
        return answer, answer.read().decode()


class Pages:
    """The metrics pages of all pods, by address."""

    def __init__(self):
        self.pages = {}
        self.asked = collections.Counter()
        pages, asked = self.pages, self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                address = self.connection.getsockname()[0]
                page = pages.get(address) if self.path == "/metrics" else None
                self.send_response(503 if page is None else 200)
                self.end_headers()
                self.wfile.write((page or "").encode())
                asked[address] += 1

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256

        self._server = Server(("0.0.0.0", PORT), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


def moved(text, seconds):
    """Returns a time of the case, moved by `seconds`."""
    then = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (then + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def of_pool(case):
    return any("spec" in node for node in case["nodes"] or [])


def without_devices(case):
    """Returns whether no node of the case has devices, as before the first node agent runs."""
    return case["nodes"] and not any(
        resource.startswith("rdma/") for node in case["nodes"] for resource in node["status"]["capacity"]
    )


class Play:
    """A case in a cluster that it shares with others."""

    def __init__(self, test, number, case):
        self.case, self.api, self.pages = copy.deepcopy(case), test.api, test.pages
        self.name = case["name"]
        self.space = f"c{number:03}"
        self._own = f"{self.space}-"
        self._shift = 0.0
        self.began = 0.0
        self.seen = {}  # (pod, reason, type): seconds after the start, and the message
        self.addresses = [f"198.18.{number}.{pod + 1}" for pod in range(len(case["pods"]))]
        by_node = {}
        for index, pod in enumerate(case["pods"]):
            if pod["spec"].get("hostNetwork") and pod["spec"].get("nodeName"):
                self.addresses[index] = by_node.setdefault(
                    pod["spec"]["nodeName"], self.addresses[index]
                )

    def _renamed(self, resources):
        return {
            name.replace("rdma/", f"rdma/{self._own}"): value for name, value in resources.items()
        }

    def prepare(self):
        """Creates everything except the pods."""
        self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})
        for given in self.case["profiles"]:
            self._make_profile(given)
        for node in self.case["nodes"] or []:
            self._make_node(node)

    def _make_node(self, node):
        metadata = dict(node["metadata"], name=self._own + node["metadata"]["name"])
        made = {"metadata": metadata, "spec": node.get("spec", {})}
        self.api.call("POST", "/api/v1/nodes", made)
        status = {key: self._renamed(value) for key, value in node["status"].items()}
        path = f"/api/v1/nodes/{metadata['name']}/status"
        self.api.call("PATCH", path, {"status": status})

    def _make_profile(self, given):
        spec = {key: given[key] for key in ("fabric", "requireRDMA")}
        spec["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self.space}}
        path, name = f"{REPORTS}/railprofiles", self._own + given["name"]
        self.api.call("POST", path, profile(name, spec))
        for generation in range(2, given["generation"] + 1):
            change = {"spec": {"priority": generation}}
            changed = self.api.call("PATCH", f"{path}/{name}", change)
            assert changed["metadata"]["generation"] == generation

    def start(self):
        self._shift = time.time() - STARTED
        # In reverse order: if several pods share an address, the first one gets it.
        for address, page in reversed(list(zip(self.addresses, self.case["pages"]))):
            self.pages.pages[address] = page
        owner = str(uuid.uuid4())
        # If no pod of the case has a page, the pods do not announce one, and are reported at once.
        has_pages = any(page is not None for page in self.case["pages"])
        made = [
            self._make_pod(pod, owner, address, has_pages)
            for pod, address in zip(self.case["pods"], self.addresses)
        ]
        self.began = time.monotonic()
        for path, status in made:
            self.api.call("PATCH", f"{path}/status", {"status": status})

    def _make_pod(self, pod, owner, address, has_pages):
        """Creates a pod at its path, with the status of a pod that a node has started."""
        metadata = {
            key: value
            for key, value in pod["metadata"].items()
            if key not in ("uid", "deletionTimestamp", "creationTimestamp")
        }
        metadata["namespace"] = self.space
        kind = self.case["kind"]
        metadata["ownerReferences"] = [
            {
                "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
                "kind": kind,
                "name": "train",
                "uid": owner,
                "controller": True,
            }
        ]
        annotations = metadata.setdefault("annotations", {})
        if "railhead.io/profile" in annotations:
            annotations["railhead.io/profile"] = self._own + annotations["railhead.io/profile"]
        if not has_pages:
            annotations["prometheus.io/scrape"] = "false"
        spec = pod["spec"]
        if "nodeName" in spec:
            spec["nodeName"] = self._own + spec["nodeName"]
        for container in spec["containers"]:
            container["image"] = "x"
            for section, values in container.get("resources", {}).items():
                container["resources"][section] = self._renamed(values)
        for claim in spec.get("resourceClaims", []):
            claim["resourceClaimName"] = "x"
        pods = f"/api/v1/namespaces/{self.space}/pods"
        self.api.call("POST", pods, {"metadata": metadata, "spec": spec})
        if "deletionTimestamp" in pod["metadata"]:
            self.api.call("DELETE", f"{pods}/{metadata['name']}", {"gracePeriodSeconds": 300})
        status = pod["status"]
        for condition in status.get("conditions", []):
            condition["message"] = condition["message"].replace("rdma/", f"rdma/{self._own}")
        if "podIP" in status:
            status["podIP"] = address
            status["podIPs"] = [{"ip": address}]
        for container in status.get("containerStatuses", []):
            container.update(image="x", imageID="x", ready=True, restartCount=0)
            running = container["state"].get("running")
            if running:
                running["startedAt"] = moved(running["startedAt"], self._shift)
        return f"{pods}/{metadata['name']}", status

    def forget_pages(self):
        for address in self.addresses:
            self.pages.pages[address] = None

    def look(self, event):
        """Records an Event of this case."""
        name = event["involvedObject"]["name"]
        if event["reason"] == "RailheadNotDone":  # reported for the pod's controller
            name = event["message"].removeprefix("pod ").partition(":")[0]
        told = (name, event["reason"], event["type"])
        if told not in self.seen and not told[0].startswith("mark-"):
            message = event["message"].replace(self._own, "")
            self.seen[told] = (time.monotonic() - self.began, message)

    def wanted(self, kind):
        """Returns the expected Events: (pod, reason): parts of the message."""
        which = "expected" if kind == "Warning" else "first"
        wanted = {}
        for item in self.case[which]:
            # A case that lasts longer than any test shows its first reports.
            if kind == "Normal" or not self.case["takesTime"]:
                wanted[item["pod"], item["reason"], kind] = item["says"]
        return wanted

    def is_late(self):
        """Returns whether the case's report may come only after some time."""
        return self.case["within"] > PROMISED

    def is_told(self):
        return all(told in self.seen for kind in ("Warning", "Normal") for told in self.wanted(kind))

    def asked(self):
        """Returns whether every running pod's page, if it has one, has been scraped: twice, since the operator may have
        given up a scrape to which a busy machine responded late."""
        return all(
            self.pages.asked[address] >= 2
            for pod, address, page in zip(self.case["pods"], self.addresses, self.case["pages"])
            if page is not None
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] == "Running"
            and "running" in pod["status"]["containerStatuses"][0]["state"]
        )


class VerdictTest(unittest.TestCase):
    """The operator at an API server, and cases for it."""

    flags = ()  # additional flags of the API server

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "verdict")
        cls.cluster = Cluster(cls.folder, *cls.flags)
        cls.cluster.start_for(cls)
        install(cls.cluster)
        wait_for_kinds(cls.cluster, "railreports.railhead.io")
        # The pods of the cases are as they are after admission.
        cls.cluster.kubectl("delete", "mutatingwebhookconfiguration", "--all")
        cls.api = Api(cls.cluster)
        cls.pages = Pages()
        cls.addClassCleanup(cls.pages.stop)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        wait_until(cls.replica.leads, "a leader", cls.replica.log)
        lines = subprocess.run(
            [PRINT_CASES], check=True, capture_output=True, text=True, timeout=COMMAND
        ).stdout.splitlines()
        cls.cases = [json.loads(line) for line in lines]
        cls.marks = 0
        cls.numbers = 0

    def plays(self, cases):
        made = []
        for case in cases:
            type(self).numbers += 1
            made.append(Play(self, self.numbers, case))
        return made

    def watch(self, plays, until, seconds):
        """Reads Events until they suffice, or the time is over."""
        by_space = {play.space: play for play in plays}
        deadline = time.monotonic() + seconds
        while True:
            for event in self.api.call("GET", "/api/v1/events")["items"]:
                play = by_space.get(event["metadata"]["namespace"])
                if play is not None:
                    play.look(event)
            if until() or time.monotonic() > deadline:
                return
            time.sleep(0.1)

    def let_all_be_judged(self, plays):
        """Waits until a pod without any admission has been reported in each namespace."""
        type(self).marks += 1
        name = f"mark-{self.marks}"
        item = {
            "metadata": {"name": name},
            "spec": {
                "containers": [
                    {"name": "x", "image": "x", "resources": {"limits": {"rdma/mark": "1"}}}
                ]
            },
        }
        for play in plays:
            self.api.call("POST", f"/api/v1/namespaces/{play.space}/pods", item)

        def told():
            items = self.api.call("GET", "/api/v1/events")["items"]
            marked = {
                event["metadata"]["namespace"]
                for event in items
                if event["involvedObject"]["name"] == name and event["reason"] == REASON
            }
            return marked.issuperset(play.space for play in plays)

        wait_until(told, f"an Event of each {name}", self.replica.log)

    def start(self, plays):
        for play in plays:
            play.prepare()
        for play in plays:
            play.start()

    def check(self, plays):
        """Checks that exactly the expected Events exist."""
        slowest = (0, "")
        for play in plays:
            with self.subTest(play.name):
                wanted = {**play.wanted("Warning"), **play.wanted("Normal")}
                self.assertEqual(set(play.seen), set(wanted))
                for told, says in wanted.items():
                    took, message = play.seen[told]
                    for part in says:
                        self.assertIn(part, message)
                    if told[2] == "Normal" or not play.is_late():
                        slowest = max(slowest, (took, play.name))
        return slowest

    def matrix(self):
        """Returns all cases that can run side by side on nodes with devices: faults, healthy jobs, and healthy jobs
        whose runtimes will end: faults that their reports have refuted stay refuted."""
        playable = [
            case
            for case in self.cases
            if case["nodes"]
            and not without_devices(case)
            and not of_pool(case)
            and not case["takesTime"]
        ]
        right = [case for case in playable if not case["expected"]]
        plays = tuple(
            self.plays(cases)
            for cases in (
                (case for case in playable if case["expected"]),
                right,
                (case for case in right if any(case["pages"])),
            )
        )
        for some in plays:
            self.assertGreaterEqual(len(some), 20)
        return plays

    def start_matrix(self, plays):
        """Runs until every pod has been scraped, and everything that can be reported at once has been."""
        for play in plays:
            play.prepare()
        late = [play for play in plays if play.is_late()]
        for play in late:
            play.start()
        # A few at a time, so that the time this machine needs to create them is not measured.
        others = [play for play in plays if not play.is_late()]
        for begin in range(0, len(others), 4):
            some = others[begin : begin + 4]
            for play in some:
                play.start()
            self.watch(
                plays, lambda some=some: all(play.is_told() for play in some), PROMISED + PATIENCE
            )
        wait_until(lambda: all(play.asked() for play in plays), "all questions", self.replica.log)


class Matrix(VerdictTest):
    def test_each_of_what_can_be_wrong_is_told_and_nothing_of_what_is_right(self):
        # Whether nodes come, are known and have devices are properties of the whole cluster.
        nothing_known = [case for case in self.cases if not case["nodes"]]
        unknown = self.plays(nothing_known)
        self.start(unknown)
        self.watch(unknown, lambda: False, PROMISED)
        self.let_all_be_judged(unknown)
        self.watch(unknown, lambda: False, 0)
        self.check(unknown)
        bare = self.plays(c for c in self.cases if without_devices(c) and not of_pool(c))
        self.start(bare)
        until = max(play.case["within"] for play in bare) + PATIENCE
        self.watch(bare, lambda: all(play.is_told() for play in bare), until)
        self.check(bare)

        wrong, right, ending = self.matrix()
        plays = wrong + right + ending
        self.start_matrix(plays)
        for play in ending:
            play.forget_pages()
        ended = time.monotonic()
        self.watch(plays, lambda: all(play.is_told() for play in plays), SILENCE + 25 + PATIENCE)
        self.check_reports(wrong, right, ending)
        # Scrapes of a pod are two seconds apart in its first minute, then up to fifteen.
        self.watch(plays, lambda: False, max(0, ended + SILENCE + 20 - time.monotonic()))
        self.let_all_be_judged(plays)
        self.watch(plays, lambda: False, 0)
        slowest = self.check(plays)
        print(
            f"{len(bare) + len(wrong)} wrong jobs told; the slowest of those that need no time, {slowest[1]}: "
            f"{slowest[0]:.1f} s; {len(right)} right jobs not warned of, nor {len(ending)} of them "
            "when their runtimes ended"
        )

    def check_reports(self, wrong, right, ending):
        """Checks the reports of the jobs; the runtimes of those that are `ending` have ended."""
        def reports():
            items = self.api.call("GET", f"{REPORTS}/railreports")["items"]
            return {
                item["metadata"]["namespace"]: item
                for item in items
                if item["metadata"]["name"].endswith("-train")
            }

        def of_all():
            found = reports()
            return all(
                found.get(play.space, {}).get("status", {}).get("severity") == "Warning"
                for play in wrong
            )

        wait_until(of_all, "a RailReport of each wrong job", self.replica.log)
        found = reports()
        for play in wrong:
            with self.subTest(f"RailReport of {play.name}"):
                report = found[play.space]
                owner = report["metadata"]["ownerReferences"]
                self.assertEqual([item["name"] for item in owner], ["train"])
                named = {item["reason"] for item in report["status"]["reasons"]}
                self.assertEqual(named, {item["reason"] for item in play.case["expected"]})
                for reason in report["status"]["reasons"]:
                    self.assertTrue(reason["fix"])
                    self.assertIn(reason["reason"], report["status"]["summary"])
        for play in right:
            if play.space in found:
                self.assertNotEqual(found[play.space]["status"]["severity"], "Warning", play.name)
        table = self.cluster.kubectl("get", "railreports", "--all-namespaces").stdout
        self.assertRegex(table.splitlines()[0], r"NAMESPACE +NAME +SEVERITY +PODS +SUMMARY +AGE")
        # Reports without changes are written once. Those of runtimes that have ended may change meanwhile.
        ended = {play.space for play in ending}
        before = {space: item["metadata"]["resourceVersion"] for space, item in found.items()}
        time.sleep(12)
        after = {space: item["metadata"]["resourceVersion"] for space, item in reports().items()}
        changed = [space for space in before if space not in ended and after.get(space) != before[space]]
        self.assertEqual(changed, [])


class AnotherLeader(VerdictTest):
    def test_it_tells_nothing_twice_nor_what_it_did_not_hear_being_refuted(self):
        wrong, right, ending = self.matrix()
        plays = wrong + right + ending
        self.start_matrix(plays)
        for play in ending:
            play.forget_pages()
        self.watch(plays, lambda: all(play.is_told() for play in plays), SILENCE + 25 + PATIENCE)
        self.let_all_be_judged(plays)
        self.watch(plays, lambda: False, 0)
        self.check(plays)
        second = Replica(self.cluster, self.folder, "second")
        self.addClassCleanup(second.end)
        before = {play.space: set(play.seen) for play in plays}
        wait_until(lambda: "railhead_leader 0" in second.ask("/metrics")[1], "another", second.log)
        self.replica.end()
        type(self).replica = second
        wait_until(second.leads, "another leader", second.log)
        led = time.monotonic()
        wait_until(
            lambda: "railhead_verdict_pods{" in second.ask("/metrics")[1], "verdicts", second.log
        )
        self.watch(plays, lambda: False, max(0, led + SILENCE + 20 - time.monotonic()))
        self.let_all_be_judged(ending)
        self.watch(plays, lambda: False, 0)
        for play in plays:
            with self.subTest(play.name):
                self.assertEqual(set(play.seen), before[play.space])
        for item in self.api.call("GET", "/api/v1/events")["items"]:
            self.assertEqual(item["count"], 1, item)


class NodesMayCome(VerdictTest):
    def test_it_is_told_and_no_warning(self):
        pool = self.plays(c for c in self.cases if c["nodes"] and of_pool(c))
        self.assertTrue(pool)
        self.start(pool)
        self.watch(pool, lambda: all(play.is_told() for play in pool), PROMISED + PATIENCE)
        self.watch(pool, lambda: False, 35)
        self.check(pool)


class OwnersOfReports(VerdictTest):
    """A cluster in which changing an object's owners requires the right to delete it, as on OpenShift."""

    flags = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)

    def make_pod(self, name):
        """Creates a pod of a gang that has no object, and without admission, which is reported for the pod."""
        pod = {
            "metadata": {"name": name, "labels": {"scheduling.x-k8s.io/pod-group": "pair"}},
            "spec": {
                "containers": [
                    {"name": "x", "image": "x", "resources": {"limits": {"rdma/mark": "1"}}}
                ]
            },
        }
        self.api.call("POST", "/api/v1/namespaces/owned/pods", pod)

    def report(self):
        items = self.api.call("GET", f"{REPORTS}/namespaces/owned/railreports")["items"]
        return items[0] if items else {"status": {"reasons": [{"examples": []}]}}

    def wait_for_examples(self, *pods):
        def told():
            reasons = self.report().get("status", {}).get("reasons", [])
            return any(set(reason["examples"]) == set(pods) for reason in reasons)

        wait_until(told, f"a report about {pods}", self.replica.log)

    def test_a_report_goes_on_when_pods_of_its_gang_are_other_ones(self):
        self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "owned"}})
        self.make_pod("a")
        self.make_pod("b")
        self.wait_for_examples("a", "b")
        owners = self.report()["metadata"]["ownerReferences"]
        self.api.call("DELETE", "/api/v1/namespaces/owned/pods/a", {"gracePeriodSeconds": 0})
        self.make_pod("c")
        self.wait_for_examples("b", "c")
        self.assertEqual(self.report()["metadata"]["ownerReferences"], owners)
        self.assertNotIn("forbidden", self.replica.log.read_text().lower())


if __name__ == "__main__":
    unittest.main()
