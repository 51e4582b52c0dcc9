# SPDX-License-Identifier: Apache-2.0
"""Jobs of two processes whose rails fail and return in mid-transfer. A seed determines a job: its messages, its rails,
which of them fail, how, in which direction, when and for how long; but not the moments at which bytes are on their way.

Processes check every byte, and must end without an error; each rail must come back after its last outage.
"""

import dataclasses
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "rails"), str(ROOT / "tests" / "testbed")]

from net_abi import VERSIONS  # noqa: E402
from network import NODES, Network  # noqa: E402
from railbed.console import Failure  # noqa: E402
from two import OUT, Two  # noqa: E402

RATE = 400  # Mbit/s of a rail
# Kinds of faults: methods of Network.
BOTH_WAYS, ONE_WAY, AT_A_NODE = ("swallow", "reset", "narrow"), "swallow_at", "unplug"
RETURN_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Fault:
    rail: int
    kind: str
    node: str = ""  # of a fault at one node

    def begin(self, network):
        """Returns a function that ends the fault."""
        if self.kind == ONE_WAY:
            return network.swallow_at(self.node, self.rail)
        if self.kind == AT_A_NODE:
            return network.unplug(self.rail, self.node)
        return getattr(network, self.kind)(self.rail)


@dataclasses.dataclass(frozen=True)
class Outage:
    pause: float  # seconds of transfer before it
    faults: tuple  # that begin together
    seconds: float


@dataclasses.dataclass(frozen=True)
class Plan:
    seed: int
    versions: tuple  # of the sender's table, and of the receiver's
    rails: int
    connections: int
    largest: int  # bytes of a message
    auth: str
    outages: tuple


def plan_of(seed, most):
    """Returns the job of a seed, with at most so many outages."""
    draw = random.Random(seed)
    rails = draw.choice((2, 2, 2, 3, 4))

    def fault(rail):
        kind = draw.choice((*BOTH_WAYS, ONE_WAY, ONE_WAY, AT_A_NODE))
        return Fault(rail, kind, draw.choice(NODES) if kind in (ONE_WAY, AT_A_NODE) else "")

    def outage():
        # Now and then all rails fail, or one fails too shortly for anybody to notice.
        count = draw.choice((1, 1, 1, 1, 2, 2, rails))
        faults = tuple(map(fault, draw.sample(range(rails), count)))
        seconds = draw.choice((draw.uniform(0, 0.1), draw.uniform(0.1, 1), draw.uniform(1, 2.5)))
        if count == rails and all(one.kind == "reset" for one in faults):
            seconds = min(seconds, 1.0)  # a machine that refuses connections everywhere for 3 s has ended the process
        return Outage(draw.uniform(0, 0.6), faults, seconds)

    largest = draw.choice((4096, 1 << 16, 1 << 18, 1 << 20, 4 << 20, 64 << 20))
    connections = 1 if largest > 4 << 20 else draw.choice((1, 1, 2, 5))
    return Plan(seed, (draw.choice(VERSIONS), draw.choice(VERSIONS)), rails, connections, largest,
                draw.choice(("off", "off", "require", "frames", "encrypt")),
                tuple(outage() for _ in range(min(most, draw.randint(5, 15)))))


def _secret_of(auth):
    if auth == "off":
        return {}
    OUT.mkdir(parents=True, exist_ok=True)
    secret = OUT / "outages-secret"
    secret.write_text("a secret of jobs with outages, 32 bytes or more", "ascii")
    secret.chmod(0o600)
    return {"RAILHEAD_AUTH": auth, "RAILHEAD_SECRET_FILE": str(secret)}


def play(plan):
    """Returns the losses that the sender has logged."""
    more = _secret_of(plan.auth)
    with Network([RATE] * plan.rails) as network:
        names = network.interfaces()
        with Two(f"outages-{plan.seed}", versions=plan.versions, network=network, rails=(names, names), more=(more, more),
                 seed=plan.seed, largest=plan.largest, connections=plan.connections, endless=True) as two:
            two.wait_for(plan.connections)
            for outage in plan.outages:
                time.sleep(outage.pause)
                repairs = [fault.begin(network) for fault in outage.faults]
                time.sleep(outage.seconds)
                for repair in repairs:
                    repair()
                two.wait_for(two.receiver.done() + 1)
            two.wait_until(lambda: all(map(two.rail_is_up, range(plan.rails))), "all rails are back", RETURN_SECONDS)
            two.stop()
        return two.sender.text().count(": lost (")


def _commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=8"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"


def run(console, count, seed):
    """Plays jobs from this seed on until there were `count` outages. Returns a row of the table in docs/long-runs.md;
    raises Failure if a job has failed, after all of them."""
    begin, first = time.monotonic(), seed
    done = losses = together = 0
    failed, log = [], None
    while done < count:
        plan = plan_of(seed, count - done)
        console.note(f"{done} outages, seed {seed}")
        try:
            losses += play(plan)
        except Failure as failure:
            console.line(f"    seed {seed}: {failure}; the job: {plan}")
            failed.append(seed)
            log = log or failure.log
        done += len(plan.outages)
        together += sum(len(outage.faults) > 1 for outage in plan.outages)
        seed += 1
    row = (f"| {time.strftime('%Y-%m-%d')} | {_commit()} | {first}-{seed - 1} | {done}, {together} of several rails | {losses} | "
           f"{os.cpu_count()} cores, {(time.monotonic() - begin) / 60:.0f} min | {', '.join(map(str, failed)) or 'none'} |")
    if failed:
        raise Failure(f"{len(failed)} of {seed - first} jobs have failed: {row}", log=log)
    if not losses:
        raise Failure(f"no rail was lost in {done} outages")
    return row
