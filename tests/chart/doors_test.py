# SPDX-License-Identifier: Apache-2.0
"""Hostile clients at every port of the release's programs that a pod of the cluster can reach: the operator at a real
API server, with the rights and the memory limit of the chart, the node agent, and the ranks of a job. While the
clients stay, the programs respond to their own probes, their memory does not grow, and the job continues."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time
import unittest

from apiserver import Cluster
from helm import ROOT
from memory_limit import resident, within_memory
from replica import Replica, install

from control_plane import folder_for, free_port, wait_until

# `make soak` runs the full size.
CLIENTS = int(os.environ.get("RAILHEAD_CLIENTS", "1000"))
FRIEND = "127.0.0.2"
PROMISED = 1  # seconds until a probe succeeds, on an idle machine
PATIENCE = 60  # the same on a busy machine
PROBES = 20 if CLIENTS > 1000 else 5
GROWTH = 48  # MiB that hostile clients may cost
BUILD = ROOT / "build" / "release"
LARGEST = 4 << 20  # bytes of a review


def review(item):
    return json.dumps({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "namespace": "default",
                    "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": item}})


def unverified():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def ask(port, path, body=None, tls=False, seconds=PATIENCE):
    """Returns the status of the response to a client on a new connection."""
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    more = {"context": unverified()} if tls else {}
    server = kind("127.0.0.1", port, timeout=seconds, source_address=(FRIEND, 0), **more)
    with contextlib.closing(server):
        headers = {"Content-Type": "application/json"} if body else {}
        server.request("POST" if body else "GET", path, body, headers)
        answer = server.getresponse()
        answer.read()
        return answer.status


@contextlib.contextmanager
def hostile_clients(*ports):
    crowds = [subprocess.Popen(
        [sys.executable, pathlib.Path(__file__).parent / "hostile_clients.py", str(port), str(CLIENTS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for port in ports]
    try:
        for crowd in crowds:
            assert crowd.stdout.readline() == "ready\n"
        yield
    finally:
        for crowd in crowds:
            crowd.kill()
            crowd.communicate()


class DoorsTest(unittest.TestCase):
    def hold(self, what, pid, ports, probes):
        """Checks that every probe succeeds while the clients are connected to each of the ports."""
        for probe in probes:
            self.assertEqual(probe(), 200)
        before = resident(pid)
        slowest = 0.0
        for port in ports:
            with hostile_clients(port):
                for _ in range(PROBES):
                    for probe in probes:
                        begin = time.monotonic()
                        self.assertEqual(probe(), 200)
                        slowest = max(slowest, time.monotonic() - begin)
                    time.sleep(0.1)
        grown = resident(pid, "VmHWM") - before
        print(f"\n{what}: {CLIENTS} clients at each of {len(ports)} ports: slowest probe {slowest:.3f} s "
              f"(promised: {PROMISED} s), {grown:.1f} MiB more at most", file=sys.stderr)
        self.assertLess(slowest, PATIENCE)
        self.assertLess(grown, GROWTH)


@contextlib.contextmanager
def process(folder, name, *command, env=None, stdout=None, lasts=True):
    """Runs a program. If it lasts, it must still run at the end."""
    with open(folder / f"{name}.log", "wb") as log:
        child = subprocess.Popen([str(word) for word in command], env=env, stderr=log,
                                 stdout=stdout or log, stdin=subprocess.PIPE)
    try:
        yield child
        if lasts and child.poll() is not None:
            raise AssertionError((folder / f"{name}.log").read_text()[-2000:])
    finally:
        child.kill()
        child.communicate()


class OperatorDoors(DoorsTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "doors")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(cls.cluster)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(lambda: cls.replica.end())
        cls.replica.wait_until_ready()

    def asked_to_admit(self):
        return ask(self.replica.port, "/mutate", review({"metadata": {}, "spec": {}}), tls=True)

    def test_1_hostile_clients(self):
        health = self.replica.health_port
        self.hold("operator", self.replica.pid, (self.replica.port, health),
                  (self.asked_to_admit, lambda: ask(health, "/healthz"), lambda: ask(health, "/metrics")))

    def test_2_64_of_the_largest_reviews_at_once(self):
        """Half of the reviews would need 80 MiB each when parsed; the other half just fits."""
        bodies = []
        for value in (",[]", ',"0123456789012345678901234567890123456789"'):
            text = review(None)[:-2].removesuffix("null") + "[0"
            bodies.append(text + value * ((LARGEST - len(text) - 10) // len(value)) + "]}}")
        json.loads(bodies[1])
        answers = []

        def post(body):
            with contextlib.suppress(OSError, http.client.HTTPException):
                answers.append(ask(self.replica.port, "/mutate", body, tls=True, seconds=600))

        with within_memory(self.replica):
            clients = [threading.Thread(target=post, args=(bodies[number % 2],)) for number in range(64)]
            for client in clients:
                client.start()
            slowest = 0.0
            while any(client.is_alive() for client in clients):
                begin = time.monotonic()
                self.assertEqual(self.asked_to_admit(), 200)
                self.assertEqual(ask(self.replica.health_port, "/healthz"), 200)
                slowest = max(slowest, time.monotonic() - begin)
            for client in clients:
                client.join()
            most = resident(self.replica.pid, "VmHWM")
            self.assertEqual(self.asked_to_admit(), 200)
        print(f"\n64 reviews of 4 MiB: {most:.0f} MiB at most, answers "
              f"{ {status: answers.count(status) for status in set(answers)} }, slowest pair of probes "
              f"{slowest:.3f} s", file=sys.stderr)
        self.assertIn(200, answers)


class AgentDoors(DoorsTest):
    def test_hostile_clients(self):
        folder = folder_for(type(self), "doors")
        plugins = folder / "plugins"
        plugins.mkdir()
        health, metrics = free_port(), free_port()
        programs = BUILD / "device-plugin"
        with process(folder, "node", programs / "railhead-test-node", "DGX H100", plugins,
                     stdout=subprocess.PIPE) as node:
            tree = node.stdout.readline().decode().strip()
            with process(folder, "agent", programs / "railhead-device-plugin", "--root", tree, "--node-name",
                         "node", "--kubelet-dir", plugins, "--health-address", f":{health}",
                         "--metrics-address", f":{metrics}") as agent:
                wait_until(lambda: self.answers(health, "/healthz"), "the agent", folder / "agent.log")
                self.hold("node agent", agent.pid, (health, metrics),
                          (lambda: ask(health, "/healthz"), lambda: ask(metrics, "/metrics")))

    @staticmethod
    def answers(port, path):
        with contextlib.suppress(OSError):
            return ask(port, path) == 200
        return False


def listening_ports(pid):
    """Returns the TCP ports on which the process listens."""
    sockets = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(link))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text("ascii").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                ports.add(int(words[1].rpartition(":")[2], 16))
    return sorted(ports)


class JobDoors(DoorsTest):
    """Two ranks with a secret."""

    def setUp(self):
        self.folder = folder_for(type(self), "doors")
        self.secret = self.folder / "secret"
        self.secret.write_text("a secret of the job's ranks alone")
        self.secret.chmod(0o600)
        self.port, self.pages = free_port(), [free_port(), free_port()]
        self.end = self.folder / "end"

    def rank(self, number, stdout=None, lasts=True):
        env = os.environ | {
            "RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port),
            "RAILHEAD_TRANSPORT": "tcp", "RAILHEAD_SOCKET_IFNAME": "lo", "RAILHEAD_POD": f"pod-{number}",
            "RAILHEAD_SECRET_FILE": str(self.secret), "RAILHEAD_TIMEOUT_SECONDS": "600",
            "RAILHEAD_METRICS_PORT": str(self.pages[number]), "RAILHEAD_RAILS_FILE": "/nonexistent/rails.json"}
        return process(self.folder, f"rank-{number}", BUILD / "runtime" / "railhead-perf", "all_reduce", "-c", "-b",
                       "64K", "-e", "64K", "--until", self.end, env=env, stdout=stdout, lasts=lasts)

    def all_reduces(self, number):
        server = http.client.HTTPConnection("127.0.0.1", self.pages[number], timeout=PATIENCE,
                                            source_address=(FRIEND, 0))
        with contextlib.closing(server):
            server.request("GET", "/metrics")
            text = server.getresponse().read().decode()
        counts = re.findall(r"^railhead_collective_operations_total\{.*\} (\d+)$", text, re.MULTILINE)
        return sum(map(int, counts))

    def test_hostile_clients(self):
        # Rank 0 ends as soon as rank 1 has been ended.
        with self.rank(0, lasts=False) as first:
            wait_until(lambda: self.port in listening_ports(first.pid), "rank 0", self.folder / "rank-0.log")
            with hostile_clients(self.port):
                begin = time.monotonic()
                with self.rank(1) as second:
                    def work():
                        with contextlib.suppress(OSError):
                            return self.all_reduces(1) > 0
                        return False

                    wait_until(work, "the first all-reduce", self.folder / "rank-0.log")
                    print(f"\nrendezvous: {CLIENTS} clients: rank 1 has joined and all-reduced after "
                          f"{time.monotonic() - begin:.3f} s", file=sys.stderr)
                    self.ports_of_both(first, second)
                    self.assertIsNone(first.poll(), (self.folder / "rank-0.log").read_text()[-2000:])

    def ports_of_both(self, first, second):
        for number, rank in ((0, first), (1, second)):
            before = self.all_reduces(number)
            page = self.pages[number]
            self.hold(f"rank {number}", rank.pid, listening_ports(rank.pid),
                      (lambda page=page: ask(page, "/metrics"),))
            self.assertGreater(self.all_reduces(number), before)
            log = (self.folder / f"rank-{number}.log").read_text()
            self.assertNotIn("lost", log)


if __name__ == "__main__":
    unittest.main()
