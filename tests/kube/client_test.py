# SPDX-License-Identifier: Apache-2.0
"""kube/ against a real API server: the contents of its probe's cache, and which probe leads."""

import http.client
import json
import pathlib
import random
import signal
import ssl
import subprocess
import time
import unittest
import urllib.request

from control_plane import COMMAND, ControlPlane, folder_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = ROOT / "build" / "release" / "kube" / "railhead_kube_probe"
SPACE = "default"
MAPS = f"/api/v1/namespaces/{SPACE}/configmaps"
OBJECTS = 2000
SETTLED = 240  # seconds until a cache must be right; it takes about one
TAKEOVER = 240  # seconds from a leader's death to the next one; takes about a lease


class Admin:
    """Writes over one connection, which is faster than kubectl."""

    def __init__(self, plane):
        self._plane = plane
        self._connection = None

    def call(self, method, path, body=None):
        for attempt in (1, 2):  # the server may have been restarted since the last call
            if self._connection is None:
                context = ssl.create_default_context(cafile=str(self._plane.authority))
                self._connection = http.client.HTTPSConnection(
                    "127.0.0.1", self._plane.port, timeout=COMMAND, context=context
                )
            try:
                self._connection.request(
                    method,
                    path,
                    body=json.dumps(body) if body is not None else None,
                    headers={
                        "Authorization": f"Bearer {self._plane.token}",
                        "Content-Type": "application/json",
                    },
                )
                answer = self._connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self.close()
                if attempt == 2:
                    raise
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def create(self, name):
        self.call("POST", MAPS, {"metadata": {"name": name}, "data": {"generation": "1"}})

    def update(self, name):
        self.call(
            "PUT", f"{MAPS}/{name}", {"metadata": {"name": name}, "data": {"at": str(time.time())}}
        )

    def delete(self, name):
        self.call("DELETE", f"{MAPS}/{name}")

    def versions(self):
        """Returns {key: resourceVersion} of all objects, and the list's own version."""
        listed = self.call("GET", MAPS)
        return {
            f"{SPACE}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in listed["items"]
        }, listed["metadata"]["resourceVersion"]


class CacheProbe:
    def __init__(self, plane, log):
        self._log = log
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [PROBE, "cache", plane.kubeconfig, "v1", "configmaps", SPACE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def held(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ends(self):
        return self._log.read_text().splitlines()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=COMMAND)
        self.process.stdout.close()


class Candidate:
    def __init__(self, plane, folder, identity):
        self.identity = identity
        self._samples = folder / f"{identity}.leads"
        self._log = folder / f"{identity}.log"
        with (
            open(self._samples, "w", encoding="utf-8") as samples,
            open(self._log, "w", encoding="utf-8") as errors,
        ):
            self.process = subprocess.Popen(
                [PROBE, "elect", plane.kubeconfig, SPACE, "election", identity],
                stdout=samples,
                stderr=errors,
            )

    def led(self):
        """Returns the times at which the probe led. A killed process may leave half a line."""
        lines = self._samples.read_text().split("\n")[:-1]
        return [float(line) for line in lines]

    def trouble(self):
        """Returns the errors of its reads and writes."""
        return self._log.read_text()

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(timeout=COMMAND)


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "kube")
        cls.plane = ControlPlane(cls.folder)
        cls.plane.start_for(cls)
        cls.admin = Admin(cls.plane)
        cls.addClassCleanup(cls.admin.close)

    def wait(self, condition, what, seconds=SETTLED):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.05)

    def assert_holds_all(self, probe):
        wanted, _ = self.admin.versions()
        self.wait(
            lambda: probe.held() == wanted,
            f"a cache of {len(wanted)} objects; what ended its watches: {probe.ends()[-5:]}",
        )
        return wanted

    def compact(self):
        """Makes etcd discard all earlier versions."""
        _, version = self.admin.versions()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(
            f"{self.plane.etcd}/v3/kv/compaction",
            data=json.dumps({"revision": version, "physical": True}).encode(),
        )
        with opener.open(request, timeout=COMMAND) as answer:
            self.assertEqual(answer.status, 200)

    def restart(self):
        self.plane.kill_apiserver()
        self.plane.start_apiserver()
        self.plane.wait_until_ready()

    def test_a_cache_is_what_the_server_has_whatever_happens(self):
        chance = random.Random(7)
        names = [f"before-{i}" for i in range(150)]  # two pages for the first list
        for name in names:
            self.admin.create(name)
        probe = CacheProbe(self.plane, self.folder / "cache.log")
        self.addCleanup(probe.stop)
        self.assert_holds_all(probe)

        with self.subTest("writes while the watch runs"):
            for i in range(OBJECTS):
                name = f"map-{i}"
                self.admin.create(name)
                names.append(name)
                if i % 3 == 0:
                    self.admin.update(chance.choice(names))
                if i % 4 == 0:
                    self.admin.delete(names.pop(chance.randrange(len(names))))
            self.assertGreater(len(self.assert_holds_all(probe)), OBJECTS // 2)
            # One list sufficed. On a busy machine the server ends the watch of a client that reads its events too
            # slowly, without an error, and the next watch continues from there.
            self.assertEqual(set(probe.ends()) - {"OK"}, set())

        with self.subTest("the API server dies and comes back"):
            self.plane.kill_apiserver()
            self.wait(probe.ends, "the probe notices")
            self.plane.start_apiserver()
            self.plane.wait_until_ready()
            for name in names[:20]:
                self.admin.update(name)
            self.assert_holds_all(probe)

        with self.subTest("what the probe has not seen is forgotten"):
            ended = len(probe.ends())
            probe.process.send_signal(signal.SIGSTOP)
            self.restart()  # otherwise its socket would still buffer new events
            for name in names[:20]:
                self.admin.delete(name)
            for name in names[20:40]:
                self.admin.update(name)
            self.compact()
            self.restart()  # the server discards its own cache of etcd
            probe.process.send_signal(signal.SIGCONT)
            self.assert_holds_all(probe)
            gone = [line for line in probe.ends()[ended:] if line.startswith("OUT_OF_RANGE")]
            self.assertEqual(len(gone), 1, probe.ends()[ended:])
            self.assertIn("410", gone[0])
            self.admin.create("after")
            self.assert_holds_all(probe)

    def test_a_killed_leader_is_replaced_and_two_never_lead(self):
        first = Candidate(self.plane, self.folder, "first")
        self.addCleanup(first.process.kill)
        self.wait(first.led, "the first one leads")
        second = Candidate(self.plane, self.folder, "second")
        self.addCleanup(second.process.kill)
        time.sleep(3)  # long enough to see the lease and to try
        first.end(signal.SIGKILL)
        self.wait(second.led, "the second one leads", TAKEOVER)
        third = Candidate(self.plane, self.folder, "third")
        self.addCleanup(third.process.kill)
        time.sleep(3)
        second.end(signal.SIGTERM)
        # Released at its end: the next leader need not wait until the lease expires. It tries that for two seconds; if
        # the server was too busy, it says so.
        held = self.plane.get("lease", "election")["spec"]["holderIdentity"]
        self.assertTrue(held != "second" or second.trouble(), "the lease was not released")
        self.wait(third.led, "the third one leads", TAKEOVER)
        third.end(signal.SIGTERM)

        terms = [candidate.led() for candidate in (first, second, third)]
        for before, after in zip(terms, terms[1:]):
            self.assertLess(before[-1], after[0])
        lease = self.plane.get("lease", "election")
        self.assertTrue(lease["spec"]["holderIdentity"] == "" or third.trouble(), lease)
        self.assertEqual(lease["spec"]["leaseTransitions"], 2)
        print(
            f"takeover after a kill {terms[1][0] - terms[0][-1]:.1f} s, "
            f"after a release {terms[2][0] - terms[1][-1]:.1f} s"
        )
