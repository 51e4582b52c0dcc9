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
from railbed.process import end  # noqa: E402

NODES = ("a", "b")
# Rate of the link on which ranks rendezvous; it carries no data.
CONTROL = 250
# The port of the impostor.
IMPOSTOR = 9


def run_tool(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, argv))}: {done.stderr.strip()} (this needs root, or "
                      "CAP_NET_ADMIN and CAP_SYS_ADMIN, with iproute2 and iptables installed, and a "
                      "kernel with network namespaces, veth and the tbf queue)")
    return done.stdout


class Network:
    """Rail i is the interface railI in both namespaces: 10.77.I.1 and 10.77.I.2, or without IPv4 fd77:I::1 and
    fd77:I::2. The loopback device has both families."""

    def __init__(self, megabits, ipv4=True):
        self.megabits = list(megabits)
        self._ipv4 = ipv4
        self._names = {node: f"railhead-{os.getpid()}-{node}" for node in NODES}

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for name in self._names.values():
                run_tool("ip", "netns", "add", name)
                run_tool("ip", "-n", name, "link", "set", "lo", "up")
            self._connect()
            undo.pop_all()
        return self

    def _connect(self):
        for number, interface in [*enumerate(self.interfaces()), (CONTROL, "control")]:
            self._cable(interface, number)
        for rail, rate in enumerate(self.megabits):
            self.shape(rail, rate)

    def _cable(self, interface, number):
        """Joins the nodes by an interface of this name in each, with their addresses of this number."""
        run_tool("ip", "-n", self._names["a"], "link", "add", interface, "type", "veth", "peer",
                 "name", interface, "netns", self._names["b"])
        for node in NODES:
            self._give(node, interface, number)

    def _give(self, node, interface, number):
        """Gives the interface its address of this number, and takes it up."""
        # No other host exists, so duplicate address detection is not needed.
        length = ["/24"] if self._ipv4 else ["/64", "nodad"]
        run_tool("ip", "-n", self._names[node], "address", "add", self.address(node, number) + length[0], *length[1:],
                 "dev", interface)
        run_tool("ip", "-n", self._names[node], "link", "set", interface, "up")

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def interfaces(self):
        return [f"rail{rail}" for rail in range(len(self.megabits))]

    def inside(self, node, *argv):
        """Returns the command that runs `argv` on the node."""
        return ["ip", "netns", "exec", self._names[node], *map(str, argv)]

    def address(self, node, rail=CONTROL):
        host = NODES.index(node) + 1
        return f"10.77.{rail}.{host}" if self._ipv4 else f"fd77:{rail}::{host}"

    def shape(self, rail, megabits):
        """Sets the rate of both directions of the rail."""
        for node in NODES:
            run_tool("tc", "-n", self._names[node], "qdisc", "replace", "dev", f"rail{rail}", "root", "tbf", "rate",
                 f"{megabits}mbit", "burst", "64kb", "latency", "20ms")

    # Each method returns a function that ends the fault.

    def swallow(self, rail):
        """Drops all packets that arrive on this rail, silently."""
        return self._filter("-i", f"rail{rail}", "-j", "DROP")

    def swallow_at(self, node, rail):
        """Drops all packets that arrive at this node on this rail, silently; the other direction works."""
        return self._filter("-i", f"rail{rail}", "-j", "DROP", nodes=(node,))

    def silence(self):
        """Drops all packets of the rendezvous' network, silently."""
        return self._filter("-i", "control", "-j", "DROP")

    def forget(self):
        """Resets the connections of the rendezvous' network, once."""
        address = self.address("a")
        run_tool(*self.inside("a", "ss", "--kill", "--tcp", "src", address if self._ipv4 else f"[{address}]"))

    def narrow(self, rail):
        """Drops packets of 1000 bytes and more on this rail, silently, as an MTU that does not fit."""
        return self._filter("-i", f"rail{rail}", "-m", "length", "--length", "1000:65535", "-j", "DROP")

    def unplug(self, rail, node="a"):
        """Takes the interface down on one node; the other node loses the carrier."""
        run_tool("ip", "-n", self._names[node], "link", "set", f"rail{rail}", "down")
        return lambda: run_tool("ip", "-n", self._names[node], "link", "set", f"rail{rail}", "up")

    def rename(self, rail, node, to):
        """Renames an interface on one node."""
        name = self._names[node]
        run_tool("ip", "-n", name, "link", "set", f"rail{rail}", "down")
        run_tool("ip", "-n", name, "link", "set", f"rail{rail}", "name", to)
        run_tool("ip", "-n", name, "link", "set", to, "up")

    def strip(self, rail, node="a"):
        """Takes the addresses of an interface away; the repair gives it another one than it had."""
        name = self._names[node]
        run_tool("ip", "-n", name, "address", "flush", "dev", f"rail{rail}")
        address = self.address(node, rail) + ("1/24" if self._ipv4 else "1/64")
        more = [] if self._ipv4 else ["nodad"]
        return lambda: run_tool("ip", "-n", name, "address", "add", address, *more, "dev", f"rail{rail}")

    def reset(self, rail):
        """Resets the rail's connections, and rejects new ones."""
        repair = self._filter("-p", "tcp", "--syn", "-i", f"rail{rail}", "-j", "REJECT",
                              "--reject-with", "tcp-reset")
        address = self.address("a", rail)
        run_tool(*self.inside("a", "ss", "--kill", "--tcp", "src",
                          address if self._ipv4 else f"[{address}]"))
        return repair

    @contextlib.contextmanager
    def impostor(self, rail, output, how):
        """Redirects new connections over this rail to impostor.py, and cuts existing ones. `output` is the impostor's
        log."""
        rule = ["PREROUTING", "-i", f"rail{rail}", "-p", "tcp", "-j", "REDIRECT", "--to-ports",
                str(IMPOSTOR)]
        with contextlib.ExitStack() as undo:
            for node in NODES:
                file = undo.enter_context(open(output, "a", encoding="utf-8"))
                child = subprocess.Popen(
                    self.inside(node, sys.executable, pathlib.Path(__file__).parent / "impostor.py",
                                IMPOSTOR, how),
                    stdin=subprocess.DEVNULL, stdout=file, start_new_session=True)
                undo.callback(end, child.pid)
                run_tool(*self.inside(node, "iptables", "-w", "-t", "nat", "-A", *rule))
                undo.callback(run_tool, *self.inside(node, "iptables", "-w", "-t", "nat", "-D", *rule))
            run_tool(*self.inside("a", "ss", "--kill", "--tcp", "src", self.address("a", rail)))
            yield

    def _filter(self, *rule, nodes=NODES):
        """Adds a rule for arriving packets on these nodes; returns a function that removes it."""
        def change(how):
            for node in nodes:
                run_tool(*self.inside(node, "iptables" if self._ipv4 else "ip6tables", "-w", how,
                                  "INPUT", *rule))

        change("-A")
        return lambda: change("-D")
