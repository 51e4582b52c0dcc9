# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by shaped veth pairs: two nodes with rails, on one machine."""

import contextlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402

NODES = ("a", "b")
# Of the link over which ranks meet; it carries no data.
CONTROL = 250


def _run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, argv))}: {done.stderr.strip()} (this needs root, or "
                      "CAP_NET_ADMIN and CAP_SYS_ADMIN, with iproute2 and iptables installed, and a "
                      "kernel with network namespaces, veth and the tbf queue)")
    return done.stdout


class Network:
    """Rail i is the interface railI in both namespaces, 10.77.I.1 and 10.77.I.2."""

    def __init__(self, megabits):
        self.megabits = list(megabits)
        self._names = {node: f"railhead-{os.getpid()}-{node}" for node in NODES}

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for name in self._names.values():
                _run("ip", "netns", "add", name)
                _run("ip", "-n", name, "link", "set", "lo", "up")
            for number, interface in [*enumerate(self.interfaces()), (CONTROL, "control")]:
                _run("ip", "-n", self._names["a"], "link", "add", interface, "type", "veth", "peer",
                     "name", interface, "netns", self._names["b"])
                for host, node in enumerate(NODES, 1):
                    name = self._names[node]
                    _run("ip", "-n", name, "address", "add", f"10.77.{number}.{host}/24", "dev",
                         interface)
                    _run("ip", "-n", name, "link", "set", interface, "up")
            for rail, rate in enumerate(self.megabits):
                self.shape(rail, rate)
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def interfaces(self):
        return [f"rail{rail}" for rail in range(len(self.megabits))]

    def inside(self, node, *argv):
        """The command that runs `argv` on the node."""
        return ["ip", "netns", "exec", self._names[node], *map(str, argv)]

    def address(self, node, rail=CONTROL):
        return f"10.77.{rail}.{NODES.index(node) + 1}"

    def shape(self, rail, megabits):
        """Both directions of the rail carry so much."""
        for name in self._names.values():
            _run("tc", "-n", name, "qdisc", "replace", "dev", f"rail{rail}", "root", "tbf", "rate",
                 f"{megabits}mbit", "burst", "64kb", "latency", "20ms")

    # Each returns what ends it.

    def swallow(self, rail):
        """Nothing arrives any more on this rail, and nobody is told."""
        for node in NODES:
            _run(*self.inside(node, "iptables", "-w", "-A", "INPUT", "-i", f"rail{rail}", "-j", "DROP"))
        return lambda: [_run(*self.inside(node, "iptables", "-w", "-D", "INPUT", "-i", f"rail{rail}",
                                          "-j", "DROP")) for node in NODES]

    def unplug(self, rail):
        """The interface goes down on one node; its neighbour loses the carrier."""
        _run("ip", "-n", self._names["a"], "link", "set", f"rail{rail}", "down")
        return lambda: _run("ip", "-n", self._names["a"], "link", "set", f"rail{rail}", "up")

    def reset(self, rail):
        """The rail's connections are reset, and new ones refused."""
        rule = ("-p", "tcp", "--syn", "-i", f"rail{rail}", "-j", "REJECT", "--reject-with",
                "tcp-reset")
        for node in NODES:
            _run(*self.inside(node, "iptables", "-w", "-A", "INPUT", *rule))
        _run(*self.inside("a", "ss", "--kill", "--tcp", "src", self.address("a", rail)))
        return lambda: [_run(*self.inside(node, "iptables", "-w", "-D", "INPUT", *rule))
                        for node in NODES]
