# SPDX-License-Identifier: Apache-2.0
"""What must hold of gangs on bad days, from looks at all pods and nodes: no I/O, no clock.

A gang is whole when each of its pods has a node, which a pod has to itself. It is half done while some have one and
others not; it could be whole while there are as many free nodes that take pods as it lacks. Moments at which the operator
could not act (nobody leads, the API server is away, somebody's webhook refuses) do not count.
"""

import dataclasses

MOST_HALF = 30  # seconds that a gang may be half done while it could be whole


@dataclasses.dataclass
class Gang:
    pods: int
    came: float
    whole: float = 0         # when it was, for the first time
    half_seconds: float = 0  # since it was whole or untouched
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
        """`pods` by workload; `nodes`: {name: whether it takes pods}. `excused(name)`: for this workload the time since
        the last look does not count."""
        passed = now - self._last if self._last is not None else 0
        self._last = now
        all_pods = [pod for some in pods.values() for pod in some]
        self._check_nodes(all_pods)
        free = len(free_nodes(nodes, all_pods))
        for name, gang in self.gangs.items():
            # What has ended has its place no more, and its controller makes no other for it.
            mine = [pod for pod in pods.get(name, []) if pod.get("status", {}).get("phase") != "Failed"]
            placed = sum("nodeName" in pod["spec"] for pod in mine)
            gang.state = "whole" if placed >= gang.pods else "half" if placed else "waits"
            if gang.state == "whole" and not gang.whole:
                gang.whole = now
            if gang.state != "half":
                gang.half_seconds = 0
            # Pods that are not made yet are for their controller to make.
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
