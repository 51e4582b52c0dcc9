# SPDX-License-Identifier: Apache-2.0
"""Runs commands that must succeed, and long-running processes that are always ended."""

import os
import pathlib
import signal
import subprocess
import time

from .console import Failure


def run(argv, *, log=None, seconds=600, check=True, stdin=None, cwd=None, env=None):
    """Runs a command to its end and returns its CompletedProcess (text)."""
    argv = [str(a) for a in argv]
    try:
        # In a new session, so that an interrupted run can end a script with all its children.
        child = subprocess.Popen(argv, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                                 env=env, start_new_session=True)
    except FileNotFoundError:
        raise Failure(f"{argv[0]} is not installed",
                      advice="tools/install-needs.sh build testbed") from None
    try:
        out, err = child.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        end(child.pid, 20)
        raise Failure(f"no answer within {seconds} s from: {' '.join(argv)}", log=log) from None
    except BaseException:
        end(child.pid, 20)
        raise
    done = subprocess.CompletedProcess(argv, child.returncode, out, err)
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}")
    if check and done.returncode != 0:
        text = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Failure(f"{' '.join(argv)[:300]}: exit {done.returncode}: {' '.join(text)}", log=log)
    return done


class Processes:
    """The daemons of one run. A file contains their pids, so that another process can end them."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._pids = self._folder / "pids"
        self._children = {}

    def start(self, name, argv, *, cwd=None):
        """Starts a daemon whose output goes to <folder>/<name>.log; returns that path."""
        log = self._folder / f"{name}.log"
        with open(log, "ab") as out:
            child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, cwd=cwd or self._folder,
                                     start_new_session=True)
        self._children[name] = (child, log)
        with open(self._pids, "a", encoding="ascii") as file:
            file.write(f"{child.pid}\n")
        return log

    def check(self):
        """Raises Failure if a daemon has ended by itself."""
        for name, (child, log) in self._children.items():
            if child.poll() is not None:
                raise Failure(f"{name} ended with exit code {child.returncode}", log=log)

    def stop_one(self, name):
        """Ends a daemon that is no longer needed; check() then ignores it."""
        end(self._children.pop(name)[0].pid)

    def stop(self):
        """Ends all daemons, the last one first: without etcd the API server hangs in its shutdown."""
        if not self._pids.exists():
            return
        for pid in reversed([int(p) for p in self._pids.read_text("ascii").split()]):
            end(pid)
        self._pids.unlink()


def end(pid, seconds=5.0):
    """Sends SIGTERM, then SIGKILL, to a session leader and its children in the session; returns when it is gone. A
    pid that does not lead a session has been reused by another process, and is ignored."""
    try:
        if os.getsid(pid) != pid:
            return
        os.killpg(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while alive(pid):
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                deadline = time.monotonic() + seconds
            time.sleep(0.05)
    except ProcessLookupError:
        pass


def alive(pid):
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
