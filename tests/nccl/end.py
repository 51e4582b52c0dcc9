#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One process of a test of the plugin: sends, or receives and checks, messages that a seed determines.

usage: end.py LIBRARY VERSION send|receive FOLDER [--seed N] [--count N | --endless] [--largest BYTES] [--connections N]
              [--pause S] [--handle-version N]

The receiver writes its handles to FOLDER. Each prints the number of finished messages, one a line; "end" at the end;
or "failed" and the reason, and exits with 1. With --endless, messages end some time after there is a file FOLDER/stop.
With --handle-version, this process speaks that version of the plugin's handles, and no other one.
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
VERSION_PLACE = 4  # of a handle, in bytes
LINE_PAUSE = 0.02  # between lines of output
BLOCK = random.Random(1).randbytes(1 << 20)


def content(seed, number, size):
    """The bytes of a message: a part of a random block that begins where seed and number say."""
    begin = (seed * 7919 + number * 104729) % len(BLOCK)
    text = BLOCK[begin:] + BLOCK[:begin]
    return (text * (size // len(BLOCK) + 1))[:size]


class Plan:
    """The groups of messages of a connection: lists of (number, size, tag, maximum size of the receive)."""

    def __init__(self, seed, largest, length):
        self.seed = seed
        self._draw, self._largest, self._length = random.Random(seed), largest, length
        self._groups = self._messages = 0
        self.ended = False

    def next(self):
        """Returns the next group; None at the end, and then `ended` is true."""
        self.ended = self._length.is_reached(self._groups, self._messages)
        if self.ended:
            return None
        draw, group = self._draw, []
        for tag in draw.sample(range(1000), draw.choice((1, 1, 1, 2, 3, 8))):
            size = draw.choice((0, 1, 8, draw.randint(0, 4096), draw.randint(0, self._largest), self._largest))
            group.append((self._messages, size, tag, size + draw.choice((0, 0, 1, 4096))))
            self._messages += 1
        self._groups += 1
        return group


class Messages:
    """A number of messages, as the length of a plan."""

    def __init__(self, count):
        self._count = count

    def is_reached(self, _groups, messages):
        return messages >= self._count


class UntilStopped:
    """The length of a plan that a sender ends when it finds a file. It announces the last group in another file, long
    before the receiver can be there: a receiver posts at most OUTSTANDING groups more than it has got."""

    def __init__(self, stop, announcement, sends):
        self._stop, self._announcement, self._sends = stop, announcement, sends
        self._last = None

    def is_reached(self, groups, _messages):
        if self._last is None and self._sends and self._stop.exists():
            self._last = groups + OUTSTANDING + 1
            draft = self._announcement.with_suffix(".draft")
            draft.write_text(str(self._last), "ascii")
            draft.rename(self._announcement)
        if self._last is None and not self._sends and self._announcement.exists():
            self._last = int(self._announcement.read_text("ascii"))
        return self._last is not None and groups >= self._last


class Sender:
    def __init__(self, plugin, comm, plan):
        self._plugin, self._comm, self._plan = plugin, comm, plan
        self._draw = random.Random(plan.seed + 1)
        self._left, self._open = [], []
        self.done = 0

    def _next(self):
        """Returns the next message; None at the end. Messages of a group come in any order."""
        if not self._left:
            group = self._plan.next()
            self._left = self._draw.sample(group, len(group)) if group else []
        return self._left.pop() if self._left else None

    def step(self):
        """Returns whether all messages are sent."""
        while len(self._open) < OUTSTANDING and (message := self._next()):
            number, size, tag, _ = message
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
        return self._plan.ended and not self._open


class Receiver:
    def __init__(self, plugin, comm, plan):
        self._plugin, self._comm, self._plan = plugin, comm, plan
        self._open = []
        self.done = 0

    def step(self):
        while len(self._open) < OUTSTANDING and (group := self._plan.next()):
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
        return self._plan.ended and not self._open


def wait(what, get):
    deadline = time.monotonic() + PATIENCE
    while True:
        got = get()
        if got is not None:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.001)


def version_of_handles(plugin):
    """The version of handles that this plugin speaks."""
    listener, handle = plugin.listen()
    plugin.close("listen", listener)
    return handle[VERSION_PLACE]


def of_version(plugin, handle, version):
    """A handle as a plugin of another version of handles writes it, or as one would read it."""
    if version is None:
        return handle
    own = version_of_handles(plugin)
    other = {own: version, version: own}[handle[VERSION_PLACE]]
    return handle[:VERSION_PLACE] + bytes([other]) + handle[VERSION_PLACE + 1:]


def run(chosen):
    plugin = Plugin(chosen.library, chosen.version)
    plugin.init()
    if plugin.devices() < 1:
        raise AssertionError("there is no device")
    folder = pathlib.Path(chosen.folder)

    def length(i):
        if not chosen.endless:
            return Messages(chosen.count)
        return UntilStopped(folder / "stop", folder / f"last{i}", chosen.role == "send")
    plans = [Plan(chosen.seed + i, chosen.largest, length(i)) for i in range(chosen.connections)]
    if chosen.role == "receive":
        listeners = [plugin.listen(i % plugin.devices()) for i in range(chosen.connections)]
        for i, (_, handle) in enumerate(listeners):
            (folder / "writing").write_bytes(of_version(plugin, handle, chosen.handle_version))
            (folder / "writing").rename(folder / f"handle{i}")
        comms = []
        for i, (listener, _) in enumerate(listeners):
            comms.append(wait(f"accept {i}", lambda listener=listener: plugin.accept(listener)))
            plugin.close("listen", listener)
        ends = [Receiver(plugin, comm, plan) for comm, plan in zip(comms, plans)]
    else:
        def read(i):
            path = folder / f"handle{i}"
            return of_version(plugin, path.read_bytes(), chosen.handle_version) if path.exists() else None
        comms = [wait("connect", lambda i=i: plugin.connect(wait("a handle", lambda: read(i))))
                 for i in range(chosen.connections)]
        ends = [Sender(plugin, comm, plan) for comm, plan in zip(comms, plans)]
    told, next_line, waiting = -1, 0, list(ends)
    while waiting:
        waiting = [end for end in waiting if not end.step()]
        done, now = sum(end.done for end in ends), time.monotonic()
        if done != told and (now >= next_line or not waiting):
            print(done, flush=True)
            told, next_line = done, now + LINE_PAUSE
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
    parser.add_argument("--endless", action="store_true")
    parser.add_argument("--handle-version", type=int)
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
