# SPDX-License-Identifier: Apache-2.0
"""The testbed's wires: one network namespace, a bridge for Kubernetes, and one per rail."""

import ctypes
import os
import re
import socket

from .process import run

MANAGEMENT = "mg"
HOST = "10.0.9.254"
MTU = 4500  # large enough for RoCE's MTU of 4096 bytes
CLONE_NEWNET = 0x40000000  # <sched.h>


class Network:
    def __init__(self, name):
        self.name = name
        self._rate = None  # rate of a rail; set by create()
        self._bridges = set()

    def inside(self, argv):
        return ["ip", "netns", "exec", self.name] + [str(a) for a in argv]

    def connect(self, address, timeout=60):
        """Opens a connection from inside the namespace. A socket keeps its namespace; the thread returns."""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(file):
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {file.name}: {os.strerror(ctypes.get_errno())}")

        with open("/proc/thread-self/ns/net", "rb") as here, open(f"/run/netns/{self.name}", "rb") as there:
            enter(there)
            try:
                return socket.create_connection(address, timeout=timeout)
            finally:
                enter(here)

    def exists(self):
        return self.name in run(["ip", "netns", "list"]).stdout.split()

    @staticmethod
    def bridges(rails):
        """Returns the names of a node's bridges, in the order of its interfaces."""
        return [MANAGEMENT] + [f"r{rail}" for rail in range(rails)]

    def create(self, rate):
        """Creates a bridge for each rail, whose TAPs are shaped to `rate` (in tc's notation)."""
        self._rate = rate
        run(["ip", "netns", "add", self.name])
        self._ip("link set lo up")
        self._add_bridge(MANAGEMENT)
        self._ip(f"addr add {HOST}/24 dev br-{MANAGEMENT}")

    def add_node(self, node, rails):
        self._ip(f"route add 10.244.{node}.0/24 via 10.0.9.{node}")
        for bridge in self.bridges(rails):
            if bridge not in self._bridges:
                self._add_bridge(bridge)
            tap = self.tap(node, bridge)
            self._ip(f"tuntap add {tap} mode tap")
            self._ip(f"link set {tap} mtu {MTU} master br-{bridge} up")
            if bridge != MANAGEMENT:
                self._shape(tap, self._rate)

    def remove_node(self, node, rails):
        """Removes the node's TAPs; the bridges stay for the other nodes."""
        self._ip(f"route delete 10.244.{node}.0/24")
        for bridge in self.bridges(rails):
            self._ip(f"link delete {self.tap(node, bridge)}")

    def shape(self, rail, rate):
        """Sets the rate of a rail on all nodes."""
        for tap in re.findall(rf"t\d+-r{rail}\b", run(self.inside(["ip", "-o", "link"])).stdout):
            self._shape(tap, rate)

    def _shape(self, tap, rate):
        # RoCE has no congestion control of its own, and the rail imitates a lossless one: the queue holds twice what
        # one QP of rdma_rxe sends before it waits for an acknowledgement (128 packets of 4 KiB).
        run(self.inside(["tc", "qdisc", "replace", "dev", tap, "root", "tbf", "rate", rate,
                         "burst", "32kb", "limit", str(2 * 128 * MTU)]))

    def set_wire(self, node, rail, state):
        """Unplugs a node from a rail (`state` "down"), or plugs it in again ("up"). The node cannot detect it:
        packets to and from it are lost."""
        self._ip(f"link set {self.tap(node, f'r{rail}')} {state}")

    def _add_bridge(self, name):
        self._bridges.add(name)
        self._ip(f"link add br-{name} type bridge")
        self._ip(f"link set br-{name} mtu {MTU} up")

    @staticmethod
    def tap(node, bridge):
        return f"t{node}-{bridge}"

    def _ip(self, words):
        run(self.inside(["ip"] + words.split()))

    def delete(self):
        """Ends all processes inside, then removes the namespace with all its devices."""
        if not self.exists():
            return
        for pid in run(["ip", "netns", "pids", self.name]).stdout.split():
            run(["kill", "-9", pid], check=False)
        run(["ip", "netns", "delete", self.name])
