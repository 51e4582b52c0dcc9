# SPDX-License-Identifier: Apache-2.0
"""Brings many objects to an API server, over a few connections at once."""

import concurrent.futures
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
        """As above; answers with these statuses are no trouble."""
        self._all(method, content, items, allowed)

    def _all(self, method, content, items, allowed=()):
        for _ in self._pool.map(lambda item: self._send(method, content, *item, allowed), items):
            pass

    def _send(self, method, content, path, body, allowed):
        server = getattr(self._own, "server", None)
        if server is None:
            server = self._own.server = http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=TIMEOUT, context=self._context
            )
        server.request(
            method,
            path,
            body=json.dumps(body),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": content},
        )
        answer = server.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status not in allowed:
            raise AssertionError(f"{method} {path}: {answer.status} {text[:500]!r}")
