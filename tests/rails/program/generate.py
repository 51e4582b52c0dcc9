# SPDX-License-Identifier: Apache-2.0
"""Makes a program from a seed: the same one for the same seed, and a legal one. A pure function."""

import random

from . import legal
from .plan import FLOATS, FOR_GOOD, KILL, REDUCING, SIZES, STOP, Plan, World, members

TRANSPORTS = ("shm", "shm", "shm", "tcp", "tcp", "tcp", "pods", "pods", "verbs")
CALLS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "barrier", "all_gatherv",
         "reduce_scatterv", "all_to_all", "all_to_allv", "gather", "scatter")
PARTED = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "all_gatherv", "reduce_scatterv",
          "all_to_allv")
ALGORITHMS = {"all_reduce": ("ring", "recursive_doubling", "halving_doubling", "double_tree", "direct"),
              "all_gather": ("ring", "bruck"), "reduce_scatter": ("ring", "recursive_halving"),
              "broadcast": ("ring", "binomial", "scatter_allgather"), "reduce": ("ring", "binomial"),
              "all_to_all": ("pairwise", "bruck"), "gather": ("direct", "binomial"), "scatter": ("direct", "binomial")}
NIC_FAULTS = ("down", "lose", "hold")  # of simulated NICs
FAULTS = ("swallow", "swallow_in", "swallow_out", "narrow", "unplug", "carrier", "reset")
WINDOW_BYTES = 24 << 20
EXACT_RANKS = 8  # up to which the player's values (runtime/testing/values.h) have exact sums and products
# Kinds of programs, and their weights.
KINDS = {"quiet": 60, "stop": 6, "rail": 14, "rails": 5, "outage": 3, "kill": 5, "revoke": 2, "freeze": 2, "mixed": 1}


class _Maker:
    def __init__(self, seed, kinds, transports):
        self.random = random.Random(seed)
        self.seed = seed
        self.kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        self.steps = []
        self.faults = []
        self.world = self._world(transports)
        self.comms = {}     # living communicators: the world's ranks in them
        self.next_comm = 0
        self.next_window = 0
        self.windows = {}   # number of the window: its communicator
        self.zones = {}     # communicator: [first, last] index of the steps between which it may be used
        self.budget = self._budget()

    # ---- The world ----

    def _world(self, transports):
        pick = self.random
        needs_rails = self.kind in ("rail", "rails", "outage", "mixed")
        needs_processes = self.kind in ("stop", "kill", "freeze", "mixed")
        unfit = ["shm"] * needs_rails + ["verbs"] * needs_processes
        transport = pick.choice([name for name in transports if name not in unfit] or ["tcp"])
        ranks = pick.choice((3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 8, 9, 11, 13, 17))
        if transport == "verbs":
            ranks = 3 + ranks % 3  # simulated NICs are slow
        rails = pick.choice((2, 2, 3)) if needs_rails else pick.choice((1, 2, 2, 3))
        pods = ranks if transport == "verbs" else 1
        if transport in ("tcp", "pods"):
            pods = min(ranks - (transport == "pods"), pick.choice((2, 2, 3, 4)))
        order = [rank % pods for rank in range(ranks)] if pick.random() < 0.4 else sorted(
            rank % pods for rank in range(ranks))
        if pick.random() < 0.3:
            pick.shuffle(order)
        environment = {"RAILHEAD_TIMEOUT_SECONDS": "60", "RAILHEAD_START_TIMEOUT_SECONDS": "60",
                       "RAILHEAD_METRICS_PORT": "9402" if pick.random() < 0.15 else "0"}
        if self.kind == "freeze":
            environment["RAILHEAD_TIMEOUT_SECONDS"] = pick.choice(("2", "3"))
            environment["RAILHEAD_START_TIMEOUT_SECONDS"] = "15"
        environment["RAILHEAD_TRANSPORT"] = "auto" if transport == "pods" else transport
        if transport in ("tcp", "pods"):
            if pick.random() < 0.3:
                environment["RAILHEAD_AUTH"] = pick.choice(("frames", "encrypt", "require", "off"))
            if transport == "tcp" and pick.random() < 0.25:
                environment["RAILHEAD_ALGO"] = self._algorithms()
        if environment.get("RAILHEAD_AUTH") == "encrypt":
            transport = environment["RAILHEAD_TRANSPORT"] = "tcp"
        networked = transport in ("tcp", "pods")
        return World(transport, order, rails,
                     pick.choice(("own", "own", "shared")) if networked and rails > 1 else "own",
                     pick.choice((0, 0, 200, 1000)) if networked else 0, pick.choice(("env", "id")), environment)

    def _algorithms(self):
        chosen = self.random.sample(list(ALGORITHMS), self.random.randint(1, 3))
        return ",".join(f"{name}={self.random.choice(ALGORITHMS[name])}" for name in chosen)

    def _budget(self):
        """Bytes that all ranks together may move."""
        if self.world.transport in ("shm", "verbs"):
            return 12 << 20
        if not self.world.megabits:
            return 8 << 20
        return self.world.megabits * 125000 * self.world.rails // 4

    # ---- Steps ----

    def add(self, do, **fields):
        step = {"do": do, **fields}
        self.steps.append(step)
        return step

    def _new_comm(self, ranks):
        number = self.next_comm
        self.next_comm += 1
        self.comms[number] = ranks
        self.zones[number] = [len(self.steps), None]
        return number

    def _bytes(self, ranks):
        """Bytes of a rank's smaller buffer."""
        pick = self.random
        limit = pick.choice((0, 8, 64, 600, 5000, 5000, 20000, 70000, 70000, 300000, 1500000))
        limit = min(limit, max(0, self.budget) // (4 * ranks))
        chosen = pick.choice((limit, pick.randint(0, limit), pick.randint(0, limit)))
        self.budget -= chosen * ranks
        return chosen

    def call(self, comm, kinds=CALLS):
        pick = self.random
        ranks = len(self.comms[comm])
        kind = pick.choice(kinds)
        if kind == "barrier":
            return {"do": "call", "comm": comm, "kind": kind, "type": 0, "count": 0, "op": 0, "root": 0}
        type_ = pick.randrange(len(SIZES))
        step = {"do": "call", "comm": comm, "kind": kind, "type": type_, "op": 0, "root": pick.randrange(ranks)}
        size = self._bytes(ranks)
        count = size // SIZES[type_] // (ranks if kind in PARTED else 1)
        step["count"] = count
        if kind in ("all_gatherv", "reduce_scatterv"):
            step["counts"] = self._parts(count, ranks)
            step["gap"] = pick.choice((0, 0, 3)) if kind == "all_gatherv" else 0
        if kind == "all_to_allv":
            step["matrix"] = [self._parts(count // 2, ranks) for _ in range(ranks)]
            step["gap"] = pick.choice((0, 0, 5))
        if kind in REDUCING:
            step["op"] = pick.randrange(5 if type_ in FLOATS else 8)
            step["scaled"] = step["op"] == 0 and pick.random() < 0.2
            step["rounded"] = type_ in FLOATS and step["op"] in (0, 1, 4) and not step["scaled"] and pick.random() < 0.3
            if ranks > EXACT_RANKS and type_ in FLOATS:
                if step["op"] in (0, 4):  # more ranks add up to more than mantissas hold
                    step["rounded"] = True
                elif step["op"] == 1 and SIZES[type_] == 1:  # products would overflow
                    step["op"], step["rounded"] = 2, False
        windows = [window for window, its in self.windows.items() if its == comm]
        if windows and pick.random() < 0.7:
            step["window"] = pick.choice(windows)
        return step

    def _parts(self, count, ranks):
        return [self.random.choice((0, count, self.random.randint(0, 2 * count))) for _ in range(ranks)]

    def pair(self, comm, to_itself):
        ranks = len(self.comms[comm])
        sender = self.random.randrange(ranks)
        others = [rank for rank in range(ranks) if to_itself or rank != sender]
        type_ = self.random.randrange(len(SIZES))
        return {"do": "pair", "comm": comm, "sender": sender, "receiver": self.random.choice(others),
                "type": type_, "count": self._bytes(2) // SIZES[type_]}

    def group(self):
        parts = []
        for _ in range(self.random.randint(2, 6)):
            comm = self.random.choice(list(self.comms))
            parts.append(self.call(comm) if self.random.random() < 0.5 else self.pair(comm, True))
        return {"do": "group", "parts": parts}

    def split(self, comm, whole=False):
        pick = self.random
        ranks = self.comms[comm]
        colors = [0 if whole or pick.random() < 0.2 else pick.randrange(2) for _ in ranks]
        if not whole and pick.random() < 0.2:
            colors = [None if pick.random() < 0.3 else color for color in colors]
        keys = [pick.randrange(4) for _ in ranks]
        step = self.add("split", comm=comm, colors=colors, keys=keys, new={}, background=pick.random() < 0.2)
        for color in sorted({color for color in colors if color is not None}):
            chosen = sorted((at for at, own in enumerate(colors) if own == color), key=lambda at: (keys[at], at))
            step["new"][str(color)] = self._new_comm([ranks[at] for at in chosen])

    def shrink(self, comm, exclude):
        """Without these ranks; the communicator is not used afterwards."""
        ranks = [rank for at, rank in enumerate(self.comms[comm]) if at not in exclude]
        if self.zones[comm][1] is None:
            self.zones[comm][1] = len(self.steps)
        step = self.add("shrink", comm=comm, exclude=exclude, new=None, background=self.random.random() < 0.2)
        step["new"] = self._new_comm(ranks)
        return step["new"]

    def grow(self, comm, newcomers):
        self.zones[comm][1] = len(self.steps)
        step = self.add("grow", comm=comm, newcomers=newcomers, new=None)
        step["new"] = self._new_comm(self.comms[comm] + newcomers)
        self.destroy(comm)

    def destroy(self, comm):
        how = self.random.choice(("destroy", "destroy", "finalize"))
        whole = self.zones[comm][1] is None  # all its ranks are still in it
        for window, its in list(self.windows.items()):
            if its == comm:
                if whole and self.random.random() < 0.5:
                    self.add("unwindow", comm=comm, window=window)
                del self.windows[window]
        if self.zones[comm][1] is None:
            self.zones[comm][1] = len(self.steps)
        if how == "finalize":
            self.add("finalize", comm=comm)
        self.add("destroy", comm=comm)
        del self.comms[comm]

    def some_step(self, danger=False):
        """Adds a random step. In danger, ranks may die: communicators that would survive are not made then."""
        pick = self.random
        comm = pick.choice(list(self.comms))
        choice = pick.random()
        if choice < 0.62:
            self.steps.append(self.call(comm))
        elif choice < 0.70 and len(self.comms[comm]) > 1:
            self.steps.append(self.pair(comm, False))
        elif choice < 0.77:
            self.steps.append(self.group())
        elif choice < 0.85:
            self.add("compute", rank=pick.choice(self.comms[comm]), us=pick.choice((200, 3000, 30000)))
        elif choice < 0.90 and len(self.comms) < 6 and not (danger and self.kind == "revoke"):
            # All its ranks: if one dies, all calls of the new one fail.
            self.split(comm, whole=danger or pick.random() < 0.3)
            if pick.random() < 0.3:
                self.add("compute", rank=pick.choice(self.comms[comm]), us=pick.choice((100000, 700000)))
        elif danger:
            self.steps.append(self.call(comm, ("all_reduce", "all_gather", "barrier")))
        elif choice < 0.93 and len(self.windows) < 3:
            self.add("window", comm=comm, window=self.next_window, bytes=pick.choice((40000, 400000, 3000000)))
            self.windows[self.next_window] = comm
            self.next_window += 1
        elif choice < 0.96 and len(self.comms[comm]) > 2 and len(self.comms) < 6:
            if comm != 0:  # which others may have to join
                self.shrink(comm, sorted(pick.sample(range(len(self.comms[comm])), 1)))
                self.destroy(comm)
        elif choice < 0.98 and len(self.comms) > 1 and comm != 0:
            self.destroy(comm)
        else:
            self.steps.append(self.call(comm, ("all_reduce",)))

    # ---- Messages of rhIsend and rhIrecv ----

    def messages(self):
        """Puts transfers among the steps: posted anywhere while their communicator exists, waited for later."""
        pick = self.random
        extra = []  # (position, step)
        number = 0
        for comm, (first, last) in self.zones.items():
            last = len(self.steps) if last is None else last
            ranks = self._all_members[comm]
            if last <= first or pick.random() < 0.4:
                continue
            policy = {at: pick.choice(("exact", "exact", "source", "tag", "any")) for at in range(len(ranks))}
            sets = {}
            for _ in range(pick.randint(1, 10)):
                sender, receiver, tag = pick.randrange(len(ranks)), pick.randrange(len(ranks)), pick.randrange(3)
                how = policy[receiver]
                key = (receiver, *{"exact": (sender, tag), "source": (None, tag), "tag": (sender, None),
                                   "any": (None, None)}[how])
                sets.setdefault(key, []).append((sender, receiver, tag, self._bytes(2)))
            for key, wanted in sets.items():
                any_source, any_tag = key[1] is None, key[2] is None

                def place(low=0.0):
                    return pick.uniform(max(low, first - 1 + 1e-6), last - 1e-6)

                sends = sorted(place() for _ in wanted)
                posts = sorted(place() for _ in wanted)
                room = max(size for *_, size in wanted)
                for k, (sender, receiver, tag, size) in enumerate(wanted):
                    fields = {"message": number, "comm": comm, "sender": sender, "receiver": receiver, "tag": tag,
                              "bytes": size}
                    received = fields | {"any_source": any_source, "any_tag": any_tag,
                                         "room": room if any_source or any_tag else size + pick.choice((0, 0, 7))}
                    number += 1
                    # With a wildcard, others' messages may be earlier: all receives must be posted.
                    send_wait = max(posts) if any_source else max(posts[k], sends[k])
                    wait = max(*sends[:k + 1], posts[k])
                    extra += [(sends[k], {"do": "isend", **fields}), (posts[k], {"do": "irecv", **received}),
                              (place(max(send_wait, sends[k]) + 1e-9), {"do": "wait_send", **fields}),
                              (place(wait + 1e-9), {"do": "wait_recv", **received})]
        placed = [(float(at), 0, step) for at, step in enumerate(self.steps)]
        placed += [(at, 1, step) for at, step in extra]
        self.steps = [step for _, _, step in sorted(placed, key=lambda one: one[:2])]

    # ---- Programs ----

    def make(self):
        pick = self.random
        ranks = self.world.ranks()
        late = []
        deadly = self.kind in ("kill", "freeze", "revoke", "mixed")
        if not deadly and self.world.transport != "verbs" and pick.random() < 0.12 and ranks > 3:
            late = sorted(pick.sample(range(1, ranks), pick.randint(1, ranks - 2)))
        first = [rank for rank in range(ranks) if rank not in late]
        self._new_comm(first)
        self.add("init", comm=0, ranks=first, background=pick.random() < 0.2)
        self.zones[0][0] = 1
        if deadly:
            self._deadly()
        else:
            count = pick.randint(3, 30)
            for at in range(count):
                self.some_step()
                if late and at == count // 3:
                    self.grow(0, late)
        for comm in list(self.comms):
            if self.random.random() < 0.8 or deadly:
                self.destroy(comm)
        for comm in list(self.comms):
            if self.zones[comm][1] is None:
                self.zones[comm][1] = len(self.steps)
        self._all_members = members(Plan(self.seed, self.kind, self.world, self.steps))
        self.messages()
        for comm in list(self.comms):
            self.add("destroy", comm=comm)
        number = 0
        for step in self.steps:
            step["id"] = number
            number += 1
            for part in step.get("parts", ()):
                part["id"] = number
                number += 1
        self._faults()
        plan = Plan(self.seed, self.kind, self.world, self.steps, self.faults)
        legal.check(plan)
        if not deadly and pick.random() < 0.5:
            legal.reorder(plan, pick, 30)
        return plan

    def _deadly(self):
        """Ranks die, or a communicator is revoked, and the others go on in one without them."""
        pick = self.random
        for _ in range(pick.randint(0, 5)):
            self.some_step()
        everybody = self.comms[0]
        windowed = self.kind == "freeze" and self.world.transport != "tcp" and pick.random() < 0.6
        if windowed:
            self.add("window", comm=0, window=self.next_window, bytes=WINDOW_BYTES)
            self.windows[self.next_window] = 0
        # All communicators exist on all their ranks before anybody dies.
        self.add("call", comm=0, kind="barrier", type=0, count=0, op=0, root=0, blocking=True)
        victims = []
        if self.kind != "revoke":
            victims = sorted(pick.sample(everybody, pick.choice((1, 1, 2)) if len(everybody) > 3 else 1))
        begin = len(self.steps)
        for _ in range(pick.randint(2, 10)):
            self.some_step(danger=True)
            if windowed and pick.random() < 0.5:  # whose memory a rank may write that has been excluded
                self.add("call", comm=0, kind="all_reduce", type=2, op=0, root=0, count=WINDOW_BYTES // 16,
                         window=self.next_window)
        self.next_window += windowed
        for victim in victims:
            at = pick.randint(begin, len(self.steps))
            freeze = self.kind == "freeze"
            self.steps.insert(at, {"do": "alarm", "rank": victim, "us": pick.choice((1, 300, 2000, 20000)),
                                   "signal": STOP if freeze else KILL, "seconds": FOR_GOOD})
            for zone in self.zones.values():
                zone[0] += zone[0] > at
                if zone[1] is not None:
                    zone[1] += zone[1] > at
        if self.kind == "revoke":
            self.add("revoke", comm=0, rank=pick.choice(everybody))
        ending = [comm for comm, ranks in self.comms.items()
                  if (comm == 0 if not victims else set(ranks) & set(victims))]
        for comm in ending:
            self.zones[comm][1] = len(self.steps) - (self.kind == "revoke")
        for comm in ending:
            if not set(self.comms[comm]) <= set(victims):
                self.add("fail", comm=comm)
        new = self.shrink(0, [everybody.index(victim) for victim in victims])
        for comm in ending:
            self.add(pick.choice(("destroy", "abort")), comm=comm)
            self.windows = {window: its for window, its in self.windows.items() if its != comm}
            del self.comms[comm]
        if self.kind == "freeze":
            # Time for a rank that is no member any more to disturb what follows.
            self.add("compute", rank=self.comms[new][0], us=400000)
        for _ in range(pick.randint(1, 8)):
            self.some_step()

    # ---- Faults ----

    def _faults(self):
        pick = self.random
        pods = sorted(set(self.world.pods))
        usable = [step["id"] for step in self.steps]
        made = [step["id"] for step in self.steps if step["do"] in ("split", "shrink", "grow")]
        by_id = self.world.start == "id" or any(step["do"] == "grow" for step in self.steps)

        def fault(rail, pod=None, seconds=None):
            # Often while a communicator is made, or just afterwards.
            step = pick.choice(made if made and pick.random() < 0.3 else usable[1:])
            what = pick.choice(NIC_FAULTS if self.world.transport == "verbs" else FAULTS)
            if by_id and rail == 0 and what == "reset":
                what = "carrier"  # ranks meet over this rail: to reset these connections is to end the ranks
            self.faults.append({
                "what": what, "rail": rail, "pod": pick.choice(pods) if pod is None else pod,
                "rank": pick.randrange(self.world.ranks()), "step": step,
                "after": pick.choice((0.0, pick.uniform(0, 0.3))),
                "seconds": round(seconds or pick.choice((0.05, 0.4, 1.0, 2.0)) * pick.uniform(0.7, 1.3), 2)})

        if self.kind == "rail":
            fault(pick.randrange(self.world.rails))
        elif self.kind == "rails":  # two faults, and one rail that has none
            good = pick.randrange(self.world.rails)
            bad = [rail for rail in range(self.world.rails) if rail != good]
            for _ in range(2):
                fault(pick.choice(bad))
        elif self.kind == "outage":
            for rail in range(self.world.rails):
                fault(rail, seconds=pick.uniform(0.3, 1.5))
        elif self.kind == "mixed":
            good = pick.randrange(self.world.rails)
            fault(pick.choice([rail for rail in range(self.world.rails) if rail != good]))
        elif self.kind == "stop":
            for _ in range(pick.choice((1, 1, 2))):
                at = pick.randint(1, len(self.steps) - 1)
                number = max(step["id"] for step in self.steps) + 2 + len(self.steps)
                self.steps.insert(at, {"do": "alarm", "rank": pick.randrange(self.world.ranks()),
                                       "us": pick.choice((1, 500, 5000)), "signal": STOP, "id": number,
                                       "seconds": round(pick.choice((0.02, 0.3, 1.2, 2.5)), 2)})


def generate(seed, kinds=None, transports=TRANSPORTS):
    return _Maker(seed, kinds or KINDS, transports).make()
