#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several TCP rails: Railhead compared with plain streams and Open MPI, and the cost of failures.

usage: run.py [PASSES [FAILURES]]     prints Markdown; progress goes to standard error
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests" / "rails"), str(ROOT / "tests" / "bench" / "peers"),
                str(ROOT / "tests" / "testbed")]

import figures  # noqa: E402
import job  # noqa: E402
import stalls  # noqa: E402
from neighbours import Neighbours  # noqa: E402
from network import Network  # noqa: E402
from railbed.console import Failure  # noqa: E402
from railbed.process import run  # noqa: E402

OUT = ROOT / "out" / "bench-rails"
PEERS = ROOT / "tests" / "bench" / "peers"
RAILS = ((200, 200), (100, 100, 100, 100), (400, 100), (250, 125, 25))
SIZES = (8 << 20, 32 << 20)
ITERATIONS = 6
RAW_SECONDS = 2
RUN_SECONDS = 120
# All measurements run at this priority, since other programs use this machine's cores, too.
PRIORITY = -10
PATIENCE_SECONDS = 120  # in total, to wait for other load

FAILING_RAILS = (200, 200, 200)
OPERATION = 1 << 20
TROUBLES = {"packets vanish": "swallow", "interface down": "unplug", "connections reset": "reset"}

ABOUT = """\
All-reduces between two ranks, one in each of two network namespaces that are joined by veth pairs,
shaped both ways with tbf ([tests/bench/rails](../tests/bench/rails/README.md)). Between two ranks as
many bytes go each way as are reduced, so bytes / time is what the rails carry; plain streams are one
TCP connection on each rail, both ways at once. Medians of {passes} passes, in which all take turns.
Railhead's time includes its trial of algorithms, which is in the first calls of a size.
{versions}. {noise}
"""

ABOUT_FAILURES = """
## Rails that fail

{rails} rails of {rate} Mbit/s, all-reduces of {size} MiB, every sum checked on both ranks ({operations}
of them, none wrong). A rail fails at random for one to two seconds and returns, {failures} times.
*Stall* is by how much the slowest all-reduce during a fault exceeds the usual one on the rails that are left
({usual:.0f} ms on all of them); *used again* is the time from the repair until the rail has carried data. Goals: stall below
{stall_goal:.1f} s, used again in less than {return_goal:.0f} s.
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def build():
    OUT.mkdir(parents=True, exist_ok=True)
    job.build(OUT)
    run(["cc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", HERE / "raw.c", "-o", OUT / "raw"])
    run(["mpicc.openmpi", "-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", PEERS / "loop.c",
         PEERS / "library_mpi.c", "-o", OUT / "openmpi"])


def raw(network):
    """Returns the bytes per second of plain streams: the mean of both directions."""
    rails = range(len(network.megabits))
    addresses = [network.address("a", rail) for rail in rails]
    listener = subprocess.Popen(network.inside("a", OUT / "raw", "listen", *addresses),
                                stdout=subprocess.PIPE, text=True)
    listener.stdout.readline()
    there = run(network.inside("b", OUT / "raw", "dial", RAW_SECONDS, *addresses),
                seconds=RUN_SECONDS).stdout
    here, _ = listener.communicate(timeout=RUN_SECONDS)
    return (float(here) + float(there)) / 2


def railhead(network):
    """Returns {bytes: bytes per second}."""
    perf = [job.RELEASE / "railhead-perf", "all_reduce", "-b", SIZES[0], "-e", SIZES[-1], "-f",
            SIZES[1] // SIZES[0], "-n", ITERATIONS, "-w", "2", "--check", "-o", "json"]
    with open(OUT / "railhead.log", "a", encoding="utf-8") as log:
        ranks = [subprocess.Popen(network.inside(node, *perf),
                                  env=job.environment(network, rank, 30), text=True, stderr=log,
                                  stdout=log if rank else subprocess.PIPE)
                 for rank, node in enumerate(job.NODES)]
        text, _ = ranks[0].communicate(timeout=RUN_SECONDS)
        if ranks[0].returncode != 0 or ranks[1].wait(RUN_SECONDS) != 0:
            raise Failure("railhead-perf failed", log=log.name)
    return {row["bytes"]: row["bytes"] / (row["time_us"] * 1e-6)
            for row in json.loads(text)["results"]}


def open_mpi(network, *more):
    """Returns {bytes: bytes per second}; `more` is for mpirun. Starts its daemon on the other node without ssh."""
    agent = OUT / "agent.sh"
    inside = " ".join(network.inside("b", "unshare", "--uts"))
    agent.write_text('#!/bin/sh\nshift\nexec ' + inside + ' sh -c "hostname node-b; $*"\n', "utf-8")
    agent.chmod(0o755)
    argv = ["mpirun.openmpi", "-np", "2", "--map-by", "node",
            "--host", f"{network.address('a')},{network.address('b')}",
            "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
            "--mca", "btl_tcp_if_include", ",".join(network.interfaces()),
            *[word for interface, rate in zip(network.interfaces(), network.megabits)
              for word in ("--mca", f"btl_tcp_bandwidth_{interface}", rate)],
            "--mca", "oob_tcp_if_include", "control", *more, OUT / "openmpi", "fp32", 3, 150,
            *[f"all_reduce:{size}" for size in SIZES]]
    command = "hostname node-a; exec " + " ".join(map(str, argv))
    text = run(network.inside("a", "unshare", "--uts", "sh", "-c", command), seconds=RUN_SECONDS,
               env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
               log=OUT / "openmpi.log").stdout
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")][1:]
    if any(row["wrong"] for row in rows):
        raise Failure("Open MPI sums wrongly", log=OUT / "openmpi.log")
    return {row["bytes"]: row["bytes"] / (row["median_us"] * 1e-6) for row in rows}


def open_mpi_tuned(network):
    """Open MPI with messages only: its default, puts, uses one direction of a rail at a time."""
    return open_mpi(network, "--mca", "btl_tcp_flags", "1")


CANDIDATES = {"raw": raw, "railhead": railhead, "openmpi": open_mpi, "tuned": open_mpi_tuned}


def measure(passes):
    results, others = {rates: {} for rates in RAILS}, []
    neighbours = Neighbours(PATIENCE_SECONDS)
    for number in range(1, passes + 1):
        for rates in RAILS:
            say(f"pass {number} of {passes}: {' + '.join(map(str, rates))} Mbit/s")
            with Network(rates) as network:
                for name, candidate in CANDIDATES.items():
                    neighbours.wait_for_quiet()
                    answer = []
                    others.append(neighbours.share_during(lambda: answer.append(candidate(network))))
                    for key, value in (answer[0].items() if name != "raw" else [(None, answer[0])]):
                        results[rates].setdefault((name, key) if key else name, []).append(value)
            say(f"    MB/s: { {k: [round(x / 1e6, 1) for x in v] for k, v in results[rates].items()} }")
    return results, max(0, sum(others) / len(others))


def fail(failures):
    """Returns events in the form that figures.failure_table takes, and all operations."""
    events = []
    with Network(FAILING_RAILS) as network, \
            job.Job(network, OUT, "failing", OPERATION, timeout=30) as running:
        running.wait_for_operations(20)
        for number in range(failures):
            trouble = list(TROUBLES)[number % len(TROUBLES)]
            rail = random.randrange(len(FAILING_RAILS))
            say(f"failure {number + 1} of {failures}: rail {rail}: {trouble}")
            fault = time.monotonic()
            repair = getattr(network, TROUBLES[trouble])(rail)
            time.sleep(random.uniform(1, 2))
            repair()
            repaired = time.monotonic()
            running.check_alive()
            time.sleep(random.uniform(1.7, 2))
            events.append({"trouble": trouble, "rail": rail, "fault": fault, "repaired": repaired})
        operations = running.finish()
    for event in events:
        event["stall"] = stalls.stall(operations, event["fault"], event["repaired"])
        event["back"] = stalls.used_again(operations, event["rail"], event["repaired"], 64 << 10)
    return events, operations


def main():
    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    failures = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    try:
        build()
        results, others = measure(passes)
        events, operations = fail(failures)
    except Failure as failure:
        say(f"error: {failure}" + (f" (log: {failure.log})" if failure.log else ""))
        return 1
    versions = run(["mpirun.openmpi", "--version"]).stdout.splitlines()[0]
    print(ABOUT.format(
        passes=passes, versions=f"Open MPI is {versions}, with btl tcp on the same interfaces and "
                                "their rates configured: once with its defaults, once with btl_tcp_flags=1",
        noise=f"Other programs took {others:.0%} of the cores during the runs; all that is measured ran with "
              f"priority {PRIORITY}."))
    print(figures.bandwidth_table(results))
    usual = stalls.usual(operations, events[0]["fault"])
    print(ABOUT_FAILURES.format(
        rails=len(FAILING_RAILS), rate=FAILING_RAILS[0], size=OPERATION >> 20,
        operations=len(operations), failures=failures, usual=usual * 1000,
        stall_goal=figures.STALL_GOAL, return_goal=figures.RETURN_GOAL))
    print(figures.failure_table(events))
    return 0


if __name__ == "__main__":
    sys.exit(main())
