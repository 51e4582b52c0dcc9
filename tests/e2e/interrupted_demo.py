# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during `make demo`."""

import contextlib
import pathlib
import signal
import subprocess
import sys

from stage import FOLDER, PATIENCE, ROOT, expect
from railbed.cluster import Cluster
from railbed.console import Failure, wait_for


def interrupted_demo_leaves_nothing(_stage):
    """Ctrl-C during the demo: no process, namespace or mount remains."""
    folder = str(ROOT / "out" / "demo")
    cluster = Cluster(folder)

    def processes():
        """Returns processes that run in the demo's folder, or name it, as PID and arguments."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # the process may have ended
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if folder in words or str((process / "cwd").readlink()).startswith(folder):
                    found[process.name] = words
        return found

    expect(not processes() and not cluster.network.exists(), "a demo runs here: make demo-down")
    log = FOLDER / "interrupted-demo.log"
    with open(log, "w", encoding="utf-8") as out:
        demo = subprocess.Popen([sys.executable, ROOT / "tests" / "e2e" / "demo.py"], stdout=out,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        # Everything is already built.
        wait_for("the demo starts its nodes", lambda: demo.poll() is not None or
                 "waiting for the nodes" in log.read_text(), 1200, log=log, interval=0.5)
        demo.send_signal(signal.SIGINT)
        try:
            expect(demo.wait(PATIENCE) == 1, "an interrupted demo does not exit with 1")
        except subprocess.TimeoutExpired:
            raise Failure("an interrupted demo goes on", log=log) from None
        expect("interrupted" in log.read_text(), "it does not say that it was interrupted")
    finally:
        if demo.poll() is None:
            demo.kill()
            demo.wait(10)
            cluster.down()
    mounts = pathlib.Path("/proc/mounts").read_text("ascii")
    expect(folder not in mounts, f"mounts are left behind: {mounts}")
    expect(not processes(), f"processes are left behind: {processes()}")
    expect(not cluster.network.exists(), f"left behind: network namespace {cluster.network.name}")

# A demo whose nodes are never ready, and which checks for that all the time.
ASKS_FOR_EVER = """
import sys, time
import demo
from railbed.cluster import Cluster

class Stage:
    def __init__(self, *_):
        self.cluster = Cluster(sys.argv.pop())
        self.cluster.check = lambda: None
        self.cluster._boot_again_if_hung = lambda _: None
        self.cluster.get = self.get
    def get(self, *_):
        print("asks", flush=True)
        time.sleep(600)
    def up(self):
        self.cluster._wait_ready([1])
    def down(self):
        print("down", flush=True)

demo.Stage = Stage
sys.exit(demo.main())
"""


def an_interrupt_is_no_answer(_stage):
    """Ctrl-C while the demo checks whether its nodes are ready: the interrupt must not count as "not yet"."""
    demo = subprocess.Popen([sys.executable, "-c", ASKS_FOR_EVER, FOLDER / "never-ready"], text=True,
                            cwd=ROOT / "tests" / "e2e", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        expect(any(line == "asks\n" for line in demo.stdout), "the demo does not ask")
        demo.send_signal(signal.SIGINT)
        told = demo.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        raise Failure("an interrupted demo goes on") from None
    finally:
        demo.kill()
    expect(demo.returncode == 1 and "down\n" in told and "interrupted (SIGINT)" in told,
           f"exit code {demo.returncode}: {told}")
