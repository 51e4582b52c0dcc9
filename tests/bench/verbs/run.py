#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""RDMA rails between two pods on two nodes: Railhead compared with perftest and with Open MPI over UCX.

usage: run.py [PASSES [FAILURES]]     prints Markdown; progress goes to standard error
"""

import random
import re
import sys
import time

import image  # first: it adds the others' folders to the path
import figures
import stalls
from pods import Pods, Probes
from railbed.console import Console, Failure
from stage import ROOT, Stage

OUT = ROOT / "out" / "bench-verbs"
SIZES = tuple(8 << (3 * i) for i in range(5)) + (256 << 10, 1 << 20, 4 << 20, 8 << 20)
LARGE = (4 << 20, 8 << 20)
ROUNDS, ROUND_MS = 3, 300
LATENCY_SECONDS = 4
UNEQUAL = 4              # rail 1 is faster than rail 0 by this factor
OPERATION = 64 << 10     # bytes of the all-reduces during failures

ABOUT = """\
All-reduces (fp32, sum) between two pods on two nodes of the [testbed](../tests/testbed/README.md): QEMU
machines{kvm}, with {rails} RoCE rails of rdma_rxe each, every rail shaped to {rate}. perftest runs on the same
rails in the same pass. Open MPI uses UCX (rc_verbs) on the same devices, configured to use both for messages of
every size. Medians of {passes} passes; sums are checked. Between two ranks as many bytes go each way as
are reduced, so bytes / time is what the rails carry.
"""

ABOUT_UNEQUAL = """
## Unequal rails

Rail 0 is {times} times as fast as rail 1. ib_write_bw runs on both at once.
"""

ABOUT_FAILURES = """
## Rails that fail

All-reduces of {size} KiB one after the other, every sum checked on both ranks ({operations} of them, none
wrong, no rank restarted). {count} times each, at a random moment, a rail fails for two to three seconds.
Unplugged at one node's side of the switch, neither node sees that its link is gone: the NIC needs
{timeout:.2f} s to stop retrying. With its port down, the NIC of one node reports that at once. *Stall* is by how much
the slowest all-reduce during a fault exceeds the usual one on the rails that are left ({usual:.0f} ms on all of them).
*Used again* is the time from the repair until the rail has carried data.
"""


def write_latency(stage):
    """Returns the microseconds from a write to its arrival on the faster rail: the mean over some seconds."""
    means = []
    for rail in range(stage.cluster.rails):
        options = f"-d rxe{rail} -p 18525 --size=8 --gid-index=1 --duration={LATENCY_SECONDS}"
        stage.cluster.on_node(1, f"ib_write_lat {options} > /tmp/lat 2>&1 &")
        time.sleep(2)
        text = stage.cluster.on_node(2, f"ib_write_lat {options} 10.0.9.1 2>&1")[1]
        found = re.search(r"^\s*8\s+(\d+)\s+([\d.]+)", text, re.M)
        if not found:
            raise Failure(f"ib_write_lat gave no result: {text.strip()[-300:]}")
        means.append(float(found[2]))
    return min(means)


def all_reduces(sizes):
    return [f"all_reduce:{size}" for size in sizes]


def bandwidths(stage, pods, passes):
    """Returns (line rates, latencies, {name: {bytes: [median microseconds of each pass]}})."""
    rates, latencies, times = [], [], {"railhead": {}, "openmpi": {}}
    arguments = ["fp32", ROUNDS, ROUND_MS, *all_reduces(SIZES)]
    for number in range(1, passes + 1):
        with stage.console.step(f"pass {number} of {passes}: ib_write_bw, ib_write_lat"):
            rates.append(sum(stage.write_bandwidth()))
            latencies.append(write_latency(stage))
        for name, loop in (("railhead", pods.loop_of_railhead), ("openmpi", pods.loop_of_open_mpi)):
            with stage.console.step(f"pass {number} of {passes}: {name}"):
                for row in loop(arguments)[1:]:
                    times[name].setdefault(row["bytes"], []).append(row["median_us"])
    return rates, latencies, times


def unequal(stage, pods, passes):
    """Returns (line rates, {bytes: [microseconds]}) with rail 1 slower than rail 0."""
    rates, times = [], {}
    fast = stage.cluster.rate
    slow = re.sub(r"\d+", lambda n: str(int(n[0]) // UNEQUAL), fast)
    stage.cluster.network.shape(1, slow)
    try:
        for number in range(1, passes + 1):
            with stage.console.step(f"pass {number} of {passes}: unequal rails, {fast} and {slow}"):
                rates.append(sum(stage.write_bandwidth()))
                for row in pods.loop_of_railhead(
                        ["fp32", ROUNDS, ROUND_MS, *all_reduces(LARGE)])[1:]:
                    times.setdefault(row["bytes"], []).append(row["median_us"])
    finally:
        stage.cluster.network.shape(1, fast)
    return rates, times


def unplug(stage, node, rail, state):
    """Unplugs a rail on the host's side."""
    stage.cluster.network.set_wire(node, rail, state)


def switch_port(stage, node, rail, state):
    """Switches a port on the node itself."""
    stage.cluster.on_node(node, f"ip link set $(cat /sys/class/infiniband/rxe{rail}/parent) {state}")


def failures(stage, pods, count, switch):
    """Takes rails down and up with `switch` at random times. Returns events in the form that figures.failures_table
    takes, and all operations."""
    events = []
    with Probes(pods, OUT, 9 * count + 10, OPERATION) as probes:
        while probes.count() < 20:
            probes.check_alive()
            time.sleep(0.1)
        for number in range(1, count + 1):
            node, rail = random.choice((1, 2)), random.randrange(stage.cluster.rails)
            what = switch.__name__.replace("_", " ")
            with stage.console.step(f"failure {number} of {count}: {what}, rail {rail} at node {node}"):
                time.sleep(random.uniform(0, 0.5))
                fault = time.monotonic()
                switch(stage, node, rail, "down")
                time.sleep(random.uniform(2, 3))
                switch(stage, node, rail, "up")
                repaired = time.monotonic()
                probes.check_alive()
                time.sleep(random.uniform(3, 4))
                events.append({"rail": rail, "fault": fault, "repaired": repaired})
        operations = probes.finish()
    for event in events:
        event["stall"] = stalls.stall(operations, event["fault"], event["repaired"])
        event["back"] = stalls.used_again(operations, event["rail"], event["repaired"], figures.ENOUGH)
    return events, operations


def main():
    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    console = Console(sys.stderr)
    stage = Stage(console, OUT / "cluster")
    try:
        stage.up(lambda: [image.make(OUT)])
        stage.install()
        pods = Pods(stage, OUT)
        equal = bandwidths(stage, pods, passes)
        slower = unequal(stage, pods, passes)
        unplugged, operations = failures(stage, pods, count, unplug)
        switched, more = failures(stage, pods, count, switch_port)
    except Failure as failure:
        console.failed(failure)
        return 1
    finally:
        stage.down()
    print(ABOUT.format(passes=passes, rails=stage.cluster.rails, rate=stage.cluster.rate,
                       kvm="" if stage.cluster.kvm else ", their CPUs emulated"))
    print(figures.equal_table(*equal))
    print(ABOUT_UNEQUAL.format(times=UNEQUAL))
    print(figures.unequal_table(*slower))
    print(ABOUT_FAILURES.format(
        count=count, size=OPERATION >> 10, operations=len(operations) + len(more),
        usual=stalls.usual(operations, unplugged[0]["fault"]) * 1000, timeout=figures.QP_TIMEOUT))
    print(figures.failures_table(unplugged, switched))
    return 0


if __name__ == "__main__":
    sys.exit(main())
