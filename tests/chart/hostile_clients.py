#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that connect and send no valid request: a third is silent, a third sends a byte now and then, a third sends
garbage. Clients that the server disconnects connect again. They use eight addresses, 127.0.1.1 to 127.0.1.8, like
eight pods.

usage: hostile_clients.py PORT COUNT     prints "ready" when all have connected once; ends with its standard input
"""

import errno
import itertools
import os
import resource
import select
import socket
import sys
import time

SOURCES = [f"127.0.1.{number}" for number in range(1, 9)]
FIRST = (b"", b"G", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03nonsense")
COMEBACKS = 2000  # reconnects per second
DRIPS = 1000  # bytes per second


class Client:
    def __init__(self, number, port):
        self.number = number
        self.socket = socket.socket()
        self.socket.setblocking(False)
        # The kernel chooses the port when it knows the peer, so that ports suffice.
        self.socket.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        self.socket.bind((SOURCES[number % len(SOURCES)], 0))
        self.begun = False
        error = self.socket.connect_ex(("127.0.0.1", port))
        if error not in (0, errno.EINPROGRESS):
            raise OSError(error, os.strerror(error))

    def begin(self):
        self.begun = True
        first = FIRST[self.number % len(FIRST)]
        if first:
            self.socket.send(first)

    def drip(self):
        if self.begun and self.number % len(FIRST) == 1:
            self.socket.send(b"E")


class Crowd:
    def __init__(self, port, count):
        self._port, self._poll = port, select.epoll()
        self._by_descriptor, self._away = {}, list(range(count))
        self._next = itertools.cycle(range(count))
        self._clients = [None] * count

    def come(self, most):
        for _ in range(min(most, len(self._away))):
            number = self._away.pop()
            try:
                client = Client(number, self._port)
            except OSError:
                self._away.insert(0, number)
                return
            self._clients[number] = client
            self._by_descriptor[client.socket.fileno()] = client
            self._poll.register(client.socket, select.EPOLLIN | select.EPOLLOUT)

    def _lose(self, client):
        self._poll.unregister(client.socket)
        del self._by_descriptor[client.socket.fileno()]
        client.socket.close()
        self._clients[client.number] = None
        self._away.insert(0, client.number)

    def look(self, seconds):
        for descriptor, _ in self._poll.poll(seconds, 1000):
            client = self._by_descriptor[descriptor]
            try:
                if not client.begun:
                    client.begin()
                    self._poll.modify(client.socket, select.EPOLLIN)
                elif not client.socket.recv(4096):
                    self._lose(client)
            except BlockingIOError:
                pass
            except OSError:
                self._lose(client)

    def drip(self, most):
        for number in itertools.islice(self._next, most):
            client = self._clients[number]
            try:
                if client is not None:
                    client.drip()
            except BlockingIOError:
                pass
            except OSError:
                self._lose(client)


def main():
    port, count = map(int, sys.argv[1:3])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd = Crowd(port, count)
    come, ready = 0, False
    while not select.select([sys.stdin], [], [], 0)[0]:
        begin = time.monotonic()
        crowd.come(COMEBACKS // 20)
        crowd.drip(DRIPS // 20)
        crowd.look(0)
        come += COMEBACKS // 20
        if come >= count and not ready:
            ready = True
            print("ready", flush=True)
        while (left := begin + 0.05 - time.monotonic()) > 0:
            crowd.look(left)


if __name__ == "__main__":
    main()
