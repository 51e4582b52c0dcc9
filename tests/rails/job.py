# SPDX-License-Identifier: Apache-2.0
"""A job of two ranks, one on each node of a Network, that runs all-reduces and checks the results."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402
from railbed.process import end, run  # noqa: E402

RELEASE = ROOT / "build" / "release" / "runtime"
NODES = ("a", "b")


def build(out):
    """Compiles the programs of ranks; the library must be built."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("probe", "commanded"):
        run(["cc", "-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror",
             f"-I{ROOT / 'runtime' / 'include'}", pathlib.Path(__file__).parent / f"{name}.c",
             "-o", out / name, f"-L{RELEASE}", f"-Wl,-rpath,{RELEASE}", "-lrailhead"])


# Seconds until something must have happened: longer than a machine with ten times its load takes.
PATIENCE = 240


def environment(network, rank, timeout, more=None, ranks=len(NODES)):
    return os.environ | {
        "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": network.address("a"),
        "RAILHEAD_TRANSPORT": "tcp", "RAILHEAD_SOCKET_IFNAME": ",".join(network.interfaces()),
        "RAILHEAD_TIMEOUT_SECONDS": str(timeout), "RAILHEAD_START_TIMEOUT_SECONDS": "60",
        "RAILHEAD_METRICS_PORT": "9402", "RAILHEAD_RAILS_FILE": "/nonexistent/rails.json"} | (more or {})


@dataclasses.dataclass(frozen=True)
class Operation:
    begin: float  # time.monotonic()
    end: float
    sent: tuple   # bytes sent so far, for each rail


class Ranks:
    """Processes of a job, a rank on each of `nodes`, from __init__ until their end, without a time limit."""

    def __init__(self, network, out, name, argv, timeout=120, more=None, stdin=subprocess.DEVNULL, nodes=NODES):
        self._network = network
        self._nodes = nodes
        self._outputs = [out / f"{name}-{rank}.txt" for rank in range(len(nodes))]
        self.logs = [out / f"{name}-{rank}.log" for rank in range(len(nodes))]
        self._children = []
        for rank, node in enumerate(nodes):
            with open(self._outputs[rank], "w", encoding="utf-8") as stdout, \
                    open(self.logs[rank], "w", encoding="utf-8") as stderr:
                self._children.append(subprocess.Popen(
                    network.inside(node, out / argv[0], *argv[1:]),
                    env=environment(network, rank, timeout, more, len(nodes)),
                    stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self._children:
            os.killpg(child.pid, signal.SIGCONT) if child.poll() is None else None
            end(child.pid)

    def lines(self, rank):
        """Returns the lines that the rank has printed so far."""
        text = self._outputs[rank].read_text("utf-8")
        return text[:text.rfind("\n") + 1].splitlines()

    def check_alive(self):
        for child, log in zip(self._children, self.logs):
            if child.poll() not in (None, 0, -signal.SIGKILL):
                raise Failure(f"a rank has failed ({child.returncode}): {log.read_text('utf-8').strip()}",
                              log=log)

    def signal(self, rank, number):
        os.killpg(self._children[rank].pid, number)

    def process(self, rank):
        return self._children[rank].pid

    def page(self, rank=0):
        """Returns the lines of this rank's metrics page."""
        fetch = ("import urllib.request; print(urllib.request.urlopen("
                 "'http://127.0.0.1:9402/metrics', timeout=60).read().decode())")
        deadline = time.monotonic() + PATIENCE
        # The rank ends connections of clients that do not ask within seconds, as on a busy machine.
        command = self._network.inside(self._nodes[rank], sys.executable, "-c", fetch)
        while (done := run(command, check=False)).returncode != 0:
            self.check_alive()
            if time.monotonic() > deadline:
                raise Failure(f"rank {rank}'s metrics page: {done.stderr.strip()[-300:]}", log=self.logs[rank])
            time.sleep(0.1)
        return done.stdout.splitlines()

    def metric(self, name, rail, rank=0):
        """Returns a rail's value in this rank's metrics."""
        for line in self.page(rank):
            if line.startswith(f"{name}{{") and f'rail="{rail}"' in line:
                return float(line.rsplit(" ", 1)[1])
        raise Failure(f"no {name} of rail {rail} on rank {rank}'s metrics page")

    def await_end(self, seconds=PATIENCE):
        """Waits until both ranks exit successfully."""
        deadline = time.monotonic() + seconds
        for child in self._children:
            try:
                child.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failure("the job does not end", log=self.logs[0]) from None
        self.check_alive()

    def fail(self, seconds=PATIENCE):
        """Waits until both ranks fail, and returns their messages."""
        for child in self._children:
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Failure("a rank goes on where it should fail", log=self.logs[0]) from None
            if code == 0:
                raise Failure("a rank ended well where it should have failed", log=self.logs[0])
        return [log.read_text("utf-8") for log in self.logs]


class Job(Ranks):
    """Probes of all-reduces."""

    def __init__(self, network, out, name, size, timeout=120, more=None, nodes=NODES):
        super().__init__(network, out, name, ("probe", size), timeout, more, nodes=nodes)

    def operations(self, rank=0):
        """Returns the operations done so far."""
        done = []
        for line in self.lines(rank):
            begin, finished, *sent = line.split()
            done.append(Operation(float(begin), float(finished), tuple(map(int, sent))))
        return done

    def wait_for_operations(self, count, seconds=PATIENCE):
        """Waits until `count` more operations are done."""
        want = len(self.operations()) + count
        deadline = time.monotonic() + seconds
        while len(self.operations()) < want:
            self.check_alive()
            if time.monotonic() > deadline:
                raise Failure(f"not {count} all-reduces in {seconds} s", log=self.logs[0])
            time.sleep(0.02)

    def finish(self):
        """Ends the job, and waits until both ranks exit successfully."""
        self.check_alive()
        self.signal(0, signal.SIGTERM)
        self.await_end()
        return self.operations()


class Preflight(Ranks):
    """The pre-flight check of two ranks."""

    def __init__(self, network, out, name):
        super().__init__(network, out, name, (RELEASE / "railhead-perf", "--preflight"))

    def report(self, seconds=PATIENCE):
        """Waits until the check has ended, whatever it finds; returns rank 0's output."""
        for child in self._children:
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Failure("the check does not end", log=self.logs[0]) from None
        return "\n".join(self.lines(0))


class Commanded(Ranks):
    """Ranks that do what they are told (commanded.c). With `joins`, arguments of a rank that others let in later, none
    is ready when this returns."""

    def __init__(self, network, out, name, timeout=120, more=None, nodes=NODES, joins=()):
        super().__init__(network, out, name, ("commanded", *map(str, joins)), timeout, more, stdin=subprocess.PIPE,
                         nodes=nodes)
        self._wanted = [1] * len(nodes)  # lines of each rank: the first says that it is ready
        self._killed = set()
        for rank in self.ranks() if not joins else ():
            self.wait(rank)

    def ranks(self):
        return [rank for rank in range(len(self._nodes)) if rank not in self._killed]

    def kill(self, rank):
        self._killed.add(rank)
        self.signal(rank, signal.SIGKILL)

    def tell(self, rank, *commands):
        self._wanted[rank] += len(commands)
        pipe = self._children[rank].stdin
        pipe.write("".join(f"{command}\n" for command in commands).encode())
        pipe.flush()

    def all(self, *commands):
        """Tells all ranks that live, and waits until they have done all. Returns the longest that the last one took."""
        for rank in self.ranks():
            self.tell(rank, *commands)
        return max(self.wait(rank) for rank in self.ranks())

    def left(self, rank):
        """Returns how many commands the rank has not done yet."""
        return self._wanted[rank] - len(self.lines(rank))

    def wait(self, rank, left=0, seconds=PATIENCE):
        """Waits until at most `left` of its commands are not done; returns the seconds that the last one took."""
        deadline = time.monotonic() + seconds
        while self.left(rank) > left:
            self.check_alive()
            if time.monotonic() > deadline:
                raise Failure(f"rank {rank} has not done what it was told within {seconds} s; it did: "
                              f"{'; '.join(self.lines(rank)[-3:])}", log=self.logs[rank])
            time.sleep(0.02)
        return float(self.lines(rank)[-1].rsplit(": ", 1)[1])

    def failure(self, rank):
        """Waits until the call of the rank's last command has failed; returns when (time.monotonic()), and the error."""
        failed = self.wait(rank)
        if not self.lines(rank)[-1].rsplit(": ", 1)[0].endswith(" failed"):
            raise Failure(f"rank {rank}'s call ended well where it should have failed", log=self.logs[rank])
        return failed, self.logs[rank].read_text("utf-8")

    def finish(self):
        for child in self._children:
            child.stdin.close()
        self.await_end()
