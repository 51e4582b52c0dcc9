# SPDX-License-Identifier: Apache-2.0
"""Reads from an API server, and writes many objects to it over several connections at once."""

import concurrent.futures
import contextlib
import http.client
import json
import ssl
import threading

THREADS = 8
TIMEOUT = 60  # seconds for one request


class Writers:
    def __init__(self, cluster):
        self._port, self._token = cluster.port, cluster.token
        self._context = ssl.create_default_context(cafile=cluster.authority)
        self._own = threading.local()
        self._pool = concurrent.futures.ThreadPoolExecutor(THREADS)

    def create(self, items):
        """`items` are pairs of a collection's path and an object."""
        self._all("POST", "application/json", items)

    def patch(self, items):
        """`items` are pairs of an object's path and a merge patch."""
        self._all("PATCH", "application/merge-patch+json", items)

    def send(self, method, content, items, allowed):
        """Sends requests as above; responses with a status in `allowed` are not errors."""
        self._all(method, content, items, allowed)

    def read(self, path):
        """Returns the object or list at `path`."""
        answer, text = self._ask("GET", "application/json", path, None)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer.status} {text[:500]!r}")
        return json.loads(text)

    def delete(self, path):
        self._all("DELETE", "application/json", [(path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})])

    def _all(self, method, content, items, allowed=()):
        for _ in self._pool.map(lambda item: self._send(method, content, *item, allowed), items):
            pass

    def _send(self, method, content, path, body, allowed):
        answer, text = self._ask(method, content, path, json.dumps(body))
        if answer.status >= 300 and answer.status not in allowed:
            raise AssertionError(f"{method} {path}: {answer.status} {text[:500]!r}")

    def _ask(self, *request):
        """Over this thread's connection, or a new one if the server has ended it."""
        server = getattr(self._own, "server", None)
        if server is not None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self._once(server, *request)
            server.close()
        self._own.server = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=TIMEOUT, context=self._context)
        return self._once(self._own.server, *request)

    def _once(self, server, method, content, path, body):
        server.request(method, path, body=body,
                       headers={"Authorization": f"Bearer {self._token}", "Content-Type": content})
        answer = server.getresponse()
        return answer, answer.read()
