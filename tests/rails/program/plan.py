# SPDX-License-Identifier: Apache-2.0
"""A program: the world it runs in, the steps of all ranks in one order, and the faults meanwhile. Pure functions.

Every rank does its own part of each step, in the order of the steps; transfers are posted in one step and waited for in
a later one. So a program ends if every call ends once all its ranks have made it. Steps and faults are dictionaries,
which JSON can hold; `do` says which kind a step is:

    init     comm                          its ranks start the first communicator
    call     comm, kind, type, count ...   a collective
    pair     comm, sender, receiver ...    rhSend and rhRecv
    group    parts                         calls and pairs between rhGroupStart and rhGroupEnd
    isend, irecv, wait_send, wait_recv     message, comm, sender, receiver, tag ...
    split    comm, colors, keys, new       `new`: the number of the communicator of each color
    shrink   comm, exclude, new
    grow     comm, newcomers, new
    window, unwindow, register, unregister comm, window
    compute  rank, us                      a rank stays away from the library
    alarm    rank, us, signal              a rank gets a signal a while after it has come here
    revoke   comm, rank
    fail     comm                          its ranks call it until it fails
    finalize, destroy, abort               comm

`sender`, `receiver`, `root` and `exclude` are ranks of the communicator; `rank` and `newcomers` are ranks of the world.
"""

import dataclasses
import json
import random

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
         "float8e4m3", "float8e5m2", "int16", "uint16")
SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2)
OPERATORS = ("sum", "prod", "max", "min", "avg", "band", "bor", "bxor")
FLOATS = range(6, 12)
REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatterv")
KILL, STOP = 9, 19
FOR_GOOD = -1.0  # seconds of a stop that lasts until the others have gone on


@dataclasses.dataclass
class World:
    transport: str  # shm, tcp (also inside pods), pods (memory inside pods), verbs (threads with simulated NICs)
    pods: list      # the pod of each rank
    rails: int = 1
    subnets: str = "own"   # of rails: own, shared
    megabits: int = 0      # rate of a rail; 0: as fast as the machine
    start: str = "env"     # env, id
    environment: dict = dataclasses.field(default_factory=dict)

    def ranks(self):
        return len(self.pods)

    def timeout(self):
        return int(self.environment["RAILHEAD_TIMEOUT_SECONDS"])


@dataclasses.dataclass
class Plan:
    seed: int
    kind: str  # generate.KINDS
    world: World
    steps: list
    faults: list = dataclasses.field(default_factory=list)
    swaps: dict = dataclasses.field(default_factory=dict)  # rank: its order of steps, if that is another one

    def to_json(self):
        return json.dumps(dataclasses.asdict(self), indent=1)


def from_json(text):
    fields = json.loads(text)
    fields["world"] = World(**fields["world"])
    fields["swaps"] = {int(rank): order for rank, order in fields["swaps"].items()}
    return Plan(**fields)


def chance(plan, step, rank, purpose=0):
    """Returns what decides about one rank's part of one step, independent of all other steps."""
    return random.Random(((plan.seed * 100003 + step["id"]) * 257 + rank) * 17 + purpose)


def members(plan):
    """Returns the world's ranks in each communicator, by its number, in the order of their ranks there."""
    found = {}
    for step in plan.steps:
        if step["do"] == "init":
            found[step["comm"]] = list(step["ranks"])
        elif step["do"] == "split":
            parent = found[step["comm"]]
            for color, number in step["new"].items():
                chosen = [at for at, own in enumerate(step["colors"]) if own == int(color)]
                chosen.sort(key=lambda at: (step["keys"][at], at))
                found[number] = [parent[at] for at in chosen]
        elif step["do"] == "shrink":
            found[step["new"]] = [rank for at, rank in enumerate(found[step["comm"]]) if at not in step["exclude"]]
        elif step["do"] == "grow":
            found[step["new"]] = found[step["comm"]] + list(step["newcomers"])
    return found


def dying(plan):
    """Returns the ranks that are killed or stopped for good, with the step of their alarm."""
    return {step["rank"]: step for step in plan.steps
            if step["do"] == "alarm" and (step["signal"] == KILL or step["seconds"] == FOR_GOOD)}


def parents(plan):
    """Returns the communicator from which each was made."""
    found = {}
    for step in plan.steps:
        if step["do"] in ("shrink", "grow"):
            found[step["new"]] = step["comm"]
        elif step["do"] == "split":
            found.update((number, step["comm"]) for number in step["new"].values())
    return found


def bytes_of(step, ranks):
    """Returns the bytes of the larger of a rank's buffers."""
    size = SIZES[step["type"]]
    if "counts" in step:
        return size * sum(step["counts"])
    if "matrix" in step:
        return size * max(sum(row) for row in step["matrix"])
    wide = step["kind"] in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
    return size * step["count"] * (ranks if wide else 1)


def _call_text(step, ranks):
    if step["kind"] == "barrier":
        return f"barrier in {step['comm']}"
    text = f"{step['kind']} in {step['comm']} of "
    if "counts" in step:
        text += "+".join(map(str, step["counts"]))
    elif "matrix" in step:
        text += " ".join("+".join(map(str, row)) for row in step["matrix"])
    else:
        text += str(step["count"])
    text += f" {TYPES[step['type']]}"
    if step["kind"] in REDUCING:
        text += f", {'scaled ' if step.get('scaled') else ''}{OPERATORS[step['op']]}"
        text += ", rounded" if step.get("rounded") else ""
    if step["kind"] in ("broadcast", "reduce", "gather", "scatter"):
        text += f", root {step['root']}"
    return text + (f", window {step['window']}" if "window" in step else "") + f" ({bytes_of(step, ranks)} bytes)"


def step_text(step, of):
    """Describes a step; `of` is members(plan)."""
    do, comm = step["do"], step.get("comm")
    if do == "call":
        return _call_text(step, len(of[comm]))
    if do == "pair":
        return (f"in {comm}, {step['sender']} sends {step['count']} {TYPES[step['type']]} to {step['receiver']}")
    if do == "group":
        return "group: " + "; ".join(step_text(part, of) for part in step["parts"])
    if do in ("isend", "wait_send"):
        return (f"{do} message {step['message']} in {comm}: {step['sender']} to {step['receiver']}, tag {step['tag']}, "
                f"{step['bytes']} bytes")
    if do in ("irecv", "wait_recv"):
        source = "any source" if step["any_source"] else f"from {step['sender']}"
        tag = "any tag" if step["any_tag"] else f"tag {step['tag']}"
        return f"{do} message {step['message']} in {comm}: {step['receiver']} {source}, {tag}, room {step['room']}"
    if do == "split":
        return f"split {comm}: " + ", ".join(
            f"{number} is {of[number]}" for number in step["new"].values())
    if do == "shrink":
        return f"shrink {comm} without {step['exclude']}: {step['new']} is {of[step['new']]}"
    if do == "grow":
        return f"grow {comm} by {step['newcomers']}: {step['new']} is {of[step['new']]}"
    if do == "compute":
        return f"rank {step['rank']} computes for {step['us'] / 1000:.1f} ms"
    if do == "alarm":
        what = ("is killed" if step["signal"] == KILL else "stops for good" if step["seconds"] == FOR_GOOD
                else f"stops for {step['seconds']} s")
        return f"rank {step['rank']} {what}, {step['us'] / 1000:.1f} ms later"
    if do == "init":
        return f"start {comm}: {step['ranks']}"
    rest = "".join(f", {name} {step[name]}" for name in ("rank", "window", "bytes") if name in step)
    return f"{do} {comm}{rest}"


def fault_text(fault):
    until = "for good" if fault["seconds"] < 0 else f"for {fault['seconds']:.2f} s"
    return (f"{fault['what']} rail {fault['rail']} at pod {fault['pod']}, {fault['after']:.2f} s after rank "
            f"{fault['rank']} comes to step {fault['step']}, {until}")


def to_text(plan):
    world, of = plan.world, members(plan)
    rails = "" if world.transport == "shm" else (
        f", {world.rails} rails" + ("" if world.transport == "verbs" else f" in {world.subnets} subnets, "
                                    + (f"{world.megabits} Mbit/s" if world.megabits else "not shaped")))
    lines = [f"seed {plan.seed}, {plan.kind}: {world.ranks()} ranks over {world.transport}, pods {world.pods}{rails}, "
             f"start by {world.start}",
             "environment: " + " ".join(f"{name}={value}" for name, value in sorted(world.environment.items()))]
    lines += [f"fault: {fault_text(fault)}" for fault in plan.faults]
    lines += [f"rank {rank} does its steps in this order: {' '.join(map(str, order))}"
              for rank, order in plan.swaps.items()]
    lines += [f"{step['id']:4d}  {step_text(step, of)}" for step in plan.steps]
    return "\n".join(lines)
