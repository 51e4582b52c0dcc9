# SPDX-License-Identifier: Apache-2.0
"""Plays programs: starts their ranks, makes their faults, and ends what does not end."""

import mmap
import os
import pathlib
import queue
import shutil
import signal
import struct
import subprocess
import threading
import time

from . import judge
from .commands import commands, tables
from .fabric import Fabrics
from .legal import orders
from .plan import FOR_GOOD, dying

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYERS = ROOT / "build" / "release" / "tests" / "rails"
# Seconds for a program without faults: the longest that a machine with ten times its load takes.
PATIENCE = 100
GRACE = 2  # seconds for the errors of other ranks, after an error where none may be
PORTS = range(20000, 30000)


class Starter:
    """A process that starts ranks (player/starter.h): processes, or threads. Any thread."""

    def __init__(self, out, player):
        self._log = open(out / f"{player}.log", "w", encoding="utf-8")
        self._child = subprocess.Popen([PLAYERS / player], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=self._log, text=True, bufsize=1, start_new_session=True)
        self._lock = threading.Lock()
        self._waiting = {}
        self._known = set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._child.stdout:
            word, key, *rest = line.split()
            with self._lock:
                events = self._waiting.get(key.split("/")[0])
            if events is not None:
                events.put((word, int(key.split("/")[1]), int(rest[0]) if rest else None))
        with self._lock:
            for events in self._waiting.values():
                events.put(("gone", None, None))

    def listen(self, program):
        """Returns the queue of the events of a program's ranks: (word, rank, number)."""
        with self._lock:
            return self._waiting.setdefault(program, queue.Queue())

    def forget(self, program):
        with self._lock:
            del self._waiting[program]

    def _tell(self, *fields):
        self._child.stdin.write("\t".join(map(str, fields)) + "\n")
        self._child.stdin.flush()

    def start(self, program, wanted_tables, ranks):
        """Starts ranks: (rank, ranks, namespace, folder, environment) each."""
        with self._lock:
            for table in wanted_tables:
                if table not in self._known:
                    self._known.add(table)
                    self._tell("table", *table)
            for rank, count, namespace, folder, environment in ranks:
                self._tell("start", f"{program}/{rank}", namespace, folder, rank, count,
                           *(f"{name}={value}" for name, value in environment.items()))

    def close(self):
        self._child.stdin.close()
        self._child.wait()
        self._log.close()


class Starters:
    """The processes that start ranks, each when it is needed."""

    def __init__(self, out):
        self._out = out
        self._made = {}
        self._lock = threading.Lock()

    def get(self, transport):
        player = "railhead_player_threads" if transport == "verbs" else "railhead_player"
        with self._lock:
            if player not in self._made:
                self._made[player] = Starter(self._out, player)
            return self._made[player]

    def close(self):
        for starter in self._made.values():
            starter.close()


class _Faults:
    """The faults of a program's rails, each at its time."""

    def __init__(self, plan, fabric, lines):
        self._fabric = fabric
        self._waiting = []
        self._now = []  # (when it ends, what ends it)
        if plan.world.transport != "verbs":
            self._waiting = [[_line_of(fault, lines), None, fault] for fault in plan.faults]

    def next(self):
        """Returns whether there is something to wait for."""
        return bool(self._waiting or self._now)

    def turn(self, progress):
        now = time.monotonic()
        for entry in list(self._waiting):
            at, due, fault = entry
            if due is None and progress[fault["rank"]] >= at:
                entry[1] = due = now + fault["after"]
            if due is not None and due <= now:
                self._waiting.remove(entry)
                repair = self._fabric.fault(fault["what"], fault["pod"], fault["rail"])
                self._now.append((now + fault["seconds"] if fault["seconds"] >= 0 else float("inf"), repair))
        for entry in list(self._now):
            if entry[0] <= now:
                self._now.remove(entry)
                entry[1]()

    def end(self):
        for _, repair in self._now:
            repair()


def _line_of(fault, lines):
    """Returns the line at which the fault's rank comes to its step, or the end of its lines."""
    own = lines[fault["rank"]]
    return next((at for at, line in enumerate(own)
                 if (number := _step_of(line)) is not None and number >= fault["step"]), len(own))


def _step_of(line):
    if line.startswith("expect "):
        return None
    for word in line.split(" "):
        if word.startswith("step="):
            return int(word[5:])
    return None


class Lane:
    """Plays programs one after the other; several lanes play side by side."""

    def __init__(self, starters, out, name):
        self._starters = starters
        self._out = pathlib.Path(out)
        self._name = name
        self._fabrics = Fabrics(name)
        self._port = PORTS.start

    def close(self):
        self._fabrics.close()

    def play(self, plan):
        """Returns what is wrong with what the program did, and the folder with its files."""
        name = f"{self._name}-{plan.seed}"
        folder = self._out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        lines = commands(plan)
        for rank, its in lines.items():
            (folder / f"rank-{rank}.txt").write_text("\n".join(its) + "\n", "utf-8")
        (folder / "plan.json").write_text(plan.to_json(), "utf-8")
        count = plan.world.ranks()
        (folder / "progress").write_bytes(struct.pack("i", -1) * count)
        fabric = self._fabrics.get(plan.world.subnets, plan.world.megabits)
        starter = self._starters.get(plan.world.transport)
        run = _Run(plan, folder, lines, fabric, starter.listen(name))
        if plan.world.transport == "verbs":
            faults = (f"what={fault['what']} rank={fault['pod']} rail={fault['rail']} at={_line_of(fault, lines)} "
                      f"of={fault['rank']} after={fault['after']} seconds={fault['seconds']}\n" for fault in plan.faults)
            (folder / "faults.txt").write_text("".join(faults), "utf-8")
            processes = [(0, count, fabric.namespace(0), folder, {"RAILHEAD_PLAYER_RAILS": plan.world.rails})]
        else:
            processes = [(rank, count, fabric.namespace(plan.world.pods[rank]), folder,
                          self._environment(plan, rank, fabric)) for rank in range(count)]
        try:
            starter.start(name, tables(plan), processes)
            run.play()
        finally:
            run.end()
            starter.forget(name)
        return judge.findings(plan, run.ranks()), folder

    def _environment(self, plan, rank, fabric):
        world = plan.world
        first = next(step["ranks"] for step in plan.steps if step["do"] == "init")
        if rank == 0:
            self._port = self._port + 1 if self._port + 1 in PORTS else PORTS.start
        environment = {"MASTER_PORT": self._port, "MASTER_ADDR": fabric.address(world.pods[first[0]]),
                       "WORLD_SIZE": len(first), "RANK": first.index(rank) if rank in first else 0,
                       "RAILHEAD_POD": f"pod{world.pods[rank]}", "RAILHEAD_NODE": f"node{world.pods[rank]}",
                       "RAILHEAD_RAILS_FILE": "/nonexistent/rails.json"} | world.environment
        if world.transport != "shm":
            environment["RAILHEAD_SOCKET_IFNAME"] = ",".join(f"rail{rail}" for rail in range(world.rails))
        if environment.get("RAILHEAD_AUTH") in ("frames", "encrypt", "require"):
            secret = self._out / "secret"
            if not secret.exists():
                secret.write_text("a secret of ranks on this machine")
                secret.chmod(0o600)
            environment["RAILHEAD_SECRET_FILE"] = str(secret)
        return environment


class _Run:
    """One program while it runs."""

    def __init__(self, plan, folder, lines, fabric, events):
        self._plan = plan
        self._folder = folder
        self._lines = lines
        self._events = events
        self._faults = _Faults(plan, fabric, lines)
        self._pids = {}
        self._status = {}
        self._stopped = {}  # rank: when it goes on
        self._victims = dying(plan)
        self._stops = {rank: [step["seconds"] for step in steps if step["do"] == "alarm"]
                       for rank, steps in orders(plan).items()}
        with open(folder / "progress", "r+b") as file:
            self._progress = memoryview(mmap.mmap(file.fileno(), 0)).cast("i")
        self._limit = PATIENCE + 8 * sum(step["seconds"] == FOR_GOOD for step in self._victims.values()) \
            * plan.world.timeout()

    def play(self):
        deadline = time.monotonic() + self._limit
        bad_since = None
        looked = 0.0
        while len(self._status) < self._plan.world.ranks():
            busy = self._faults.next() or self._stopped
            try:
                self._take(self._events.get(timeout=0.004 if busy else 0.25))
            except queue.Empty:
                pass
            now = time.monotonic()
            self._faults.turn(self._progress)
            self._wake(now)
            if now - looked > 0.5:
                looked = now
                if bad_since is None and self._is_bad():
                    bad_since = now
            if now > deadline or (bad_since is not None and now > bad_since + GRACE):
                return

    def _take(self, event):
        word, rank, number = event
        if word == "started":
            self._pids[rank] = number
        elif word == "ended":
            ended = range(self._plan.world.ranks()) if self._plan.world.transport == "verbs" else (rank,)
            self._status.update(dict.fromkeys(ended, os.waitstatus_to_exitcode(number)))
        elif word == "stopped":
            seconds = self._stops[rank].pop(0)
            self._stopped[rank] = float("inf") if seconds == FOR_GOOD else time.monotonic() + seconds
        elif word == "gone":
            raise RuntimeError("the player has ended")

    def _wake(self, now):
        if not self._stopped:
            return
        # What has been stopped for good goes on when the others have gone on without it.
        gone_on = all(rank in self._status or rank in self._victims or self._is_behind_shrinks(rank)
                      for rank in range(self._plan.world.ranks()))
        for rank, when in list(self._stopped.items()):
            if when <= now or (when == float("inf") and gone_on):
                del self._stopped[rank]
                os.kill(self._pids[rank], signal.SIGCONT)

    def _is_behind_shrinks(self, rank):
        return not any(line.startswith("shrink ") for line in self._lines[rank][self._progress[rank]:])

    def _is_bad(self):
        """Whether a rank has reported what may not be."""
        return any(judge.is_wrong(self._plan, rank, line)
                   for rank in range(self._plan.world.ranks()) for line in self._written(rank))

    def _written(self, rank):
        try:
            text = (self._folder / f"rank-{rank}.out").read_text("utf-8", "replace")
        except FileNotFoundError:
            return []
        return text.splitlines()

    def end(self):
        self._faults.end()
        self._ended = dict(self._status)
        left = [rank for rank in self._pids if rank not in self._status]
        for rank in left:
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(self._pids[rank], number)
                except ProcessLookupError:
                    pass
        deadline = time.monotonic() + 20
        while any(rank not in self._status for rank in left) and time.monotonic() < deadline:
            try:
                self._take(self._events.get(timeout=1))
            except (queue.Empty, RuntimeError, IndexError):
                pass

    def ranks(self):
        found = []
        for rank in range(self._plan.world.ranks()):
            try:
                log = (self._folder / f"rank-{rank}.log").read_text("utf-8", "replace")
            except FileNotFoundError:
                log = ""
            at, lines = self._progress[rank], self._lines[rank]
            command = lines[at] if 0 <= at < len(lines) else ("before its first" if at < 0 else "behind its last")
            found.append(judge.Rank(self._written(rank), log, self._ended.get(rank), at, command))
        return found
