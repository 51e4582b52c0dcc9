# SPDX-License-Identifier: Apache-2.0
"""Machine types of nodes: their boards as QEMU options, and the buses of their rails."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Machine:
    rails: int
    board: tuple = ()       # QEMU options, in addition to those of every node
    rail_buses: tuple = ()  # the PCI bus of each rail's NIC; QEMU chooses if empty
    kernel: str = ""        # kernel parameters, in addition to those of every node

    def bus_of_rail(self, rail):
        return f",bus={self.rail_buses[rail]}" if self.rail_buses else ""


def gpu_server(numa_nodes=2, switches_per_numa_node=2):
    """Returns a typical GPU server: each NUMA node has a host bridge with PCIe switches, and each switch has one GPU
    (a display without driver: vendor 1234) and one rail's NIC."""
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
    """Returns a switch with two slots, gpuN and nicN. QEMU requires a unique number for each chassis."""
    return ["-device", f"pcie-root-port,id=root{number},bus={host},chassis={3 * number}",
            "-device", f"x3130-upstream,id=switch{number},bus=root{number}",
            "-device", f"xio3130-downstream,id=gpu{number},bus=switch{number},"
            f"chassis={3 * number + 1}",
            "-device", f"xio3130-downstream,id=nic{number},bus=switch{number},"
            f"chassis={3 * number + 2}"]
