# SPDX-License-Identifier: Apache-2.0
"""A fabric as it is built: which switch each NIC is plugged into. Values only."""

import dataclasses
import json

SPINES = ("spine0", "spine1")


@dataclasses.dataclass
class Wiring:
    """Two leaves with nodes n0 to n5, and two spines over all."""

    leaves: dict   # name of each leaf: its nodes
    right: dict    # node: the switch of each rail
    wrong: dict = dataclasses.field(default_factory=dict)  # (node, rail): where it really is

    @property
    def rails(self):
        return len(self.right["n0"])

    def cables(self):
        """(node, rail, switch) of each NIC, as plugged."""
        return [(node, rail, self.wrong.get((node, rail), switch))
                for node, switches in self.right.items() for rail, switch in enumerate(switches)]

    def switches(self):
        return sorted({switch for switches in self.right.values() for switch in switches})

    def uplinks(self):
        return [(switch, spine) for switch in self.switches() for spine in SPINES]

    def exchanged(self, node, a, b):
        """The same with the cables of two rails of a node exchanged."""
        here = self.right[node]
        return dataclasses.replace(self, wrong={(node, a): here[b], (node, b): here[a]})

    def moved(self, node, rail, switch):
        """The same with one cable at another switch."""
        return dataclasses.replace(self, wrong={(node, rail): switch})


def rail_optimized(rails=3):
    """A switch for each rail; three nodes share theirs."""
    return Wiring({"su0-leaf": ["n0", "n1", "n2"], "su1-leaf": ["n3", "n4", "n5"]},
                  {f"n{n}": [f"su{n // 3}-leaf{rail}" for rail in range(rails)] for n in range(6)})


def fat_tree(rails=3):
    """All NICs of a node are at one switch."""
    return Wiring({"leaf0": ["n0", "n1", "n2"], "leaf1": ["n3", "n4", "n5"]},
                  {f"n{n}": [f"leaf{n // 3}"] * rails for n in range(6)})


def nodes_json(wiring, nic):
    """What `kubectl get nodes -o json` says, with the node agents' facts. `nic` names the interface
    and the device of a rail."""
    facts = json.dumps({"version": 1, "gpus": [], "rails": [
        {"rail": rail, "netdev": nic(rail)[0], "device": nic(rail)[1], "rateGbps": 100,
         "usable": True, "reason": ""} for rail in range(wiring.rails)]})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": node, "annotations": {
            "railhead.io/node-facts": facts}},
         "status": {"allocatable": {"nvidia.com/gpu": "8"}}} for node in wiring.right]})
