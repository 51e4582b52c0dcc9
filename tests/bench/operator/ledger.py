# SPDX-License-Identifier: Apache-2.0
"""Invariants of gangs on bad days, checked on snapshots of all pods and nodes: no I/O, no clock.

Each pod needs a whole node. A gang is whole if all of its pods have nodes, and half done if only some have one. A half
done gang could become whole if at least as many usable nodes are free as it lacks. Times at which the operator cannot
act (no leader, API server unavailable, a foreign webhook fails) do not count.
"""

import dataclasses

MOST_HALF = 30  # seconds that a gang may be half done while it could be whole


@dataclasses.dataclass
class Gang:
    pods: int
    came: float
    whole: float = 0         # time at which it first became whole
    half_seconds: float = 0  # time for which it has been half done although it could become whole
    state: str = "waits"     # or half, whole


def free_nodes(nodes, pods):
    held = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName") and is_alive(pod)}
    return [name for name, ready in nodes.items() if ready and name not in held]


def is_alive(pod):
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


class Ledger:
    def __init__(self):
        self.gangs = {}  # by name of the workload
        self.faults = []
        self._last = None

    def come(self, name, pods, now):
        self.gangs[name] = Gang(pods, now)

    def go(self, name):
        return self.gangs.pop(name)

    def look(self, pods, nodes, now, excused):
        """Checks a snapshot. `pods`: by workload; `nodes`: {name: whether new pods can run there}. If excused(name) is
        true, the time since the last snapshot does not count for that workload."""
        passed = now - self._last if self._last is not None else 0
        self._last = now
        all_pods = [pod for some in pods.values() for pod in some]
        self._check_nodes(all_pods)
        free = len(free_nodes(nodes, all_pods))
        for name, gang in self.gangs.items():
            # A failed pod no longer uses its node.
            mine = [pod for pod in pods.get(name, []) if pod.get("status", {}).get("phase") != "Failed"]
            placed = sum("nodeName" in pod["spec"] for pod in mine)
            gang.state = "whole" if placed >= gang.pods else "half" if placed else "waits"
            if gang.state == "whole" and not gang.whole:
                gang.whole = now
            if gang.state != "half":
                gang.half_seconds = 0
            # Missing pods are their controller's responsibility.
            elif len(mine) >= gang.pods and free >= gang.pods - placed:
                since = 0 if excused(name) else passed
                gang.half_seconds += since
                if gang.half_seconds > MOST_HALF >= gang.half_seconds - since:
                    self.faults.append(f"{name} has {placed} of {gang.pods} pods on nodes for {MOST_HALF} s, with {free} "
                                       "free nodes")

    def _check_nodes(self, pods):
        held = {}
        for pod in pods:
            if pod["spec"].get("nodeName") and is_alive(pod):
                held.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
        for node, names in held.items():
            if len(names) > 1:
                self.faults.append(f"{node} has {' and '.join(sorted(names))}")
