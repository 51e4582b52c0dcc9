#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the profiler of the NCCL plugin costs NCCL: all-reduces of the stock NCCL with and without it, in turns.

usage: run.py [TURNS]     prints Markdown; progress goes to standard error

Two jobs of two ranks exist at the same time, one with the profiler and one without; one works, the other waits. A turn
is a block of all-reduces of each, and which begins changes from turn to turn. GPUs are emulated (tests/nccl/stock).
"""

import contextlib
import os
import pathlib
import select
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nccl" / "stock"), str(ROOT / "tests" / "testbed"), str(ROOT / "tests" / "kube")]

import job as stock  # noqa: E402
import wheels  # noqa: E402
from control_plane import free_port  # noqa: E402
from railbed.console import Failure  # noqa: E402
from railbed.process import run  # noqa: E402

OUT = ROOT / "out" / "bench-nccl"
PROGRAM = OUT / "rank"
RANKS = 2
# Bytes, and all-reduces of a block.
SIZES = ((8, 200), (4 << 10, 200), (64 << 10, 100), (1 << 20, 40), (16 << 20, 4))
TURNS = 101
START_SECONDS = 120
BLOCK_SECONDS = 60

ABOUT = """\
All-reduces of NCCL {version} between two processes, over the plugin's TCP transport on loopback, with the plugin's
profiler (its metrics page included) and with `NCCL_PROFILER_PLUGIN=none`. GPUs are emulated: kernels run on the CPUs, so
NCCL's own part is larger than it would be beside a GPU, and the cost in percent is that of jobs that do nothing but
reduce. Medians of {turns} turns; the difference is the median of the turns' ratios, with the quartiles in brackets. CPU
time is that of both processes, all threads.
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def build():
    """Links this benchmark's rank with the emulated GPUs of tests/nccl/stock."""
    stock.build()
    OUT.mkdir(parents=True, exist_ok=True)
    run(["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread", "-I", ROOT, "-c",
         HERE / "rank.cc", "-o", OUT / "rank.o"])
    objects = [path for path in (stock.OUT / "objects").glob("*.o")
               if path.name.startswith(("stock-", "cuda-", "kernels-")) or path.name == "rank-nccl.o"]
    run(["g++", "-rdynamic", "-pthread", OUT / "rank.o", *sorted(objects), "-ldl", "-o", PROGRAM])


class Job:
    """Ranks that wait for blocks of all-reduces."""

    def __init__(self, name, library, **env):
        self.name, self.folder, self._port = name, OUT / name, free_port()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RAILHEAD_"))}
        common = {"NCCL_NET": "Railhead", "NCCL_NET_PLUGIN": str(stock.PLUGIN), "NCCL_SOCKET_IFNAME": "lo",
                  "RAILHEAD_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_PAT_ENABLE": "0",
                  "RAILHEAD_METRICS_PORT": str(self._port), "NCCL_DEBUG": "WARN"}
        self.ranks, self._read = [], [b""] * RANKS
        for rank in range(RANKS):
            command = [str(part) for part in (PROGRAM, library, self.folder / "id", rank, RANKS)]
            with open(self.folder / f"rank{rank}.log", "wb") as log:
                self.ranks.append(subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                    env=plain | common | {"NCCL_HOSTID": f"railhead-host-{rank}"} | env))

    def start(self):
        for rank in range(RANKS):
            if self._line(rank, START_SECONDS) != "ready":
                raise Failure(f"job {self.name}: rank {rank} does not start", log=self.folder / f"rank{rank}.log")

    def block(self, size, count):
        """Returns the seconds of an all-reduce, and the CPU seconds of all ranks."""
        for rank in self.ranks:
            rank.stdin.write(f"{size} {count}\n".encode())
        answers = [tuple(map(float, self._line(rank, BLOCK_SECONDS).split())) for rank in range(RANKS)]
        return max(seconds for seconds, _ in answers) / count, sum(cpu for _, cpu in answers) / count

    def expect_events(self, wanted):
        """Checks that the job's page has events of the profiler, or none."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=BLOCK_SECONDS) as answer:
            has = "\nrailhead_nccl_profiler_events_total{" in answer.read().decode()
        if has != wanted:
            raise Failure(f"job {self.name}: its page has {'' if has else 'no '}events of the profiler")

    def _line(self, rank, seconds):
        """Returns the next line of a rank, without the lines of NCCL's log."""
        deadline = time.monotonic() + seconds
        pipe = self.ranks[rank].stdout
        while True:
            line, end, rest = self._read[rank].partition(b"\n")
            if end:
                self._read[rank] = rest
                if b"NCCL " not in line:
                    return line.decode()
            elif not select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]:
                break
            elif not (more := os.read(pipe.fileno(), 4096)):
                break
            else:
                self._read[rank] += more
        raise Failure(f"job {self.name}: no answer of rank {rank} within {seconds} s", log=self.folder / f"rank{rank}.log")

    def end(self):
        for rank in self.ranks:
            with contextlib.suppress(OSError):
                rank.stdin.close()
        for rank in self.ranks:
            try:
                rank.wait(BLOCK_SECONDS)
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()


def measure(size, count, jobs, turns):
    """Returns [(without, with)] for each turn, each as Job.block() returns it."""
    for job in jobs:
        job.block(size, count)
    found = []
    for turn in range(turns):
        order = jobs if turn % 2 == 0 else jobs[::-1]
        blocks = {job.name: job.block(size, count) for job in order}
        found.append(tuple(blocks[job.name] for job in jobs))
    return found


def percent(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{100 * (middle - 1):+.1f} % [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"


def row(size, found):
    cells = ["8 B" if size == 8 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"]
    for part in (0, 1):
        without, with_it = ([1e6 * turn[kind][part] for turn in found] for kind in (0, 1))
        cells += [f"{statistics.median(without):.0f} us", f"{statistics.median(with_it):.0f} us",
                  percent([b / a for a, b in zip(without, with_it)])]
    return "| " + " | ".join(cells) + " |"


def main():
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    try:
        say("compile")
        build()
        with wheels.library(wheels.DEFAULT) as library:
            jobs = (Job("without", library, NCCL_PROFILER_PLUGIN="none"), Job("with", library))
            try:
                for job in jobs:
                    job.start()
                print(ABOUT.format(version=wheels.DEFAULT, turns=turns))
                print("| size | time without | with | difference | CPU time without | with | difference |")
                print("|---|---|---|---|---|---|---|")
                for size, count in SIZES:
                    say(f"{size} bytes")
                    print(row(size, measure(size, count, jobs, turns)), flush=True)
                for job in jobs:
                    job.expect_events(job.name == "with")
            finally:
                for job in jobs:
                    job.end()
    except Failure as failure:
        say(f"run.py: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
