# SPDX-License-Identifier: Apache-2.0
"""A sender and a receiver of the network plugin, in two processes of end.py."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402

LIBRARY = ROOT / "build" / "release" / "plugins" / "nccl" / "libnccl-net-railhead.so"
OUT = ROOT / "out" / "nccl"
PATIENCE = 90


class End:
    """A process of end.py."""

    def __init__(self, role, folder, version, network=None, rails=(), more=None, **chosen):
        self.log = folder / f"{role}.log"
        options = [word for name, value in chosen.items()
                   for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))]
        command = [sys.executable, str(pathlib.Path(__file__).parent / "end.py"), str(LIBRARY), str(version), role,
                   str(folder), *options]
        if network is not None:
            command = network.inside("a" if role == "send" else "b", *command)
        env = {**os.environ, "RAILHEAD_SOCKET_IFNAME": ",".join(rails) or "lo", "RAILHEAD_LOG": "info",
               "RAILHEAD_METRICS_PORT": "0", **(more or {})}
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                          env=env)

    def text(self):
        return self.log.read_text("utf-8", "replace")

    def done(self):
        numbers = [int(line) for line in self.text().splitlines() if line.isdigit()]
        return numbers[-1] if numbers else 0

    def finish(self, seconds=PATIENCE):
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.log.name}: no end within {seconds} s", log=self.log) from None
        return self.child.returncode

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class Two:
    """A sender and a receiver. At the end of the block both must have ended well, if `checked`. Other arguments are
    options of end.py; those in `own` are of the sender and of the receiver."""

    def __init__(self, name, version=12, versions=None, network=None, rails=((), ()), more=({}, {}), checked=True,
                 own=({}, {}), **chosen):
        self.folder = OUT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._checked = checked
        versions = versions or (version, version)
        self.receiver = End("receive", self.folder, versions[1], network, rails[1], more[1], **own[1], **chosen)
        self.sender = End("send", self.folder, versions[0], network, rails[0], more[0], **own[0], **chosen)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            for end in (self.sender, self.receiver) if kind is None and self._checked else ():
                if end.finish() != 0 or not end.text().rstrip().endswith("end"):
                    raise Failure(f"{self.folder.name}: {end.log.name} has failed", log=end.log)
        finally:
            self.sender.stop()
            self.receiver.stop()

    def wait_for(self, messages):
        self.wait_until(lambda: self.receiver.done() >= messages, f"{messages} messages")

    def stop(self):
        """Ends processes that are endless."""
        (self.folder / "stop").touch()

    def rail_is_up(self, rail):
        """Whether the last that the sender has logged of the rail is not its loss."""
        said = re.findall(rf"rail {rail} \(.*: (lost \(|is back)", self.sender.text())
        return not said or said[-1] == "is back"

    def wait_until(self, condition, what, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not condition():
            for end in (self.sender, self.receiver):
                if end.child.poll() not in (None, 0):
                    raise Failure(f"{what}: the process has ended before", log=end.log)
            if time.monotonic() > deadline:
                raise Failure(f"{what}: not within {seconds} s", log=self.receiver.log)
            time.sleep(0.02)


def expect(condition, what, end):
    if not condition:
        raise Failure(what, log=end.log)
