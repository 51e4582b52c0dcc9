# SPDX-License-Identifier: Apache-2.0
"""The webhook's CA is replaced while pods and jobs are created: no call fails, every pod gets its environment, and
no replica becomes unready."""

import base64
import http.client
import json
import socket
import ssl
import threading
import time
import unittest

from apiserver import CONFIGURATION, Cluster, job, pod
from helm import NAMESPACE
from replica import NAME, Replica, install, send_reviews_to

from control_plane import COMMAND, DEADLINE, certificate, folder_for, wait_until

SECRET = f"{NAME}-ca"
ASKING = {"rdma/hca": 1}


def indexed_job():
    item = job("x", pod("x", limits=ASKING))
    item["spec"] |= {"completionMode": "Indexed", "completions": 2}
    return item


class Load(threading.Thread):
    """Repeats an action until its end, and counts; `wrong` lists violations."""

    def __init__(self, pause):
        super().__init__()
        self._pause, self._over = pause, threading.Event()
        self.done, self.wrong = 0, []

    def run(self):
        while not self._over.wait(self._pause):
            try:
                self.once()
            except Exception as error:  # the thread would end unnoticed
                self.wrong.append((time.time(), repr(error)))
                return
            self.done += 1

    def end(self):
        self._over.set()
        self.join(timeout=DEADLINE)


class Creations(Load):
    """Creates an object repeatedly, as a dry run, over one connection to the API server."""

    def __init__(self, cluster, path, item, injected):
        super().__init__(pause=0.02)
        self._path, self._body, self._injected = path, json.dumps(item), injected
        self._token = cluster.token
        context = ssl.create_default_context(cafile=cluster.authority)
        self._server = http.client.HTTPSConnection(
            "127.0.0.1", cluster.port, timeout=COMMAND, context=context
        )

    def once(self):
        self._server.request(
            "POST",
            f"{self._path}?dryRun=All",
            body=self._body,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        answer = self._server.getresponse()
        text = answer.read()
        if answer.status != 201 or not self._injected(json.loads(text)):
            self.wrong.append((time.time(), answer.status, text[:300]))

    def end(self):
        super().end()
        self._server.close()


class Handshakes(Load):
    """Connects to each replica again and again, trusting the current caBundle of the API server. The API server
    itself keeps its connections, and sees few certificates."""

    def __init__(self, cluster, replicas):
        super().__init__(pause=0.1)
        self._cluster, self._replicas = cluster, replicas

    def bundle(self, index):
        hooks = self._cluster.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        return base64.b64decode(hooks[index]["clientConfig"]["caBundle"]).decode()

    def trusts(self, index, replica):
        """Returns why not, or None. Tries again if the bundle was replaced meanwhile, or if the replica has ended the
        connection of a client that waited for a CPU for seconds."""
        for _ in range(5):
            bundle = self.bundle(index)
            try:
                return handshake(replica, bundle)
            except ssl.SSLCertVerificationError as error:
                why = str(error)
                if self.bundle(index) == bundle:
                    break
            except OSError as error:
                why = str(error)
        return why

    def once(self):
        for index, replica in enumerate(self._replicas):
            if why := self.trusts(index, replica):
                self.wrong.append((time.time(), why))
            ready = replica.ask("/readyz")
            if ready[0] != 200:
                self.wrong.append((time.time(), ready))


def handshake(replica, bundle):
    """Raises OSError if `bundle` does not verify the replica's certificate."""
    context = ssl.create_default_context(cadata=bundle)
    with socket.create_connection(("127.0.0.1", replica.port), timeout=60) as plain:
        context.wrap_socket(plain, server_hostname=f"{NAME}.{NAMESPACE}.svc").close()


class Certificates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "certificates")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(cls.cluster)
        cls.replicas = []
        for name in ("first", "second"):
            cls.replicas.append(Replica(cls.cluster, cls.folder, name))
            cls.addClassCleanup(cls.replicas[-1].end)
        send_reviews_to(cls.cluster, *cls.replicas)

    def authority(self):
        data = self.cluster.get("secret", SECRET, "-n", NAMESPACE).get("data") or {}
        return base64.b64decode(data.get("ca.crt", "")).decode()

    def put_authority(self, data):
        patch = {"data": data}
        self.cluster.kubectl(
            "patch", "secret", SECRET, "-n", NAMESPACE, "--type=merge", "-p", json.dumps(patch)
        )

    def wait_until_all_serve_from(self, authority):
        def served(replica):
            try:
                handshake(replica, authority)
            except OSError:
                return False
            return True

        for replica in self.replicas:
            wait_until(lambda r=replica: served(r), "the new certificate", replica.log)

    def test_a_new_authority_is_taken_without_one_failed_admission(self):
        template = ("spec", "template", "metadata", "annotations")
        loads = [
            Creations(
                self.cluster,
                "/api/v1/namespaces/default/pods",
                pod("x", limits=ASKING),
                lambda item: "railhead.io/injected" in item["metadata"].get("annotations", {}),
            ),
            Creations(
                self.cluster,
                "/apis/batch/v1/namespaces/default/jobs",
                indexed_job(),
                lambda item: "railhead.io/world-size" in str(at(item, template)),
            ),
            Handshakes(self.cluster, self.replicas),
        ]
        for load in loads:
            load.start()
            self.addCleanup(load.end)
        first = self.authority()
        self.put_authority(dict.fromkeys(("ca.crt", "ca.key", "previous-ca.crt")))  # no CA at all
        wait_until(lambda: self.authority() not in ("", first), "another authority")
        self.wait_until_all_serve_from(self.authority())
        crt, key = certificate(self.folder, "brought")
        self.put_authority(
            {
                "ca.crt": base64.b64encode(crt.read_bytes()).decode(),
                "ca.key": base64.b64encode(key.read_bytes()).decode(),
                "previous-ca.crt": None,
            }
        )
        self.wait_until_all_serve_from(crt.read_text())
        before = [load.done for load in loads]
        wait_until(
            lambda: any(load.wrong for load in loads)
            or all(load.done >= old + 20 for load, old in zip(loads, before)),
            "the load",
        )
        for load in loads:
            load.end()
            self.assertEqual(load.wrong, [])
        self.assertEqual(self.authority(), crt.read_text())


def at(item, path):
    for key in path:
        item = item.get(key) or {}
    return item


if __name__ == "__main__":
    unittest.main()
