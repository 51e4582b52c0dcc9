# SPDX-License-Identifier: Apache-2.0
"""Runs the candidates in turn, several times, and keeps the measurements of each run.

The best round of all passes counts: on a shared machine, slower rounds mostly measure other load. The output of each
run is in out/peers/.
"""

import dataclasses
import json
import statistics
import sys
import time

import candidates
from candidates import CANDIDATES, OUT
from neighbours import Neighbours
from railbed.console import Failure
from tables import Cell

RANKS = (2, 4, 8)
PATIENCE_SECONDS = 180  # seconds in total to wait for other load


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to measure. works(candidate, ranks) returns types, and pairs of collective and bytes."""
    name: str
    passes: int
    rounds: int
    round_ms: int
    works: object
    memory: bool = False  # whether to measure the memory's bandwidth, too


@dataclasses.dataclass
class Measured:
    times: dict      # (ranks, type, collective, bytes, candidate) -> [(best, median) of each pass]
    bandwidth: dict  # ranks -> bytes that as many threads read and write per second, for each pass
    versions: dict   # of each candidate
    others: list     # the share of the cores that other programs used, for each run

    def cells(self):
        return {key: Cell(min(best for best, _ in of), statistics.median(m for _, m in of))
                for key, of in self.times.items()}


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(plan):
    """Runs every candidate with every number of ranks, in turn."""
    done = Measured({}, {}, {}, [])
    neighbours = Neighbours(PATIENCE_SECONDS)
    begin = time.monotonic()
    with open(OUT / f"{plan.name}.jsonl", "w", encoding="utf-8") as raw:
        for number in range(1, plan.passes + 1):
            for ranks in RANKS:
                if plan.memory:
                    memory = candidates.memory_bandwidth(ranks)
                    print(json.dumps({"ranks": ranks, "memory": memory}), file=raw, flush=True)
                    done.bandwidth.setdefault(ranks, []).append(memory)
                for candidate in CANDIDATES:
                    say(f"[{time.monotonic() - begin:4.0f} s] pass {number} of {plan.passes}: "
                        f"{candidate.name}, {ranks} ranks")
                    neighbours.wait_for_quiet()
                    answer = []
                    done.others.append(neighbours.share_during(
                        lambda: answer.extend(ask(plan, candidate, ranks, raw))))
                    head, *rows = answer
                    done.versions[candidate.name] = head["library"]
                    for row in rows:
                        key = (ranks, row["type"], row["collective"], row["bytes"], candidate.name)
                        done.times.setdefault(key, []).append((row["best_us"], row["median_us"]))
    say(f"others took {statistics.mean(done.others):.0%} of the cores")
    return done


def ask(plan, candidate, ranks, raw):
    """Runs one candidate once. Returns what its rank 0 prints about the library, then its rows."""
    types, works = plan.works(candidate, ranks)
    text = candidate.start(ranks, [",".join(types), plan.rounds, plan.round_ms,
                                   *(f"{collective}:{size}" for collective, size in works)])
    head, *rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for row in rows:
        print(json.dumps({"candidate": candidate.name, "ranks": ranks} | row), file=raw, flush=True)
    if head["ranks"] != ranks or len(rows) != len(works) * len(types):
        raise Failure(f"{candidate.name} did not measure what it was asked for", log=raw.name)
    wrong = [row for row in rows if row["wrong"] != 0]
    if wrong:
        raise Failure(f"{candidate.name} is wrong: {wrong[0]}", log=raw.name)
    return [head, *rows]
