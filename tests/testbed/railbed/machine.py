# SPDX-License-Identifier: Apache-2.0
"""The machines that nodes can be: their boards, in QEMU's words, and where their rails plug in."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Machine:
    rails: int
    board: tuple = ()       # QEMU's options, beside those that every node has
    rail_buses: tuple = ()  # the PCI bus of each rail's NIC; QEMU's own choice when there are none

    def bus_of_rail(self, rail):
        return f",bus={self.rail_buses[rail]}" if self.rail_buses else ""


def gpu_server(numa_nodes=2, switches_per_numa_node=2):
    """A server as GPUs are sold in: each NUMA node has a host bridge, below it PCIe switches, and
    each switch has one GPU (a display without driver: vendor 1234) and one rail's NIC."""
    board = ["-machine", "q35"]
    for numa in range(numa_nodes):
        board += ["-object", f"memory-backend-ram,id=memory{numa},size=1G",
                  "-numa", f"node,nodeid={numa},cpus={numa},memdev=memory{numa}",
                  "-device", f"pxb-pcie,id=host{numa},bus=pcie.0,bus_nr={64 * (numa + 1)},"
                  f"numa_node={numa}"]
    switches = numa_nodes * switches_per_numa_node
    for switch in range(switches):
        board += _switch(switch, f"host{switch // switches_per_numa_node}")
        board += ["-device", f"bochs-display,bus=gpu{switch},romfile="]
    return Machine(switches, tuple(board), tuple(f"nic{switch}" for switch in range(switches)))


def _switch(number, host):
    """A switch with two slots, gpuN and nicN. QEMU wants a number of its own for each chassis."""
    return ["-device", f"pcie-root-port,id=root{number},bus={host},chassis={3 * number}",
            "-device", f"x3130-upstream,id=switch{number},bus=root{number}",
            "-device", f"xio3130-downstream,id=gpu{number},bus=switch{number},"
            f"chassis={3 * number + 1}",
            "-device", f"xio3130-downstream,id=nic{number},bus=switch{number},"
            f"chassis={3 * number + 2}"]
