# SPDX-License-Identifier: Apache-2.0
"""One rank of a ping-pong with torch.distributed's send and recv, over backends in turns, in the same processes.

usage: torch_pingpong.py BACKEND[,BACKEND] ROUNDS ROUND_MS BYTES...    with torchrun's variables and two ranks

Prints what pingpong.c prints, with the backend in each line. It measures and checks in the same way, except that the
mark of a message in timed rounds is its first and its last byte.
"""

import ctypes
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

CHECKS = 4
MIN_ROUNDS, OVERTIME = 5, 3
MAX_ITERATIONS = 1 << 20


def of_rank_0(decision):
    """Returns the decision of rank 0 on both ranks."""
    value = torch.tensor([decision])
    dist.broadcast(value, 0)
    return value.item()


class Pingpong:
    """Messages of one size over one backend."""

    def __init__(self, backend, group, size):
        self.backend, self.size, self.wrong = backend, size, 0
        self._group = group
        self._rank = dist.get_rank()
        self._sent = torch.zeros(size, dtype=torch.uint8)
        self._received = torch.zeros(size, dtype=torch.uint8)
        # An element of these takes some 50 ns; one of a tensor takes a microsecond.
        self._out, self._in = ((ctypes.c_uint8 * size).from_address(tensor.data_ptr())
                               for tensor in (self._sent, self._received))
        self._number = 0

    def _send(self):
        dist.send(self._sent, 1 - self._rank, group=self._group)

    def _receive(self):
        dist.recv(self._received, 1 - self._rank, group=self._group)

    def exchange(self):
        self._number += 1
        mark, last = self._number & 0xff, self.size - 1
        self._out[0] = self._out[last] = mark ^ self._rank * 0x80
        if self._rank == 0:
            self._send()
        self._receive()
        if self._rank == 1:
            self._send()
        if self._in[0] != mark ^ (1 - self._rank) * 0x80 or self._in[last] != self._in[0]:
            self.wrong += 1

    def check_all(self, number):
        """Exchanges messages and compares every byte."""
        def pattern(rank):
            return (torch.arange(self.size) * 7 + number * 31 + rank * 101).remainder(251).to(torch.uint8)
        self._sent.copy_(pattern(self._rank))
        self._received.copy_(255 - pattern(1 - self._rank))
        if self._rank == 0:
            self._send()
        self._receive()
        if self._rank == 1:
            self._send()
        self.wrong += int((self._received != pattern(1 - self._rank)).sum())

    def round(self, iterations):
        """Returns the one-way seconds."""
        dist.barrier()
        self.exchange()  # after it, both ranks are at the same point
        begin = time.perf_counter()
        for _ in range(iterations):
            self.exchange()
        return (time.perf_counter() - begin) / iterations / 2

    def iterations(self, round_seconds):
        count = 1
        while True:
            shortest = min(self.round(count) for _ in range(3))
            if of_rank_0(shortest * 2 * count >= round_seconds / 2 or count >= MAX_ITERATIONS):
                return count
            count *= 2

    def all_wrong(self):
        both = torch.tensor([self.wrong])
        dist.all_reduce(both)
        return both.item()


def measure(pingpongs, rounds, round_seconds):
    """Returns a row for each, which take turns."""
    for pingpong in pingpongs:
        for number in range(CHECKS):
            pingpong.check_all(number)
    counts = [pingpong.iterations(round_seconds) for pingpong in pingpongs]
    seconds = [[] for _ in pingpongs]
    last = time.perf_counter() + OVERTIME * rounds * round_seconds * len(pingpongs)
    for number in range(rounds):
        if number >= MIN_ROUNDS and of_rank_0(time.perf_counter() > last):
            break
        for pingpong, count, found in zip(pingpongs, counts, seconds, strict=True):
            found.append(pingpong.round(count))
    return [{"backend": pingpong.backend, "bytes": pingpong.size, "rounds": len(found), "iterations": count,
             "best_us": round(min(found) * 1e6, 4), "median_us": round(statistics.median(found) * 1e6, 4),
             "wrong": pingpong.all_wrong()}
            for pingpong, count, found in zip(pingpongs, counts, seconds, strict=True)]


def main():
    backends, rounds, round_ms, *sizes = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {name: dist.new_group(backend=name) for name in backends.split(",")}
    first = dist.get_rank() == 0
    if first:
        print(json.dumps({"library": f"torch {torch.__version__}", "ranks": dist.get_world_size()}), flush=True)
    for size in map(int, sizes):
        rows = measure([Pingpong(name, group, size) for name, group in groups.items()], int(rounds),
                       float(round_ms) / 1e3)
        if first:
            print(*map(json.dumps, rows), sep="\n", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
