#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One process of a test of the plugin: sends, or receives and checks, messages that a seed determines.

usage: end.py LIBRARY VERSION send|receive FOLDER [--seed N] [--count N] [--largest BYTES] [--connections N] [--pause S]

The receiver writes its handles to FOLDER. Each prints the number of finished messages, one a line; "end" at the end;
or "failed" and the reason, and exits with 1.
"""

import argparse
import ctypes
import pathlib
import random
import sys
import time

from net_abi import Failed, Plugin

OUTSTANDING = 8  # requests of a connection, as NCCL has them
PATIENCE = 60
BLOCK = random.Random(1).randbytes(1 << 20)


def content(seed, number, size):
    """The bytes of a message: a part of a random block that begins where seed and number say."""
    begin = (seed * 7919 + number * 104729) % len(BLOCK)
    text = BLOCK[begin:] + BLOCK[:begin]
    return (text * (size // len(BLOCK) + 1))[:size]


class Plan:
    """The groups of messages of a connection: lists of (number, size, tag, maximum size of the receive)."""

    def __init__(self, seed, count, largest):
        draw = random.Random(seed)
        self.groups, number = [], 0
        while number < count:
            group = []
            for tag in draw.sample(range(1000), draw.choice((1, 1, 1, 2, 3, 8))):
                size = draw.choice((0, 1, 8, draw.randint(0, 4096), draw.randint(0, largest), largest))
                group.append((number, size, tag, size + draw.choice((0, 0, 1, 4096))))
                number += 1
            self.groups.append(group)
        self.seed = seed


class Sender:
    def __init__(self, plugin, comm, plan):
        self._plugin, self._comm, self._plan = plugin, comm, plan
        # Senders of a group come in any order.
        draw = random.Random(plan.seed + 1)
        self._left = [message for group in plan.groups for message in draw.sample(group, len(group))]
        self._left.reverse()
        self._open = []
        self.done = 0

    def step(self):
        """Returns whether all messages are sent."""
        while self._left and len(self._open) < OUTSTANDING:
            number, size, tag, _ = self._left.pop()
            data = ctypes.create_string_buffer(content(self._plan.seed, number, size), max(1, size))
            memory = self._plugin.register(self._comm, data)
            request = self._plugin.isend(self._comm, data, size, tag, memory)
            if request is None:
                raise AssertionError("isend has no request")
            self._open.append((request, data))
        still = []
        for request, data in self._open:
            if self._plugin.test(request) is None:
                still.append((request, data))
            else:
                self.done += 1
        self._open = still
        return not self._left and not self._open


class Receiver:
    def __init__(self, plugin, comm, plan):
        self._plugin, self._comm, self._plan = plugin, comm, plan
        self._left = list(reversed(plan.groups))
        self._open = []
        self.done = 0

    def step(self):
        while self._left and len(self._open) < OUTSTANDING:
            group = self._left.pop()
            buffers = [ctypes.create_string_buffer(b"\xaa" * (most + 1), most + 1) for _, _, _, most in group]
            memory = self._plugin.register(self._comm, buffers[0])
            request = self._plugin.irecv(self._comm, buffers, [most for *_, most in group],
                                         [tag for _, _, tag, _ in group], memory)
            self._open.append((request, group, buffers))
        still = []
        for request, group, buffers in self._open:
            sizes = self._plugin.test(request, len(group))
            if sizes is None:
                still.append((request, group, buffers))
                continue
            for (number, size, _tag, most), got, buffer in zip(group, sizes, buffers):
                if got != size or buffer.raw[:size] != content(self._plan.seed, number, size):
                    raise AssertionError(f"message {number} of {size} bytes: {got} came, or other ones")
                if buffer.raw[size:most + 1] != b"\xaa" * (most + 1 - size):
                    raise AssertionError(f"message {number}: bytes behind it were written")
            self.done += len(group)
        self._open = still
        return not self._left and not self._open


def wait(what, get):
    deadline = time.monotonic() + PATIENCE
    while True:
        got = get()
        if got is not None:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.001)


def run(chosen):
    plugin = Plugin(chosen.library, chosen.version)
    plugin.init()
    if plugin.devices() < 1:
        raise AssertionError("there is no device")
    plans = [Plan(chosen.seed + i, chosen.count, chosen.largest) for i in range(chosen.connections)]
    folder = pathlib.Path(chosen.folder)
    if chosen.role == "receive":
        listeners = [plugin.listen(i % plugin.devices()) for i in range(chosen.connections)]
        for i, (_, handle) in enumerate(listeners):
            (folder / "writing").write_bytes(handle)
            (folder / "writing").rename(folder / f"handle{i}")
        comms = []
        for i, (listener, _) in enumerate(listeners):
            comms.append(wait(f"accept {i}", lambda listener=listener: plugin.accept(listener)))
            plugin.close("listen", listener)
        ends = [Receiver(plugin, comm, plan) for comm, plan in zip(comms, plans)]
    else:
        def read(i):
            path = folder / f"handle{i}"
            return path.read_bytes() if path.exists() else None
        comms = [wait("connect", lambda i=i: plugin.connect(wait("a handle", lambda: read(i))))
                 for i in range(chosen.connections)]
        ends = [Sender(plugin, comm, plan) for comm, plan in zip(comms, plans)]
    told, waiting = -1, list(ends)
    while waiting:
        waiting = [end for end in waiting if not end.step()]
        done = sum(end.done for end in ends)
        if done != told:
            print(done, flush=True)
            told = done
        time.sleep(chosen.pause)
    for comm in comms:
        plugin.close("receive" if chosen.role == "receive" else "send", comm)
    plugin.finalize()
    print("end", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("version", type=int)
    parser.add_argument("role", choices=("send", "receive"))
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--largest", type=int, default=1 << 18)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.0)
    try:
        run(parser.parse_args())
    except (AssertionError, Failed) as failure:
        print(f"failed {failure}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
