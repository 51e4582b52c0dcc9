# SPDX-License-Identifier: Apache-2.0
"""The commands of each rank (player/player.h) for a program. Pure functions."""

from . import legal
from .plan import REDUCING, TYPES, chance, members

UINT8 = TYPES.index("uint8")


def tables(plan):
    """Returns what values the player computes once for all ranks: (type, operator, scaled, rounded, ranks)."""
    of = members(plan)
    calls = [part for step in plan.steps for part in step.get("parts", [step])]
    return sorted({(step["type"], 0 if step.get("scaled") else step["op"], int(step.get("scaled", False)),
                    int(step.get("rounded", False)), len(of[step["comm"]]))
                   for step in calls if step["do"] == "call" and step["kind"] in REDUCING}
                  | {(step["type"], 0, 1, 0, len(of[step["comm"]]))
                     for step in calls if step["do"] == "call" and step.get("scaled")})


class _Rank:
    def __init__(self, plan, of, rank):
        self.plan = plan
        self.of = of
        self.rank = rank
        self.lines = []
        self.queued = {}   # communicator: the stream with calls of it
        self.streams = chance(plan, {"id": 0}, rank, 1).random() < 0.4

    def add(self, verb, **fields):
        words = [verb, *(f"{name}={value}" for name, value in fields.items() if value is not None)]
        self.lines.append(" ".join(words))

    def settle(self, comm):
        """Waits for the stream that has calls of this communicator."""
        stream = self.queued.get(comm)
        if stream is not None:
            self.add("sync", stream=stream)
            self.queued = {own: its for own, its in self.queued.items() if its != stream}

    def stream(self, step):
        """Returns the stream of a call, or None."""
        comm = step["comm"]
        choice = chance(self.plan, {"id": step["id"] // 8}, self.rank, 2 + comm).randrange(4)
        chosen = choice if self.streams and choice < 2 and not step.get("blocking") else None
        if self.queued.get(comm) != chosen:
            self.settle(comm)
        if chosen is not None:
            self.queued[comm] = chosen
        return chosen

    def own(self, comm):
        return self.of[comm].index(self.rank)

    def call(self, step, streams=True):
        pick = chance(self.plan, step, self.rank)
        comm = step["comm"]
        if streams and pick.random() < 0.05:
            self.add("compute", us=pick.randint(1, 3000))
        fields = {"step": step["id"], "comm": comm, "kind": step["kind"], "type": step["type"], "op": step["op"],
                  "count": step["count"], "root": step["root"], "gap": step.get("gap"),
                  "scaled": 1 if step.get("scaled") else None, "rounded": 1 if step.get("rounded") else None,
                  "in_place": 1 if pick.random() < 0.3 else None, "keeps": 1 if pick.random() < 0.3 else None,
                  "shift": pick.choice((0, 0, 1, 3)), "shift2": pick.choice((0, 0, 1, 2)),
                  "window": step.get("window") if pick.random() < 0.9 else None}
        if "counts" in step:
            fields["counts"] = ",".join(map(str, step["counts"]))
        if "matrix" in step:
            own = self.own(comm)
            fields["counts"] = ",".join(map(str, step["matrix"][own]))
            fields["received"] = ",".join(str(row[own]) for row in step["matrix"])
        if streams:
            fields["stream"] = self.stream(step)
        self.add("call", **fields)

    def pair(self, step, streams=True):
        own, comm = self.own(step["comm"]), step["comm"]
        for verb, mine, peer in (("send", "sender", "receiver"), ("recv", "receiver", "sender")):
            if step[mine] == own:
                pick = chance(self.plan, step, self.rank)
                self.add(verb, step=step["id"], comm=comm, peer=step[peer], type=step["type"], count=step["count"],
                         shift=pick.choice((0, 0, 1, 5)), stream=self.stream(step) if streams else None)

    def group(self, step):
        parts = [part for part in step["parts"] if self.rank in legal.taking_part(part, self.of)]
        for part in parts:
            self.settle(part["comm"])
        # Any order of communicators; within one, that of the steps.
        pick = chance(self.plan, step, self.rank)
        comms = sorted({part["comm"] for part in parts})
        pick.shuffle(comms)
        if pick.random() < 0.5:
            parts.sort(key=lambda part: comms.index(part["comm"]))
        self.add("group_begin", step=step["id"])
        for part in parts:
            (self.call if part["do"] == "call" else self.pair)(part, False)
        self.add("group_end", step=step["id"])

    def transfer(self, step):
        sends, comm = step["do"] == "isend", step["comm"]
        pick = chance(self.plan, step, self.rank, 1 if sends else 2)
        if sends:
            self.add("isend", step=step["id"], comm=comm, request=2 * step["message"], peer=step["receiver"],
                     tag=step["tag"], type=UINT8, count=step["bytes"], shift=pick.choice((0, 1, 7)))
        else:
            self.add("irecv", step=step["id"], comm=comm, request=2 * step["message"] + 1,
                     peer=-1 if step["any_source"] else step["sender"], tag=-1 if step["any_tag"] else step["tag"],
                     type=UINT8, count=step["room"], shift=pick.choice((0, 1, 7)))
        if pick.random() < 0.2:
            self.add("test", request=2 * step["message"] + (not sends))

    def made(self, comm):
        return {"rank": self.own(comm), "ranks": len(self.of[comm])}

    def step(self, step):
        do, comm = step["do"], step.get("comm")
        background = 1 if step.get("background") else None
        if do == "init":
            self.add("init", step=step["id"], comm=comm, how=self.plan.world.start, id="id-init", **self.made(comm),
                     background=background)
        elif do in ("call", "pair", "group"):
            getattr(self, do)(step)
        elif do in ("isend", "irecv"):
            self.transfer(step)
        elif do in ("wait_send", "wait_recv"):
            self.add("wait", request=2 * step["message"] + (do == "wait_recv"))
        elif do == "compute":
            self.add("compute", us=step["us"])
        elif do == "alarm":
            self.add("alarm", us=step["us"], signal=step["signal"])
        elif do == "grow":
            self.settle(comm)
            old = self.rank in self.of[comm]
            self.add("grow", step=step["id"], comm=comm if old else None, new=step["new"], id=f"id-{step['id']}",
                     makes=1 if self.of[comm][0] == self.rank else None, **self.made(step["new"]))
        else:
            self.settle(comm)
            if do == "split":
                own = self.own(comm)
                color = step["colors"][own]
                fields = {} if color is None else {"new": step["new"][str(color)], "color": color,
                                                   **self.made(step["new"][str(color)])}
                self.add("split", step=step["id"], comm=comm, key=step["keys"][own], background=background, **fields)
            elif do == "shrink":
                self.add("shrink", step=step["id"], comm=comm, new=step["new"], background=background,
                         exclude=",".join(map(str, step["exclude"])), **self.made(step["new"]))
            else:
                self.add(do, step=step["id"], comm=comm, window=step.get("window"), bytes=step.get("bytes"))


def commands(plan):
    """Returns the lines of each rank."""
    of = members(plan)
    found = {}
    order = legal.orders(plan)
    for rank, steps in order.items():
        one = _Rank(plan, of, rank)
        for comm, ranks in of.items():  # what messages will come, in their senders' order
            for sender, other in enumerate(ranks):
                for step in order[other]:
                    if step["do"] == "isend" and step["comm"] == comm and ranks[step["receiver"]] == rank and \
                            step["sender"] == sender:
                        one.add("expect", comm=comm, peer=sender, tag=step["tag"], step=step["id"], bytes=step["bytes"])
        last = len(steps)
        while last > 0 and steps[last - 1]["do"] == "destroy":
            last -= 1
        for step in steps[:last]:
            one.step(step)
        ends = steps[last:]
        chance(plan, {"id": 0}, rank, 99).shuffle(ends)
        for step in ends:
            one.step(step)
        found[rank] = one.lines
    return found
