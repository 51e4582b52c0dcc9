# SPDX-License-Identifier: Apache-2.0
"""Scenes of ranks that stand still, and of transfers whose connection cannot be made: RAILHEAD_TIMEOUT_SECONDS ends the
calls of all ranks. They print how long that took, relative to the timeout: at most 1.2 on a quiet machine. They fail
only at LIMIT, since others may use this machine at the same time."""

import contextlib
import os
import pathlib
import resource
import signal
import time

from job import Commanded
from network import Network
from railbed.console import Failure

TIMEOUT = 5  # seconds
LIMIT = 2.2


def expect(condition, what, job):
    if not condition:
        raise Failure(what, log=job.logs[0])


def check_failures(job, ranks, since, names, timeout=TIMEOUT, limit=LIMIT):
    """Waits until the calls of these ranks have failed, and checks when, and that their errors have all `names`."""
    ratios = []
    for rank in ranks:
        failed, text = job.failure(rank)
        ratios.append((failed - since) / timeout)
        for name in names:
            expect(name in text, f"rank {rank}'s error does not say '{name}': {text}", job)
    print(f"    failed after {min(ratios):.2f} to {max(ratios):.2f} x the timeout of {timeout} s")
    expect(max(ratios) <= limit, f"a rank failed only after {max(ratios):.2f} x the timeout", job)


def nodes(world):
    return ("a", "b") * (world // 2) + ("a",) * (world % 2)


def start(network, out, name, transport, world, timeout=TIMEOUT):
    return Commanded(network, out, name, timeout=timeout, more={"RAILHEAD_TRANSPORT": transport},
                     nodes=nodes(world) if transport == "tcp" else ("a",) * world)


@contextlib.contextmanager
def stopped(job, ranks):
    for rank in ranks:
        job.signal(rank, signal.SIGSTOP)
    yield
    for rank in ranks:
        job.signal(rank, signal.SIGCONT)


@contextlib.contextmanager
def frozen(job, ranks):
    """Freezes the processes by a cgroup, as `docker pause` does."""
    root = pathlib.Path("/sys/fs/cgroup")
    first = root / "freezer" if (root / "freezer").exists() else root
    cgroup = first / f"railhead-{os.getpid()}"
    cgroup.mkdir()
    file, on, off = (("freezer.state", "FROZEN", "THAWED") if first != root else ("cgroup.freeze", "1", "0"))
    try:
        for rank in ranks:
            (cgroup / "cgroup.procs").write_text(str(job.process(rank)))
        (cgroup / file).write_text(on)
        yield
    finally:
        (cgroup / file).write_text(off)
        for rank in ranks:
            (first / "cgroup.procs").write_text(str(job.process(rank)))
        cgroup.rmdir()


# World, and the ranks that stand still: rank 0 is the root of the tree, whose children are 1 to 4; 5 to 8 are below 1.
STILL = {3: ((1,), (0,), (1, 2)), 9: ((0,), (1,), (2, 7), (0, 1)), 17: ((0,), (1, 5), (0, 16), (2, 3, 4, 13))}


# Some of them, for `make test`.
FEW = {3: ((0,),), 9: ((1, 7),)}


def still(out, transport, how, worlds):
    def scene():
        for world, cases in worlds.items():
            for ranks in cases:
                with Network((200,)) as network, start(network, out, f"still-{transport}", transport, world) as job:
                    print(f"    ranks {', '.join(map(str, ranks))} of {world}:")
                    # The others wait for a moment first, so all have answered a query just before.
                    job.tell(ranks[-1], f"compute {500 * TIMEOUT}")
                    for rank in job.ranks():
                        job.tell(rank, "all_reduce 0 100000", "until_failure 0 100000")
                    for rank in job.ranks():
                        job.wait(rank, left=1)
                    time.sleep(0.1)
                    since = time.monotonic()
                    with how(job, ranks):
                        check_failures(job, [rank for rank in job.ranks() if rank not in ranks], since, ["not answer"])
                    for rank in ranks:
                        job.failure(rank)
                    job.finish()
    scene.__doc__ = f"Ranks in an all-reduce ({transport}) are {how.__name__}: the calls of all others fail in time."
    return scene


def late(out):
    """A rank that computes for three timeouts is waited for; when it is stopped there, the others fail in time."""
    with Network((200,)) as network, start(network, out, "late", "tcp", 3) as job:
        for rank in (0, 2):
            job.tell(rank, "all_reduce 0 100000")
        job.tell(1, f"compute {3000 * TIMEOUT}", "all_reduce 0 100000")
        for rank in job.ranks():
            job.wait(rank)
        for rank in (0, 2):
            job.tell(rank, "until_failure 0 100000")
        job.tell(1, f"compute {60000 * TIMEOUT}")
        time.sleep(1.6 * TIMEOUT)
        since = time.monotonic()
        with stopped(job, [1]):
            check_failures(job, (0, 2), since, ["rank 1", "does not answer"])
        job.kill(1)
        job.finish()


def killed(out):
    """A killed rank, the root or another one, ends the calls of the others within seconds."""
    for rank in (0, 5):
        with Network((200,)) as network, start(network, out, "killed", "tcp", 9) as job:
            for other in job.ranks():
                job.tell(other, "until_failure 0 100000")
            time.sleep(1)
            since = time.monotonic()
            job.kill(rank)
            check_failures(job, job.ranks(), since, [f"rank {rank}"])
            job.finish()


def unreachable(out, rails):
    def scene():
        with Network((200,) * rails) as network, Commanded(network, out, f"unreachable-{rails}", timeout=6) as job:
            repair = network.swallow(0)
            since = time.monotonic()
            job.tell(1, "ireceive 0 100 0")
            job.tell(0, "isend 0 100 1")
            if rails > 1:
                job.all()
                expect("failed" not in job.lines(1)[-1], "the transfer failed although a rail is healthy", job)
                job.all("barrier 0")
            else:
                check_failures(job, (0, 1), since, ["rank 0", "rank 1", "not connected", "does not answer"], timeout=6)
            repair()
            job.finish()
    scene.__doc__ = ("The only rail is cut before the first transfer: both ranks fail in time, with the cause."
                     if rails == 1 else "One of two rails is cut before the first transfer: it takes the other one.")
    return scene


def large_unreachable(out):
    """The same for large messages, which both ranks wait for, and for a receive from any rank."""
    for receive in ("ireceive 0 1000000 0", "ireceive 0 1000000 -1"):
        with Network((200,)) as network, Commanded(network, out, "unreachable-large", timeout=6) as job:
            network.swallow(0)
            since = time.monotonic()
            job.tell(1, receive)
            job.tell(0, "isend 0 1000000 1")
            check_failures(job, (0, 1), since, ["rank 1", "not connected"], timeout=6)
            job.finish()


def cut(out):
    """All rails are cut in an all-reduce of ranks that live: all calls fail in time."""
    with Network((200,)) as network, start(network, out, "cut", "tcp", 4, timeout=10) as job:
        for rank in job.ranks():
            job.tell(rank, "until_failure 0 100000")
        time.sleep(1)
        since = time.monotonic()
        network.swallow(0)
        check_failures(job, job.ranks(), since, ["nothing has moved for 10s"], timeout=10, limit=1.7)
        job.finish()


def one_sided(out):
    """A transfer whose other side comes after three timeouts is waited for, though its rail is cut meanwhile."""
    for early, late_one in (("isend 0 1000000 1", "ireceive 0 1000000 0"),
                            ("ireceive 0 1000000 1", "isend 0 1000000 0")):
        with Network((200,)) as network, Commanded(network, out, "one-sided", timeout=TIMEOUT) as job:
            repair = network.swallow(0)
            job.tell(0, early)
            time.sleep(3 * TIMEOUT)
            repair()
            expect(job.left(0) == 1, "it did not wait for its peer", job)
            job.tell(1, late_one)
            job.all("barrier 0")
            expect(not any("failed" in line for rank in (0, 1) for line in job.lines(rank)), "a transfer failed", job)
            job.finish()


def no_descriptors(out):
    """A rank that may open no file connects to no peer: both fail in time, with the cause."""
    with Network((200,)) as network, Commanded(network, out, "no-descriptors", timeout=6, nodes=("a", "b", "b")) as job:
        job.tell(2, "ireceive 0 100 0")
        job.tell(0, "isend 0 100 2")
        for rank in (0, 2):
            job.wait(rank)
        time.sleep(1)
        process = job.process(0)
        used = len(list(pathlib.Path(f"/proc/{process}/fd").iterdir()))
        limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (3, limits[1]))
        print(f"    rank 0 has {used} descriptors")
        since = time.monotonic()
        job.tell(1, "ireceive 0 1000000 0")
        job.tell(0, "isend 0 1000000 1")
        check_failures(job, (0, 1), since, ["Too many open files"], timeout=6)
        resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
        job.kill(2)
        job.finish()


def _of(scene, out):
    def play():
        scene(out)
    play.__doc__ = scene.__doc__
    return play


def scenes(out):
    return {
        "stopped-tcp": still(out, "tcp", stopped, FEW),
        "killed": _of(killed, out),
        "unreachable": unreachable(out, 1),
        "no-descriptors": _of(no_descriptors, out),
    }


def slow_scenes(out):
    return {
        "all-stopped-tcp": still(out, "tcp", stopped, STILL),
        "all-stopped-shm": still(out, "shm", stopped, STILL),
        "all-frozen-tcp": still(out, "tcp", frozen, STILL),
        "late": _of(late, out),
        "unreachable-one-of-two": unreachable(out, 2),
        "unreachable-large": _of(large_unreachable, out),
        "cut": _of(cut, out),
        "one-sided": _of(one_sided, out),
    }
