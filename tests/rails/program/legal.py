# SPDX-License-Identifier: Apache-2.0
"""Whether a program ends in the strictest reading of the interface, in which nothing is buffered: a call ends when all
ranks that take part in it have made it. Streams only ask for less. Pure functions.
"""

from .plan import members

TOGETHER = ("init", "call", "split", "shrink", "grow", "window", "unwindow", "finalize", "fail")
TRANSFERS = ("isend", "irecv", "wait_send", "wait_recv")
MOVABLE = ("call", "pair", "group", "compute", *TRANSFERS)


class Illegal(Exception):
    """A program that need not end."""


def taking_part(step, of):
    """Returns the world's ranks that do something in a step; `of` is members(plan)."""
    do = step["do"]
    if do == "group":
        return set().union(*(taking_part(part, of) for part in step["parts"]))
    if do in ("compute", "alarm", "revoke"):
        return {step["rank"]}
    if do == "grow":
        return {*of[step["comm"]], *step["newcomers"]}
    if do == "shrink":
        return set(of[step["new"]])
    ranks = of[step["comm"]]
    if do == "pair":
        return {ranks[step["sender"]], ranks[step["receiver"]]}
    if do in ("isend", "wait_send"):
        return {ranks[step["sender"]]}
    if do in ("irecv", "wait_recv"):
        return {ranks[step["receiver"]]}
    return set(ranks)


def orders(plan):
    """Returns the steps of each rank, in its order."""
    of = members(plan)
    found = {rank: [] for rank in range(plan.world.ranks())}
    for step in plan.steps:
        for rank in taking_part(step, of):
            found[rank].append(step)
    by_id = {step["id"]: step for step in plan.steps}
    for rank, order in plan.swaps.items():
        found[rank] = [by_id[number] for number in order]
    return found


def _same_wildcard(step):
    """Messages that each of several receives may get."""
    return (step["comm"], step["receiver"], None if step["any_tag"] else step["tag"])


class _Run:
    """Moves each rank through its steps as far as it comes."""

    def __init__(self, plan, order):
        self.of = members(plan)
        self.order = order
        self.at = dict.fromkeys(order, 0)
        self.arrived = {}   # step: ranks
        self.posted = set()  # ("isend" or "irecv", message)
        receives = [step for step in plan.steps if step["do"] == "irecv"]
        self.receive = {step["message"]: step for step in receives}
        self.sets = {}      # messages that share wildcard receives
        for step in receives:
            if step["any_source"]:
                self.sets.setdefault(_same_wildcard(step), []).append(step["message"])

    def _all_here(self, step):
        if step["do"] == "group":
            return all(self._here(part, self.arrived[step["id"]]) for part in step["parts"])
        return self._here(step, self.arrived[step["id"]])

    def _here(self, step, arrived):
        return taking_part(step, self.of) <= arrived

    def _passes(self, rank, step):
        do = step["do"]
        if do == "group":
            arrived = self.arrived[step["id"]]
            return all(self._here(part, arrived) for part in step["parts"] if rank in taking_part(part, self.of))
        if do in TOGETHER or do == "pair":
            return self._here(step, self.arrived[step["id"]])
        if do == "wait_send":
            receive = self.receive[step["message"]]
            wanted = self.sets.get(_same_wildcard(receive), ()) if receive["any_source"] else (step["message"],)
            return all(("irecv", message) in self.posted for message in wanted)
        if do == "wait_recv":
            if not step["any_source"]:
                return ("isend", step["message"]) in self.posted
            messages = self.sets[_same_wildcard(step)]
            sent = sum(("isend", message) in self.posted for message in messages)
            return sent > messages.index(step["message"])
        return True

    def _arrive(self, rank):
        if self.at[rank] == len(self.order[rank]):
            return
        step = self.order[rank][self.at[rank]]
        self.arrived.setdefault(step["id"], set()).add(rank)
        if step["do"] in ("isend", "irecv"):
            self.posted.add((step["do"], step["message"]))

    def ends(self):
        for rank in self.order:
            self._arrive(rank)
        moved = True
        while moved:
            moved = False
            for rank, steps in self.order.items():
                while self.at[rank] < len(steps) and self._passes(rank, steps[self.at[rank]]):
                    self.at[rank] += 1
                    self._arrive(rank)
                    moved = True
        return all(self.at[rank] == len(steps) for rank, steps in self.order.items())

    def stuck(self):
        return {rank: steps[self.at[rank]]["id"] for rank, steps in self.order.items()
                if self.at[rank] < len(steps)}


def check(plan):
    """Raises Illegal if the program need not end."""
    run = _Run(plan, orders(plan))
    if not run.ends():
        raise Illegal(f"seed {plan.seed} need not end: ranks stop at steps {run.stuck()}")


def _comms(step):
    if step["do"] == "group":
        return {part["comm"] for part in step["parts"]}
    return {step["comm"]} if "comm" in step else set()


def _may_swap(first, second):
    if first["do"] not in MOVABLE or second["do"] not in MOVABLE:
        return False
    if "compute" in (first["do"], second["do"]) or not _comms(first) & _comms(second):
        return True
    if first["do"] in TRANSFERS and second["do"] in TRANSFERS:
        return first["message"] != second["message"] and not (
            first["do"] == second["do"] and first["do"] in ("isend", "irecv"))
    return first["do"] in TRANSFERS or second["do"] in TRANSFERS


def reorder(plan, random, tries):
    """Lets ranks do some of their steps in another order, where the program still ends."""
    order = orders(plan)
    for _ in range(tries):
        rank = random.choice(list(order))
        steps = order[rank]
        if len(steps) < 2:
            continue
        at = random.randrange(len(steps) - 1)
        if not _may_swap(steps[at], steps[at + 1]):
            continue
        changed = steps[:at] + [steps[at + 1], steps[at]] + steps[at + 2:]
        if _Run(plan, order | {rank: changed}).ends():
            order[rank] = changed
            plan.swaps[rank] = [step["id"] for step in changed]
