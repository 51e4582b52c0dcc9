# SPDX-License-Identifier: Apache-2.0
"""Runs parts of the build and the tests (tools/parts.py) and all parts that they need, side by side.

usage: tools/run_parts.py PART...     `test` stands for all parts of `make test`

Each part writes to out/parts/<part>.log. If a part fails, parts that need it do not run, and parts end that only they
need: the failure of what the only target needs ends the run at once. Ctrl-C ends all parts.
Exits with 0 if all parts passed.
"""

import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import check_machine
from memory_folder import memory_folder
from parts import CAPACITY, PARTS, TEST

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "out" / "parts"
PROGRESS_SECONDS = 10
TAIL_LINES = 25
FAILURE = re.compile(r"""FAIL|\*\*\*|\b[Ff]ailed\b|[Ee]rror\b|\bFatal\b|\(Timeout\)|\(SEGFAULT\)|^  File ".*", line """)
NO_FAILURE = re.compile(r"^\s*Start +\d+: |\bPassed +[\d.]+ s")  # ctest's lines of tests whose names mention errors
FAILURE_LINES = 20  # lines of a failed part's log that are repeated below the table
FAILURE_LENGTH = 200
# Addresses of testbeds, which no proxy can reach: loopback, pods, services, nodes. Some programs do not
# understand networks, so the host's address is listed as well.
NO_PROXY = ("localhost,127.0.0.1,::1,127.0.0.0/8,10.0.0.0/8,192.168.0.0/16,198.18.0.0/15,10.0.9.254,"
            ".svc,.cluster.local")
COUNT = re.compile(r"\[\s*(\d+)/(\d+)\]|^\s*(\d+)/(\d+) Test +#", re.MULTILINE)


def environment():
    """Returns the environment of all parts: the cache, no jobserver of `make -j8`, no proxy for local addresses."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env["RAILHEAD_CACHE"] = str(check_machine.cache())
    for name in ("no_proxy", "NO_PROXY"):
        env[name] = ",".join(filter(None, (os.environ.get(name), NO_PROXY)))
    return env


def with_needs(names):
    """Returns the parts with these names and all parts that they need, in the table's order."""
    table = {part.name: part for part in PARTS}
    wanted, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in table:
            raise SystemExit(f"error: no part '{name}'; there are: test {' '.join(table)}")
        if name not in wanted:
            wanted.add(name)
            waiting += table[name].needs
    return [part for part in PARTS if part.name in wanted]


class Running:
    """A running part."""

    def __init__(self, part, to_terminal):
        self.part = part
        self.begin = time.monotonic()
        self.log = LOGS / f"{part.name}.log"
        self._offset = 0  # bytes of the log that were copied to the terminal
        self._to_terminal = to_terminal and not part.foreground
        self.late = False
        self._ended = None
        self._temporary = memory_folder() if part.tmp_in_memory else None
        env = environment()
        if self._temporary:
            env["TMPDIR"] = env["TEST_TMPDIR"] = self._temporary.name  # the latter: GoogleTest
        out = None if part.foreground else open(self.log, "wb")
        self._child = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", part.command], cwd=ROOT, env=env,
            stdin=subprocess.DEVNULL, stdout=out, stderr=None if out is None else subprocess.STDOUT,
            start_new_session=True)
        if out is not None:
            out.close()

    def seconds(self):
        return time.monotonic() - self.begin

    def poll(self):
        """Returns None while it runs, then (exit code, CPU seconds)."""
        if self._to_terminal:
            with open(self.log, "rb") as file:
                file.seek(self._offset)
                text = file.read()
            self._offset += len(text)
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
        if not self.late and self.seconds() > self.part.limit:
            self.late = True
            self.signal(signal.SIGTERM)
        if self._ended is None:
            pid, status, usage = os.wait4(self._child.pid, os.WNOHANG)
            if pid != 0:
                self._child.returncode = os.waitstatus_to_exitcode(status)
                self._ended = self._child.returncode, usage.ru_utime + usage.ru_stime
        return self._ended

    def close(self):
        """Deletes its temporary files. No process of it may be left."""
        if self._temporary:
            self._temporary.cleanup()

    def signal(self, number):
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:
            pass

    def lives(self):
        """Returns whether any process of it is left."""
        try:
            os.killpg(self._child.pid, 0)
            return True
        except ProcessLookupError:
            return False

    def tail(self):
        if self.part.foreground:
            return ""
        lines = self.log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:]
        return "\n".join(f"    | {line}" for line in lines)

    def failures(self):
        """Returns the last lines of the log that report a failure, which may be far from its end."""
        if self.part.foreground:
            return []
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return [line[:FAILURE_LENGTH] for line in lines
                if FAILURE.search(line) and not NO_FAILURE.search(line)][-FAILURE_LINES:]

    def progress(self, usual):
        """Returns `unit 31 s [212/340], about 20 s left`; `usual` is its duration in the last run."""
        text, seconds, left = f"{self.part.name} {self.seconds():.0f} s", self.seconds(), None
        if not self.part.foreground:
            with open(self.log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
                counts = COUNT.findall(file.read().decode("utf-8", "replace"))
            if counts:
                done, total = (int(word) for word in counts[-1] if word)
                text += f" [{done}/{total}]"
                left = seconds / done * (total - done) if done else None
        if left is None and usual is not None:
            left = max(0, usual - seconds)
        return text if left is None else f"{text}, about {left:.0f} s left"


def end(running):
    """Ends parts: first as Ctrl-C does, so that they can clean up, then by force."""
    ended = list(running)
    for number, patience in ((signal.SIGINT, 60), (signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        for part in running:
            part.signal(number)
        deadline = time.monotonic() + patience
        while running and time.monotonic() < deadline:
            # Background processes of shells ignore SIGINT: if only they are left, wait at most 2 s.
            if all([part.poll() is not None for part in running]):
                deadline = min(deadline, time.monotonic() + 2)
            running = [part for part in running if part.lives()]
            time.sleep(0.1)
    for part in ended:
        part.close()


class Run:
    """One call: parts that wait, run and are done."""

    def __init__(self, names):
        self._targets = names
        self._waiting = with_needs(names)
        self._single = names[0] if len(names) == 1 else None
        self._running = []
        self._done = {}  # name: (result, seconds, CPU seconds); result: passed, failed, ended
        self._failures = {}  # name: lines of its log
        self.interrupted = None  # the name of the signal
        self._begin = time.monotonic()
        self._spoken = self._begin
        self._usual_file = check_machine.cache() / "part-seconds.json"
        try:
            self._usual = json.loads(self._usual_file.read_text("utf-8"))
        except (OSError, ValueError):
            self._usual = {}

    def say(self, text):
        self._spoken = time.monotonic()
        print(f"[{self._spoken - self._begin:6.1f} s] {text}", flush=True)

    def _start_what_can(self):
        for part in list(self._waiting):
            load = sum(running.part.weight for running in self._running)
            if all(name in self._done for name in part.needs) and load + part.weight <= CAPACITY:
                self._waiting.remove(part)
                self._running.append(Running(part, part.name == self._single))

    def _drop_useless(self):
        """Drops what needs a failed part, and what no target needs that can still pass."""
        failed = {name for name, row in self._done.items() if row[0] == "failed"}

        def cause(name):
            return min(failed.intersection(part.name for part in with_needs([name])), default=None)

        useful = {part.name for part in with_needs([name for name in self._targets if not cause(name)])}
        for part in self._waiting:
            if cause(part.name):
                self._done[part.name] = ("failed", 0.0, 0.0)
                self.say(f"{part.name}: failed: not run, as {cause(part.name)} failed")
            elif part.name not in useful:
                self._done[part.name] = ("ended", 0.0, 0.0)
        self._waiting = [part for part in self._waiting if part.name not in self._done]
        useless = [running for running in self._running if running.part.name not in useful]
        for running in useless:
            self._done[running.part.name] = ("ended", running.seconds(), 0.0)
            self.say(f"{running.part.name}: ended after {running.seconds():.0f} s: nothing that can still pass needs it")
        self._running = [running for running in self._running if running not in useless]
        end(useless)

    def _reap(self):
        for running in list(self._running):
            ended = running.poll()
            if ended is None:
                continue
            self._running.remove(running)
            running.signal(signal.SIGTERM)  # end processes that it left behind
            running.close()
            code, cpu = ended
            name, seconds = running.part.name, running.seconds()
            passed = code == 0 and not running.late
            self._done[name] = ("passed" if passed else "failed", seconds, cpu)
            if passed:
                self._usual[name] = round(seconds, 1)
                self.say(f"{name}: passed, {seconds:.0f} s")
                continue
            why = f"no end within {running.part.limit} s" if running.late else f"exit code {code}"
            log = "" if running.part.foreground else f"; log: {running.log.relative_to(ROOT)}"
            self.say(f"{name}: failed: {why}, {seconds:.0f} s{log}")
            if name != self._single:
                print(running.tail(), flush=True)
            self._failures[name] = [f"{name}: {why}{log}", *running.failures()]
            self._drop_useless()
            return  # it has changed what runs

    def interrupt(self, number, _frame):
        """Signal handler. Only records the signal, so that a part that is just starting is not lost."""
        self.interrupted = signal.Signals(number).name

    def run(self):
        while (self._waiting or self._running) and not self.interrupted:
            self._start_what_can()
            self._reap()
            quiet = any(r.part.foreground or r.part.name == self._single for r in self._running)
            if not quiet and time.monotonic() - self._spoken > PROGRESS_SECONDS:
                text = "; ".join(r.progress(self._usual.get(r.part.name)) for r in self._running)
                self.say(f"{text} ({len(self._done)} parts done, {len(self._waiting)} waiting)")
            time.sleep(0.1)

    def end_all(self):
        self.say(f"interrupted ({self.interrupted}): ending what runs")
        end(self._running)

    def summary(self):
        """Prints the table and returns the number of failed parts."""
        total, cpu = time.monotonic() - self._begin, sum(row[2] for row in self._done.values())
        print("\n| part | seconds | CPU seconds | result |\n|---|---|---|---|")
        for name, (result, seconds, used) in self._done.items():
            print(f"| {name} | {seconds:.0f} | {used:.0f} | {result} |")
        print(f"| all, side by side | {total:.0f} | {cpu:.0f} | |\n")
        try:
            self._usual_file.parent.mkdir(parents=True, exist_ok=True)
            self._usual_file.write_text(json.dumps(self._usual), "utf-8")
        except OSError:
            pass  # estimates are a convenience
        results = [row[0] for row in self._done.values()]
        failed = results.count("failed")
        # Readers often see only the end of a long run's output.
        for lines in self._failures.values():
            print("\n    | ".join(line[:300] for line in lines) + "\n")
        print(f"{results.count('passed')} passed, {failed} failed", flush=True)
        return failed


def main():
    names = [name for word in sys.argv[1:] for name in (TEST if word == "test" else (word,))]
    if not names:
        raise SystemExit(__doc__)
    parts = with_needs(names)
    check_machine.check(cluster=any(part.cluster for part in parts),
                        emulated=any(part.emulated for part in parts), torch=any(part.torch for part in parts))
    LOGS.mkdir(parents=True, exist_ok=True)
    # Two builds in one folder would overwrite each other's files. Children do not inherit the lock.
    with open(ROOT / "out" / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("error: another `make` is at work in this checkout: wait for its end, or stop "
                             "it with Ctrl-C there") from None
        run = Run(names)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, run.interrupt)
        run.run()
        if run.interrupted:
            run.end_all()
            return 130
        return 1 if run.summary() else 0


if __name__ == "__main__":
    sys.exit(main())
