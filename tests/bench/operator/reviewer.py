# SPDX-License-Identifier: Apache-2.0
"""Calls a webhook at a fixed rate over persistent connections, as the API server does. A late response does not delay
the next request, and latency counts from the time at which a request was due: it includes waiting for a
connection."""

import asyncio
import gc
import math
import ssl
import time

CONNECTIONS = 8
DEADLINE = 10  # seconds, the webhook's timeoutSeconds


class Reviewer:
    def __init__(self, port, bundle, name):
        self._port, self._name = port, name
        self._context = ssl.create_default_context(cadata=bundle)
        self._free = asyncio.Queue()

    async def connect(self):
        for _ in range(CONNECTIONS):
            pair = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=self._context, server_hostname=self._name
            )
            self._free.put_nowait(pair)

    async def ask(self, path, body):
        """Returns status and body."""
        pair = await self._free.get()
        reader, writer = pair
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {self._name}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
        text = await reader.readexactly(length)
        self._free.put_nowait(pair)
        return int(head.split()[1]), text

    async def at_rate(self, rate, path, bodies, good):
        """Returns the latency of each response in seconds; raises AssertionError if `good` rejects one."""
        took = []

        async def one(due, body):
            status, text = await asyncio.wait_for(self.ask(path, body), DEADLINE)
            took.append(time.perf_counter() - due)
            if not good(status, text):
                raise AssertionError(f"{path}: {status} {text[:500]!r}")

        gc.disable()
        begin = time.perf_counter() + 0.1
        asked = []
        for index, body in enumerate(bodies):
            due = begin + index / rate
            await asyncio.sleep(max(0, due - time.perf_counter()))
            asked.append(asyncio.create_task(one(due, body)))
        await asyncio.gather(*asked)
        gc.enable()
        return sorted(took)


def quantile(ordered, share):
    """Returns the smallest of the ordered values that at least this share of them does not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
