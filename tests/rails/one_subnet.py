# SPDX-License-Identifier: Apache-2.0
"""Two nodes whose NICs are all in one subnet, on one switch; or whose rails have addresses that are on no NIC."""

import os

from network import CONTROL, NODES, Network, run_tool

CARRIED = 0.95  # part of a rail's bytes that its interface must have counted


class OneSubnet(Network):
    """Interface railI has the addresses 10.78.0.I1 and 10.78.0.I2, or fd78::I1 and fd78::I2. `named`: the numbers of
    the interfaces that are rails. `sysctls`: of both nodes, by name."""

    def __init__(self, nics, named=None, ipv4=True, sysctls=()):
        super().__init__([None] * nics, ipv4)
        self.named = list(range(nics)) if named is None else list(named)
        self._sysctls = dict(sysctls)
        self._names["switch"] = f"railhead-{os.getpid()}-switch"

    def interfaces(self):
        return [f"rail{number}" for number in self.named]

    def address(self, node, rail=CONTROL):
        if rail == CONTROL:
            return super().address(node, rail)
        host = (rail + 1) * 10 + NODES.index(node) + 1
        return f"10.78.0.{host}" if self._ipv4 else f"fd78::{host}"

    def _connect(self):
        run_tool("ip", "-n", self._names["switch"], "link", "add", "switch", "type", "bridge")
        run_tool("ip", "-n", self._names["switch"], "link", "set", "switch", "up")
        self._cable("control", CONTROL)
        for node in NODES:
            for name, value in self._sysctls.items():
                run_tool(*self.inside(node, "sysctl", "-qw", f"{name}={value}"))
            for nic in range(len(self.megabits)):
                port = f"{node}{nic}"
                run_tool("ip", "-n", self._names[node], "link", "add", f"rail{nic}", "type", "veth", "peer", "name",
                         port, "netns", self._names["switch"])
                run_tool("ip", "-n", self._names["switch"], "link", "set", port, "master", "switch", "up")
                self._give(node, f"rail{nic}", nic)

    def hardware(self, node, nic):
        """Returns the interface's Ethernet address."""
        return run_tool(*self.inside(node, "cat", f"/sys/class/net/rail{nic}/address")).strip()

    def misdirect(self, nic, to):
        """Makes both nodes take the other's interface `to` for its interface `nic`, as after an ARP answer of the
        wrong one."""
        for node, other in (NODES, NODES[::-1]):
            run_tool("ip", "-n", self._names[node], "neighbour", "replace", self.address(other, nic), "dev",
                     f"rail{nic}", "lladdr", self.hardware(other, to), "nud", "reachable")

    def detour(self, nic, by):
        """Routes the TCP packets from interface `nic`'s address by interface `by`, on both nodes."""
        for node, other in (NODES, NODES[::-1]):
            ip = ("ip", "-n", self._names[node])
            run_tool(*ip, "route", "add", f"{self.address(other, nic)}/32", "dev", f"rail{by}", "table", "50")
            run_tool(*ip, "rule", "add", "from", self.address(node, nic), "ipproto", "tcp", "table", "50")

    def sent(self, node):
        """Returns the bytes that each interface has sent, by number."""
        return [int(run_tool(*self.inside(node, "cat", f"/sys/class/net/rail{nic}/statistics/tx_bytes")))
                for nic in range(len(self.megabits))]


class HostRoutes(Network):
    """Rails whose addresses are on dummy or loopback devices of the nodes, as with BGP to the host: the network
    routes them by one NIC of each node."""

    def __init__(self, devices):
        super().__init__([None])
        self._devices = list(devices)

    def interfaces(self):
        return self._devices

    def _connect(self):
        self._cable("control", CONTROL)
        for number, device in enumerate(self._devices):
            for node, other in (NODES, NODES[::-1]):
                host = NODES.index(node) + 1
                if device != "lo":
                    run_tool("ip", "-n", self._names[node], "link", "add", device, "type", "dummy")
                    run_tool("ip", "-n", self._names[node], "link", "set", device, "up")
                run_tool("ip", "-n", self._names[node], "address", "add", f"10.79.{number}.{host}/32", "dev", device)
                run_tool("ip", "-n", self._names[node], "route", "add", f"10.79.{number}.{3 - host}/32", "via",
                         self.address(other))
        for node in NODES:  # The first address of `lo` would be 127.0.0.1.
            if "lo" in self._devices:
                run_tool("ip", "-n", self._names[node], "address", "del", "127.0.0.1/8", "dev", "lo")
