# SPDX-License-Identifier: Apache-2.0
"""Pods that are network namespaces, with rails that meet at a switch, another namespace; and the faults of a rail."""

import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testbed"))

from railbed.console import Failure  # noqa: E402

PODS = 4
RAILS = 3
CONTROL = 250  # the subnet in which ranks meet; it carries no data


def _run(*argv, stdin=None):
    # In a session of its own: Ctrl-C must not end it half-way.
    done = subprocess.run([str(word) for word in argv], input=stdin, capture_output=True, text=True, check=False,
                          start_new_session=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, argv))}: {done.stderr.strip()} (this needs root, or CAP_NET_ADMIN and "
                      "CAP_SYS_ADMIN, with iproute2 and iptables installed, and a kernel with network namespaces, "
                      "bridges, veth, the tbf queue and br_netfilter)")


class Fabric:
    """Interface railR of pod P has 10.77.R.P+1, or in shared subnets 10.77.100.50*R+P+1."""

    def __init__(self, name, subnets, megabits):
        self._subnets = subnets
        self._megabits = megabits
        self._switch = f"railhead-{os.getpid()}-{name}-switch"
        self._pods = [f"railhead-{os.getpid()}-{name}-{pod}" for pod in range(PODS)]
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._build()
            undo.pop_all()

    def _build(self):
        for name in (self._switch, *self._pods):
            _run("ip", "netns", "add", name)
        bridges = [f"bridge{rail}" for rail in range(RAILS)] if self._subnets == "own" else ["bridge0"] * RAILS
        switch = [f"link add {bridge} type bridge\nlink set {bridge} up" for bridge in {*bridges, "control"}]
        for pod, name in enumerate(self._pods):
            lines = ["link set lo up"]
            shapes = []
            for rail in (*range(RAILS), CONTROL):
                bridge = bridges[rail] if rail < RAILS else "control"
                own = f"rail{rail}" if rail < RAILS else "control"
                port = self.port(pod, rail)
                switch += [f"link add {port} type veth peer name {own} netns {name}",
                           f"link set {port} master {bridge}", f"link set {port} up"]
                lines += [f"address add {self.address(pod, rail)}/24 dev {own}", f"link set {own} up"]
                if rail < RAILS and self._megabits:
                    shapes.append(f"qdisc replace dev {own} root tbf rate {self._megabits}mbit burst 64kb latency 20ms")
            _run("ip", "-n", self._switch, "-batch", "-", stdin="\n".join(switch) + "\n")
            switch = []
            _run("ip", "-n", name, "-batch", "-", stdin="\n".join(lines) + "\n")
            if shapes:
                _run("tc", "-n", name, "-batch", "-", stdin="\n".join(shapes) + "\n")
            if self._subnets == "shared":
                # Each interface answers for its own address only.
                self._inside(name, "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1",
                             "net.ipv4.conf.all.arp_announce=2")

    def close(self):
        for name in (self._switch, *self._pods):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, start_new_session=True)

    def namespace(self, pod):
        return f"/run/netns/{self._pods[pod]}"

    def address(self, pod, rail=CONTROL):
        if rail != CONTROL and self._subnets == "shared":
            return f"10.77.100.{50 * rail + pod + 1}"
        return f"10.77.{rail}.{pod + 1}"

    @staticmethod
    def port(pod, rail):
        return f"p{pod}r{rail}"

    @staticmethod
    def _inside(namespace, *argv):
        _run("nsenter", f"--net=/run/netns/{namespace}", *argv)

    # Each returns a function that ends the fault.

    def fault(self, what, pod, rail):
        return getattr(self, what)(pod, rail)

    def swallow(self, pod, rail):
        """Drops all packets of this pod's rail, silently."""
        return self._drop(pod, rail, ("in", "out"))

    def swallow_in(self, pod, rail):
        """Drops all packets to this pod's rail; the other direction works."""
        return self._drop(pod, rail, ("out",))

    def swallow_out(self, pod, rail):
        """Drops all packets from this pod's rail; the other direction works."""
        return self._drop(pod, rail, ("in",))

    def narrow(self, pod, rail):
        """Drops packets of 1000 bytes and more, silently, as an MTU that does not fit."""
        return self._drop(pod, rail, ("in", "out"), "-m", "length", "--length", "1000:65535")

    def unplug(self, pod, rail):
        """Takes the pod's interface down."""
        name = self._pods[pod]
        _run("ip", "-n", name, "link", "set", f"rail{rail}", "down")
        return lambda: _run("ip", "-n", name, "link", "set", f"rail{rail}", "up")

    def carrier(self, pod, rail):
        """Takes the switch's port down: the pod's interface loses its carrier."""
        port = self.port(pod, rail)
        _run("ip", "-n", self._switch, "link", "set", port, "down")
        return lambda: _run("ip", "-n", self._switch, "link", "set", port, "up")

    def reset(self, pod, rail):
        """Resets the rail's connections, and rejects new ones."""
        rule = ("INPUT", "-p", "tcp", "--syn", "-i", f"rail{rail}", "-j", "REJECT", "--reject-with", "tcp-reset")
        name = self._pods[pod]
        self._inside(name, "iptables", "-w", "-A", *rule)
        self._inside(name, "ss", "--kill", "--tcp", "src", self.address(pod, rail))
        return lambda: self._inside(name, "iptables", "-w", "-D", *rule)

    def _drop(self, pod, rail, directions, *rule):
        """Drops what comes to the switch (in) from this pod's rail, or goes out to it."""
        def change(how):
            for direction in directions:
                self._inside(self._switch, "iptables", "-w", how, "FORWARD", "-m", "physdev", f"--physdev-{direction}",
                             self.port(pod, rail), *rule, "-j", "DROP")

        change("-A")
        return lambda: change("-D")


class Fabrics:
    """The fabrics of one of several worlds that run side by side, made when they are needed."""

    def __init__(self, name):
        self._name = name
        self._made = {}

    def get(self, subnets, megabits):
        key = (subnets, megabits)
        if key not in self._made:
            self._made[key] = Fabric(f"{self._name}{subnets[0]}{megabits}", subnets, megabits)
        return self._made[key]

    def close(self):
        for fabric in self._made.values():
            fabric.close()
