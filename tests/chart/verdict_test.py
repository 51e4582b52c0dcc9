# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a job is told, and nothing else: the matrix of operator/verdict/testing,
played at a real API server to the operator's program with the rights that the chart gives it. Pods
are objects without a node; their metrics pages are served here. No pod can have an address of the
loopback device, so all have the one of the test's network namespace, and each has a port."""

import collections
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

from apiserver_test import Cluster, profile
from helm import ROOT
from replica import Replica, install

from control_plane import folder_for, free_port, wait_until

PRINT_CASES = ROOT / "build" / "release" / "operator" / "railhead_verdict_print_cases"
SPACE = "team"
PODS = 4
ADDRESS = "192.0.2.1"  # apiserver.sh makes it
PROMISED = 5  # seconds from a pod's start until its Event
SILENCE = 60  # more where its runtime may still report
GROWN = 2  # seconds without a new pod, after which a job's pods are compared
STARTED = 1767225600  # when the pods of the scenes started


class Api:
    """The API server, over one connection: thousands of calls of kubectl would take minutes."""

    def __init__(self, cluster):
        context = ssl.create_default_context(cafile=cluster.authority)
        self._server = http.client.HTTPSConnection(
            "127.0.0.1", cluster.port, timeout=30, context=context
        )
        self._token = cluster.token

    def call(self, method, path, body=None):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._server.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._server.getresponse()
        text = answer.read().decode()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status}\n{text}")
        return json.loads(text)


class Pages:
    """The metrics pages of four pods, each at a port of its own."""

    def __init__(self):
        self.address = ADDRESS
        self.pages = {}  # by port
        self.asked = collections.Counter()
        pages, asked = self.pages, self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                port = self.server.server_address[1]
                page = pages.get(port) if self.path == "/metrics" else None
                self.send_response(503 if page is None else 200)
                self.end_headers()
                self.wfile.write((page or "").encode())
                asked[port] += 1

            def log_message(self, *_):
                pass

        self._servers = [
            http.server.ThreadingHTTPServer((self.address, 0), Handler) for _ in range(PODS)
        ]
        self.ports = [server.server_address[1] for server in self._servers]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()


def moved(text, seconds):
    """A time of the scene, so much later."""
    then = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (then + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Verdict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "verdict")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(cls.cluster, "--set=operator.verdicts.enabled=true")
        cls.cluster.kubectl("create", "namespace", SPACE)
        # The scenes' pods are as they are after admission.
        cls.cluster.kubectl("delete", "mutatingwebhookconfiguration", "--all")
        cls.api = Api(cls.cluster)
        cls.pages = Pages()
        cls.addClassCleanup(cls.pages.stop)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        wait_until(cls.replica.leads, "a leader", cls.replica.log)
        lines = subprocess.run(
            [PRINT_CASES], check=True, capture_output=True, text=True, timeout=60
        ).stdout.splitlines()
        cases = [json.loads(line) for line in lines]
        # Here every pod that runs is asked, and none has been for long.
        cls.cases = [
            case for case in cases if not case["takesTime"] and case["name"] != "NotAskedYet"
        ]
        cls.silent = next(case for case in cases if case["name"] == "OneRankReportsNothing")

    def make_node(self, node):
        name = node["metadata"]["name"]
        self.api.call("POST", "/api/v1/nodes", {"metadata": node["metadata"]})
        self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": node["status"]})

    def make_profile(self, given):
        spec = {key: given[key] for key in ("fabric", "requireRDMA")}
        spec["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}
        path = "/apis/railhead.io/v1alpha1/railprofiles"
        self.api.call("POST", path, profile(given["name"], spec))
        for generation in range(2, given["generation"] + 1):
            changed = self.api.call(
                "PATCH", f"{path}/{given['name']}", {"spec": {"priority": generation}}
            )
            self.assertEqual(changed["metadata"]["generation"], generation)

    def make_pod(self, pod, owner, port, has_page, shift):
        """Its uid. It gets its status at once, as if it had been started by a node."""
        metadata = dict(pod["metadata"], namespace=SPACE)
        metadata.pop("uid")
        going = metadata.pop("deletionTimestamp", None)
        metadata["ownerReferences"] = [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": owner,
                "controller": True,
            }
        ]
        annotations = metadata.setdefault("annotations", {})
        if annotations.get("prometheus.io/port") == "9402":
            annotations["prometheus.io/port"] = str(port)
        if not has_page:
            annotations["prometheus.io/scrape"] = "false"
        spec = json.loads(json.dumps(pod["spec"]))
        for container in spec["containers"]:
            container["image"] = "x"
        for claim in spec.get("resourceClaims", []):
            claim["resourceClaimName"] = "x"
        pods = f"/api/v1/namespaces/{SPACE}/pods"
        made = self.api.call("POST", pods, {"metadata": metadata, "spec": spec})
        name = metadata["name"]
        if going:
            self.api.call("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 300})
        status = json.loads(json.dumps(pod["status"]))
        if "podIP" in status:
            status["podIP"] = self.pages.address
            status["podIPs"] = [{"ip": self.pages.address}]
        for container in status.get("containerStatuses", []):
            container.update(image="x", imageID="x", ready=True, restartCount=0)
            running = container["state"].get("running")
            if running:
                running["startedAt"] = moved(running["startedAt"], shift)
        self.api.call("PATCH", f"{pods}/{name}/status", {"status": status})
        return made["metadata"]["uid"]

    def remove(self, path):
        for item in self.api.call("GET", path)["items"]:
            name = item["metadata"]["name"]
            self.api.call("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})

    def clear(self):
        self.remove(f"/api/v1/namespaces/{SPACE}/pods")
        self.remove("/api/v1/nodes")
        self.remove("/apis/railhead.io/v1alpha1/railprofiles")

    def ports(self, case):
        """Of the pods of the case. In the network of one node they have it in common."""
        ports, taken = [], {}
        for pod, own in zip(case["pods"], self.pages.ports):
            node = pod["spec"].get("nodeName")
            shared = pod["spec"].get("hostNetwork") and node
            ports.append(taken.setdefault(node, own) if shared else own)
        return ports

    def play(self, case):
        """Makes what the case is about; its pods' names by uid."""
        self.pages.pages.clear()
        self.pages.asked.clear()
        ports = self.ports(case)
        # Backwards: of those who share a port the first has it.
        for port, page in reversed(list(zip(ports, case["pages"]))):
            self.pages.pages[port] = page
        for given in case["profiles"]:
            self.make_profile(given)
        for node in case["nodes"] or []:
            self.make_node(node)
        owner = str(uuid.uuid4())
        shift = time.time() - STARTED
        # Where nobody reports, nobody says that they will: these are told at once.
        has_pages = any(page is not None for page in case["pages"])
        return {
            self.make_pod(pod, owner, port, has_pages, shift): pod["metadata"]["name"]
            for pod, port in zip(case["pods"], ports)
        }

    def told(self, uids):
        """The Events of these pods: (pod, reason, message)."""
        return sorted(
            (item["involvedObject"]["name"], item["reason"], item["message"])
            for item in self.api.call("GET", f"/api/v1/namespaces/{SPACE}/events")["items"]
            if item["involvedObject"].get("uid") in uids
        )

    def tell_of_another(self, name):
        """A pod without any admission, which is told: all that was there before has been judged."""
        item = {
            "metadata": {"name": name, "namespace": SPACE},
            "spec": {
                "containers": [
                    {"name": "x", "image": "x", "resources": {"limits": {"rdma/hca": "1"}}}
                ]
            },
        }
        made = self.api.call("POST", f"/api/v1/namespaces/{SPACE}/pods", item)
        uid = made["metadata"]["uid"]
        wait_until(lambda: self.told({uid}), f"the Event of {name}", self.replica.log)

    def wait_until_asked(self, case):
        """Every pod that runs has shown its page, if it has one."""
        if all(page is None for page in case["pages"]):
            return
        ports = {
            port
            for pod, port in zip(case["pods"], self.ports(case))
            if "deletionTimestamp" not in pod["metadata"]
            and pod["metadata"].get("annotations", {}).get("prometheus.io/port")
            and pod["status"]["phase"] == "Running"
        }
        wait_until(
            lambda: all(self.pages.asked[port] for port in ports),
            f"a question at each of {ports}",
            self.replica.log,
        )

    def check(self, case, uids, within):
        """Waits until what is expected is told, and sees that nothing else is. How long it took."""
        begin = time.monotonic()
        wanted = sorted((item["pod"], item["reason"]) for item in case["expected"])
        while [item[:2] for item in self.told(uids)] != wanted:
            if time.monotonic() - begin > within:
                break
            time.sleep(0.05)
        took = time.monotonic() - begin
        self.wait_until_asked(case)
        time.sleep(max(0, begin + GROWN + 1 - time.monotonic()))
        self.tell_of_another("another")
        told = self.told(uids)
        self.assertEqual([item[:2] for item in told], wanted)
        ports = dict(zip((pod["metadata"]["name"] for pod in case["pods"]), self.ports(case)))
        for expected in case["expected"]:
            message = next(
                text
                for pod, reason, text in told
                if (pod, reason) == (expected["pod"], expected["reason"])
            )
            for part in expected["says"]:
                self.assertIn(part.replace("9402", str(ports[expected["pod"]])), message)
        self.assertLess(took, within)
        return took

    def test_each_of_what_can_be_wrong_is_told_in_time_and_nothing_else(self):
        cases = [case for case in self.cases if case["expected"]]
        self.assertGreaterEqual(len(cases), 20)
        slowest = (0, "")
        for case in cases:
            with self.subTest(case["name"]):
                took = self.check(case, self.play(case), PROMISED)
                slowest = max(slowest, (took, case["name"]))
            self.clear()
        print(f"{len(cases)} wrong jobs told; the slowest, {slowest[1]}: {slowest[0]:.1f} s")

    def test_who_reports_nothing_is_told_when_it_had_its_time(self):
        uids = self.play(self.silent)
        self.addCleanup(self.clear)
        # Its questions are two seconds apart in its first minute, and then up to fifteen.
        took = self.check(self.silent, uids, SILENCE + 15 + PROMISED)
        self.assertGreater(took, SILENCE)

    def test_nothing_is_told_of_jobs_that_are_right(self):
        cases = [case for case in self.cases if not case["expected"]]
        self.assertGreaterEqual(len(cases), 20)
        for case in cases:
            with self.subTest(case["name"]):
                self.check(case, self.play(case), PROMISED)
            self.clear()
        print(f"{len(cases)} right jobs not told")

    def test_who_leads_after_a_leader_was_killed_tells_nothing_twice(self):
        second = Replica(self.cluster, self.folder, "second")
        self.addClassCleanup(second.end)
        self.addCleanup(self.clear)
        case = next(case for case in self.cases if case["name"] == "WrongNameOfAnHca")
        uids = self.play(case)
        wait_until(lambda: self.told(uids), "an Event", self.replica.log)
        before = self.told(uids)
        wait_until(lambda: "railhead_leader 0" in second.ask("/metrics")[1], "another", second.log)
        self.replica.end()
        # For the tests that come after.
        type(self).replica = second
        wait_until(second.leads, "another leader", second.log)
        page = 'railhead_verdict_pods{job="train",namespace="team",reason="NcclHcaUnknown"'
        wait_until(lambda: page in second.ask("/metrics")[1], "its own verdict", second.log)
        self.tell_of_another("later")
        self.assertEqual(self.told(uids), before)
        for item in self.api.call("GET", f"/api/v1/namespaces/{SPACE}/events")["items"]:
            self.assertEqual(item["count"], 1, item)


if __name__ == "__main__":
    unittest.main()
