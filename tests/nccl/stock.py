#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The stock NCCL of NVIDIA's wheels runs collectives through the network plugin, with emulated GPUs.

usage: stock.py [--all] [--cuts COUNT] [VERSION]... [SCENE]...     default: version 2.30.7, all scenes

With --all: every pinned version; rails are cut in the default version only. Every element is checked. See
stock/README.md.
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nccl" / "stock"), str(ROOT / "tests" / "rails"), str(ROOT / "tests" / "kube")]

from control_plane import free_port  # noqa: E402
from network import NODES, Network, run_tool  # noqa: E402
from railbed.console import Console, Failure, wait_for  # noqa: E402

import wheels  # noqa: E402
from job import ABORTED, CALLS, GPU_MEMORY_PLUGIN, HERE, OTHER_PROFILER, OUT, PLUGIN, Job, TorchJob, build  # noqa: E402

RAILHEAD = ROOT / "build" / "release" / "cli" / "railhead"
RATES = (200, 200)  # Mbit/s
ABORT_SECONDS = 20
CUT_SECONDS = 2
STEPS = 100  # of training
# It does not log these variables, so that its log does not tell what was asked for.
SILENT_CHOICES = {"2.26.5": ("chosen-sockets", "collnet")}
# Its proxy logs the plugin's error and drops the operation, and ncclCommGetAsyncError does not return it.
DROPS_ERRORS = ("2.26.5",)
# Without an interface for environment plugins, and with one that has no log.
WITHOUT_ENVIRONMENT = ("2.26.5",)
WITHOUT_ENVIRONMENT_LOG = ("2.28.9",)
# Without functions that torch 2.15 calls.
WITHOUT_TORCH = ("2.26.5", "2.28.9")
# It does not look for a profiler in the network plugin's file, and does not stop each step.
NAMES_PROFILER = ("2.26.5",)


class Library:
    """A version of NCCL, as scenes use it."""

    def __init__(self, version, path, console, cuts):
        self.version, self.path, self.console, self.cuts = version, path, console, cuts

    def job(self, name, ranks, **chosen):
        self.console.note(name)
        return Job(OUT / self.version / name, self.path, ranks, **chosen)

    def torch(self, name, ranks, network, **chosen):
        self.console.note(name)
        return TorchJob(OUT / self.version / name, self.path, ranks, network, **chosen)


@contextlib.contextmanager
def two_nodes():
    """A Network whose interfaces have their carrier on both nodes, since NCCL ignores those without."""
    with Network(RATES) as network:
        wait_for("the carrier of all interfaces", lambda: not any(
            "NO-CARRIER" in run_tool(*network.inside(node, "ip", "link")) for node in NODES), 30)
        yield network


def own_sockets(nccl):
    """NCCL's own transport: what fails here is wrong in the emulation, not in the plugin."""
    with nccl.job("own-sockets", 3, net="Socket"):
        pass


def collectives(nccl):
    """All calls, among 2, 3 and 8 ranks."""
    for ranks, sizes in ((2, (4, 1000, 4 << 20)), (3, (4, 1000, 1 << 20)), (8, (1000, 1 << 17))):
        with nccl.job(f"ranks-{ranks}", ranks, sizes=sizes):
            pass


def types(nccl):
    for element in ("bf16", "i32"):
        with nccl.job(f"type-{element}", 3, element=element, sizes=(4, 1000, 1 << 18)):
            pass


def protocols(nccl):
    """Rings and trees in each protocol."""
    for algorithm, calls in (("Ring", CALLS), ("Tree", ("allreduce", "avg", "max"))):
        for protocol in ("LL", "LL128", "Simple"):
            with nccl.job(f"{algorithm}-{protocol}", 3, calls=calls, sizes=(4, 1000, 1 << 19), NCCL_ALGO=algorithm,
                          NCCL_PROTO=protocol) as job:
                pass
            used = f"runs all-reduce {algorithm.lower()} {protocol}\n"
            job.expect(used in job.text(0), f"the log has no '{used.strip()}'")


def lines(nccl):
    """Receivers of LL and LL128 read a message while it arrives: a flag must not be visible before its line's data."""
    for protocol in ("LL", "LL128"):
        with nccl.job(f"lines-{protocol}", 3, calls=("broadcast", "allgather", "allreduce"), sizes=(1000, 20_000), rounds=300,
                      NCCL_ALGO="Ring", NCCL_PROTO=protocol):
            pass


def groups(nccl):
    """60 all-reduces, a send and a receive in one group."""
    with nccl.job("groups", 3, calls=("many",), sizes=(240, 60_000, 6_000_000), rounds=5):
        pass


def two_hosts(nccl):
    """Two hosts of two GPUs and two rails, each rail at the PCIe switch of a GPU: P2P inside, both rails between them."""
    with two_nodes() as network:
        with nccl.job("two-hosts", 4, gpus=2, network=network, sizes=(4, 1000, 1 << 19),
                      NCCL_TOPO_FILE=str(HERE / "two_hosts.xml")) as job:
            pass
    for transport in ("P2P/IPC", "NET/Railhead/0", "NET/Railhead/1"):
        job.expect(f"via {transport}" in job.text(), f"no connection via {transport}")


def pxn(nccl):
    """The same hosts with GPUDirect: a GPU sends over the other GPU's rail, by the proxy of the other process (PXN). NCCL
    does so only if the network takes memory of GPUs."""
    with two_nodes() as network:
        with nccl.job("pxn", 4, gpus=2, network=network, sizes=(4, 1000, 60_000, 1 << 19), rounds=3,
                      NCCL_TOPO_FILE=str(HERE / "two_hosts.xml"), NCCL_NET_PLUGIN=str(GPU_MEMORY_PLUGIN),
                      WRAPPED_NET_PLUGIN=str(PLUGIN), EMULATED_GPUDIRECT="1", NCCL_NET_GDR_READ="1") as job:
            pass
    for rank in range(4):
        by_other = re.findall(rf"\[send\] via NET/Railhead/\d\({rank ^ 1}\)/GDRDMA", job.text(rank))
        job.expect(by_other, "no connection by way of the other process", rank)


def logs(nccl):
    """`railhead nccl-log` finds in this NCCL's log what is wrong, and nothing where nothing is."""
    empty = OUT / "libnccl-net-empty.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "-o", empty, "/dev/null"], check=True)
    text = OUT / "libnccl-net-text.so"
    text.write_text("no library")
    no_rdma = {"NCCL_NET_PLUGIN": str(PLUGIN), "RAILHEAD_TRANSPORT": "verbs", "RAILHEAD_FALLBACK": "fail"}
    cases = (
        ("healthy", "Railhead", {}, "NcclLog", "network: Railhead"),
        ("sockets", None, {}, "NcclOverSockets", "no RDMA device"),
        ("chosen-sockets", "Socket", {}, "NcclLog", "network: Socket"),
        ("missing", None, {"NCCL_NET_PLUGIN": "/none/libnccl-net-x.so"}, "NcclPluginNotLoaded", "no such file"),
        ("unreadable", None, {"NCCL_NET_PLUGIN": str(text)}, "NcclPluginNotLoaded", "invalid ELF header|file too short"),
        ("unsupported", None, {"NCCL_NET_PLUGIN": str(empty)}, "NcclPluginUnsupported", "NCCL uses Socket instead"),
        ("no-rdma", None, no_rdma, "NcclPluginFailed", "TCP instead of RDMA.*NCCL uses Socket instead"),
        ("only-ours", "Railhead", no_rdma, "NcclPluginFailed", "TCP instead of RDMA.*NCCL ended"),
        ("only-ib", "IB", {}, "NcclNoNetwork", "only RDMA is allowed"),
        ("no-such-network", "Foo", {}, "NcclNoNetwork", "no network of the name"),
        ("collnet", "Railhead", {"NCCL_COLLNET_ENABLE": "1", "NCCL_COLLNET_NODE_THRESHOLD": "2"}, "SharpNotUsed", "CollNet|SHARP tree"),
    )
    for name, net, env, check, words in cases:
        if name in SILENT_CHOICES.get(nccl.version, ()):
            continue
        with nccl.job(f"log-{name}", 2, net=net, calls=("allreduce",), sizes=(4,), checked=False, **env) as job:
            job.wait_for_end()
        found = json.loads(subprocess.run([RAILHEAD, "nccl-log", "-o", "json", *job.logs], stdout=subprocess.PIPE,
                                          check=False).stdout)
        said = [(finding["check"], finding["observed"]) for finding in found["findings"]]
        job.expect(len(said) == 1 and said[0][0] == check and re.search(words, said[0][1]), f"{name}: {said}")


def killed(nccl):
    """A rank is killed in a collective: the others get NCCL's remote error, and can abort."""
    for ranks in (2, 3):
        with nccl.job(f"killed-{ranks}", ranks, calls=("allreduce",), sizes=(4 << 20,), rounds=None, checked=False) as job:
            job.wait_until(lambda: job.rounds() >= 2, "two rounds")
            job.kill(ranks - 1)
            begin = time.monotonic()
            for rank in range(ranks - 1):
                if nccl.version in DROPS_ERRORS:
                    job.wait_for_text(rank, "-> 6\n", ABORT_SECONDS)
                    continue
                job.wait_for_text(rank, "asynchronous error 6 ", ABORT_SECONDS)
                job.expect_exit(rank, ABORTED, ABORT_SECONDS)
            nccl.console.line(f"    {ranks} ranks: error and abort within {time.monotonic() - begin:.1f} s")


def cut_rails(nccl):
    """Rails are cut and repaired in mid-collective, again and again, also both at once."""
    draw = random.Random(7)
    with two_nodes() as network:
        with nccl.job("cut-rails", 3, calls=("allreduce", "alltoall"), sizes=(1 << 18, 1 << 20), rounds=None,
                      network=network) as job:
            def logged(rail, what):
                return len(re.findall(rf"rail {rail} \(.*: {what}", job.text()))

            def cut(rail):
                """Until the loss is logged; not longer, because connections may still be without this rail."""
                before, end = logged(rail, r"lost \("), time.monotonic() + CUT_SECONDS
                repair = getattr(network, draw.choice(("swallow", "reset", "unplug", "narrow")))(rail)
                job.wait_until(lambda: logged(rail, r"lost \(") > before or time.monotonic() > end, "the loss is logged")
                return repair

            job.wait_until(lambda: job.rounds() >= 2, "two rounds")
            cuts = 0
            while cuts < nccl.cuts:
                nccl.console.note(f"{cuts} cuts")
                rails = draw.sample(range(len(RATES)), draw.choice((1, 1, 2)))
                repairs = [cut(rail) for rail in rails]
                time.sleep(draw.uniform(0, 0.3))
                for repair in repairs:
                    repair()
                rounds = job.rounds()
                job.wait_until(lambda: job.rounds() > rounds, "a round after the repair")
                time.sleep(draw.uniform(0, 1))
                cuts += len(rails)
            job.stop()
            lost, back = ([logged(rail, what) for rail in range(len(RATES))] for what in (r"lost \(", "is back"))
    job.expect(min(lost) > 0 and min(back) > 0, f"losses {lost}, returns {back}")
    nccl.console.line(f"    {cuts} cuts in {job.rounds()} rounds; of connections, by rail: {lost} losses, {back} returns")


def torch_collectives(nccl):
    """torch's `nccl` backend: its calls have the results of gloo, among two and three ranks."""
    if nccl.version in WITHOUT_TORCH:
        return
    for ranks in (2, 3):
        with two_nodes() as network, nccl.torch(f"torch-{ranks}", ranks, network) as job:
            pass
        job.expect(f"NCCL version {nccl.version}+" in job.text(0), f"torch does not use NCCL {nccl.version}")


def torch_dead_rail(nccl):
    """DDP makes 100 steps, while a rail is dead from the start: silently, or without its carrier."""
    if nccl.version in WITHOUT_TORCH:
        return
    for fault, rail in (("swallow", 1), ("unplug", 0)):
        with two_nodes() as network:
            getattr(network, fault)(rail)
            with nccl.torch(f"torch-dead-{fault}", 3, network, steps=STEPS) as job:
                pass
            job.expect(re.search(rf"rail {rail} \(.*: lost \(not connected: ", job.text()), f"rail {rail} is not reported")
            job.expect(not re.search(rf"rail {rail} \(.*: is back", job.text()), f"rail {rail} has come back")


def torch_cut_rail(nccl):
    """In the middle of DDP, a rail is cut and comes back, and then the other one."""
    if nccl.version in WITHOUT_TORCH:
        return
    with two_nodes() as network, nccl.torch("torch-cut", 3, network, steps=STEPS, endless=True) as job:
        def go_on(steps):
            end = job.steps() + steps
            job.wait_until(lambda: job.steps() >= end, f"step {end}")

        def wait_for_log(rail, what, count):
            job.wait_until(lambda: len(re.findall(rf"rail {rail} \(.*: {what}", job.text())) > count, f"rail {rail}: {what}")

        for rail, fault in ((1, "swallow"), (0, "reset"), (1, "unplug")):
            go_on(15)
            lost, back = (len(re.findall(rf"rail {rail} \(.*: {what}", job.text())) for what in (r"lost \(", "is back"))
            repair = getattr(network, fault)(rail)
            wait_for_log(rail, r"lost \(", lost)
            go_on(15)
            repair()
            wait_for_log(rail, "is back", back)
        go_on(15)
        job.stop()
    nccl.console.line(f"    {job.steps()} steps")


def environment(nccl):
    """NCCL_ENV_PLUGIN is the one variable of NCCL's that is set: the plugin answers for the others, from rails.json and
    Railhead's settings. What the user sets stays."""
    if nccl.version in WITHOUT_ENVIRONMENT:
        return
    rails = OUT / "rails.json"
    alone = {"NCCL_ENV_PLUGIN": str(PLUGIN), "NCCL_NET_PLUGIN": None, "NCCL_NET": None, "NCCL_SOCKET_IFNAME": None,
             "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET", "RAILHEAD_RAILS_FILE": str(rails), "RAILHEAD_LOG": "info"}

    def run(name, added, net="Railhead", **env):
        """Runs a job, in which these variables must have been added."""
        with nccl.job(f"environment-{name}", 3, calls=("allreduce", "alltoall"), net=net, **{**alone, **env}) as job:
            pass
        said = r"NCCL environment: info: " if nccl.version in WITHOUT_ENVIRONMENT_LOG else r"ENV/Railhead: "
        for rank in range(3):
            found = dict(re.findall(said + r"(NCCL_\w+)=(.*) \(.*\)$", job.text(rank), re.MULTILINE))
            job.expect(found == added, f"added are {found}, not {added}", rank)
        return job

    def write(numbers):
        rails.write_text(json.dumps({"apiVersion": "railhead.io/v1alpha1", "kind": "PodRails", "node": "n1", "rails": [
            {"rail": rail, "device": f"mlx5_{rail + 4}", "port": 1, "linkLayer": "InfiniBand"} for rail in numbers]}), "ascii")

    network = {"NCCL_NET_PLUGIN": str(PLUGIN), "NCCL_SOCKET_IFNAME": "=lo"}
    write((1, 0))
    run("network", {**network, "NCCL_IB_DISABLE": "1", "NCCL_IB_TC": "106", "NCCL_NET": "Railhead"}, RAILHEAD_TRANSPORT="tcp",
        RAILHEAD_IB_TC="106", RAILHEAD_FALLBACK="fail")
    run("devices", {"NCCL_IB_HCA": "=mlx5_4:1:0,mlx5_5:1:1", "NCCL_SOCKET_IFNAME": "=lo"}, net="Socket", NCCL_NET="Socket")
    job = run("own", {"NCCL_NET_PLUGIN": str(PLUGIN)}, NCCL_SOCKET_IFNAME="lo", NCCL_IB_HCA="mlx5", RAILHEAD_RAILS="0",
              RAILHEAD_RAILS_FILE="/nonexistent/rails.json")
    job.expect("NCCL_SOCKET_IFNAME set by environment to lo\n" in job.text(0), "not the user's interface")
    rails.write_text("{", "ascii")
    job = run("wrong", network)
    # The network says it, too: it uses TCP although the pod was given RDMA rails.
    for who in (r"ENV/Railhead: |NCCL environment: \w+: ", "TCP instead of RDMA: this process: "):
        job.expect(len(re.findall(f"(?:{who}){rails}: ", job.text(0))) == 1, f"not one line about the wrong file: {who}")
    with nccl.job("environment-setting", 3, calls=("allreduce",), RAILHEAD_IB_TC="high", **{
            **alone, "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}, net="Socket") as job:
        pass
    job.expect("RAILHEAD_IB_TC='high' is not allowed" in job.text(0), "no line about the wrong setting")


def tuner(nccl):
    """With a rail lost and with rails of 4:1, the tuner moves NCCL's choices, on all ranks alike; without it, they are
    NCCL's own."""
    def choices(name, network, **env):
        """Returns which kernels a job runs for which sizes, as its first rank logs it."""
        with nccl.job(f"tuner-{name}", 3, calls=("allreduce", "allgather", "reducescatter"), network=network,
                      sizes=(1000, 30_000, 1 << 18, 1 << 20), NCCL_DEBUG_SUBSYS="INIT,NET,TUNING,COLL", **env) as job:
            pass
        used = [set(re.findall(r"runs all-.*", job.text(rank))) for rank in range(3)]
        job.expect(used[0] and used[0] == used[1] == used[2], f"the ranks have run different kernels: {used}")
        tuned = "TUNER/Railhead: costs for" in job.text(0)
        job.expect(tuned == ("RAILHEAD_NCCL_TUNER" in env), f"the tuner is {'loaded' if tuned else 'not loaded'}")
        return {match[:2]: match[2:] for match in re.findall(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)", job.text(0))}

    def compare(name, network, rates):
        own, tuned = choices(f"{name}-own", network), choices(name, network, RAILHEAD_NCCL_TUNER=rates)
        moved = sorted(call for call in own if own[call] != tuned[call])
        nccl.console.line(f"    {name}: {len(moved)} of {len(own)} choices differ: " + ", ".join(
            f"{call[0]} of {call[1]} bytes: {' '.join(own[call])}, tuned {' '.join(tuned[call])}" for call in moved))
        if not moved or any(tuned[call][1] != "SIMPLE" for call in moved):
            raise Failure("the tuner has not moved choices to the protocol with the fewest bytes")

    with two_nodes() as network:
        # NCCL reads 10 Gbit/s of each virtual interface.
        repair = network.unplug(1)
        compare("lost", network, f"{RATES[0] / 1000}/10,0/10")
        repair()
        network.shape(1, RATES[0] // 4)
        compare("unequal", network, f"{RATES[0] / 1000}/10,{RATES[0] / 4000}/10")


def page_of(port):
    """Returns the samples of the metrics page: {(name, labels): value}."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    return {(name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels))): float(value)
            for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.M)}


def total(page, name, **labels):
    return sum(value for (found, of), value in page.items() if found == name and of >= {(k, str(v)) for k, v in labels.items()})


def expected_counts(ranks, sizes, rounds):
    """Returns the operations and bytes that each rank counts, by collective, for the calls that COUNTED names."""
    elements = [size // 4 for size in sizes]
    reduced = [(5, count * 4) for count in elements] + [(60, count // 60 * 4) for count in elements if count >= 60]
    parts = [(1, count * 4 * ranks) for count in elements]
    transfers = [(1 + ranks - 1 + 1, count * 4) for count in elements]  # of a shift, an all-to-all, and a group
    counts = {"all_reduce": reduced, "all_gather": parts, "reduce_scatter": parts,
              "reduce": [(1, count * 4) for count in elements], "send": transfers, "receive": transfers}
    return {name: (rounds * sum(times for times, _ in calls), rounds * sum(times * size for times, size in calls))
            for name, calls in counts.items()}


def counts_of(page, rank, names):
    return {name: tuple(total(page, f"railhead_collective_{what}_total", rank=rank, source="nccl", collective=name)
                        for what in ("operations", "bytes")) for name in names}


def profiler_of(nccl):
    return {"NCCL_PROFILER_PLUGIN": str(PLUGIN)} if nccl.version in NAMES_PROFILER else {}


def profiler(nccl):
    """The profiler counts calls, bytes and steps, over the plugin's network and NCCL's own; it passes events on to another
    profiler; and it names a rank that has stopped."""
    sizes = (4, 1000, 1 << 20)
    for ranks, net, env in ((2, "Railhead", {}), (3, "Railhead", {"RAILHEAD_NCCL_PROFILER": str(OTHER_PROFILER)}),
                            (3, "Socket", {"NCCL_PROFILER_PLUGIN": str(PLUGIN)})):
        env |= profiler_of(nccl)
        port = free_port()
        with nccl.job(f"profiler-{net}-{ranks}", ranks, sizes=sizes, hold=True, net=net,
                      RAILHEAD_METRICS_PORT=str(port), **env) as job:
            job.wait_until(lambda: job.text().count("\nidle\n") == ranks, "the last call")
            want = expected_counts(ranks, sizes, rounds=2)
            # Calls are counted once nothing more comes of them.
            job.wait_until(lambda: all(counts_of(page_of(port), rank, want) == want for rank in range(ranks)),
                           f"each rank counts {want}", 20)
            page = page_of(port)
            job.release()
        for rank in range(ranks):
            for event in ("call", "proxy_op", "proxy_step"):
                started, stopped = (total(page, "railhead_nccl_profiler_events_total", rank=rank, event=event, change=change)
                                    for change in ("start", "stop"))
                lost = event == "proxy_step" and nccl.version in NAMES_PROFILER
                job.expect(started == stopped > 0 or (lost and started > stopped), f"{event}: {started} started, {stopped} stopped",
                           rank)
            timed = total(page, "railhead_collective_duration_seconds_count", rank=rank, collective="all_reduce")
            job.expect(timed == want["all_reduce"][0], f"{timed} durations", rank)
            for direction in ("send", "receive"):
                waits = total(page, "railhead_nccl_wait_seconds_total", rank=rank, direction=direction)
                job.expect(waits > 0, f"no waits of {direction}", rank)
            if "RAILHEAD_NCCL_PROFILER" in env:
                steps = total(page, "railhead_nccl_profiler_events_total", rank=rank, event="proxy_step", change="start")
                job.expect(re.search(rf"other profiler: {int(steps)} steps started, \d+ stopped, all within their parents\n",
                                     job.text(rank)), "the other profiler has not counted the same", rank)
    silent(nccl)


def silent(nccl):
    """A rank stops, and goes on later. Each rank has a page of its own: one that stops might have served that of all."""
    ports = [free_port() for _ in range(3)]
    with nccl.job("profiler-silent", 3, calls=("allreduce",), sizes=(1 << 20,), rounds=None, NCCL_ALGO="Ring",
                  own=lambda rank: {"RAILHEAD_METRICS_PORT": str(ports[rank])}, **profiler_of(nccl)) as job:
        job.wait_until(lambda: job.rounds() >= 2, "two rounds")
        # Rank 0 receives from rank 2 in the ring.
        job.signal(2, signal.SIGSTOP)
        job.wait_until(lambda: total(page_of(ports[0]), "railhead_nccl_silent_peer_seconds", rank=0, peer=2) >= 5,
                       "rank 2 is silent for rank 0", 60)
        job.wait_until(lambda: re.search(r"no data for \d+ s from rank 2 of communicator", job.text(0)), "a line in the log", 20)
        rounds = job.rounds()
        job.signal(2, signal.SIGCONT)
        job.wait_until(lambda: job.rounds() > rounds, "a round")
        job.wait_until(lambda: all(total(page_of(port), "railhead_nccl_silent_peers") == 0 for port in ports),
                       "no rank is silent", 20)
        job.stop()


SCENES = (own_sockets, collectives, types, protocols, lines, groups, two_hosts, pxn, logs, environment, tuner, profiler,
          killed, torch_collectives, torch_dead_rail, torch_cut_rail, cut_rails)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every pinned version")
    parser.add_argument("--cuts", type=int, default=40, help="how often rails are cut (default: 40)")
    parser.add_argument("chosen", nargs="*", metavar="VERSION|SCENE")
    arguments = parser.parse_args()
    versions = [word for word in arguments.chosen if word[:1].isdigit()]
    known = {scene.__name__: scene for scene in SCENES}
    names = [word for word in arguments.chosen if word not in versions]
    if unknown := set(names) - set(known):
        sys.exit(f"stock.py: no scene is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")

    console = Console()
    failed = count = 0
    try:
        for version in versions:
            wheels.check(version)
        with console.step("compile"):
            build()
        for version in versions or (wheels.WHEELS if arguments.all else [wheels.DEFAULT]):
            console.note("download")
            with wheels.library(version) as path:
                for scene in [known[name] for name in names] or SCENES:
                    if scene is cut_rails and arguments.all and version != wheels.DEFAULT and not names:
                        continue
                    count += 1
                    try:
                        with console.step(f"{version} {scene.__name__}"):
                            scene(Library(version, path, console, arguments.cuts))
                    except Failure as failure:
                        console.failed(failure)
                        failed += 1
    except Failure as failure:
        console.failed(failure)
        return 1
    console.plain(f"{count} scenes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
