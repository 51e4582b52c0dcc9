#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce between processes of this machine: Railhead beside Open MPI, MPICH and gloo.

usage: run.py [PASSES]     prints the tables in Markdown; what it is doing goes to standard error

Candidates take turns, and each one's best round of all passes counts: on a machine that is shared,
what is slower says more about the neighbours. What each run printed is kept in out/peers/.
"""

import json
import signal
import statistics
import sys
import time

import candidates
import tables
from candidates import CANDIDATES, OUT
from neighbours import Neighbours
from railbed.console import Failure

RANKS = (2, 4, 8)
SIZES = (8, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
ROUNDS = 7
ROUND_MS = 10
PATIENCE_SECONDS = 180  # with neighbours, in all

ABOUT = """\
One loop measures them all ([tests/bench/peers](../tests/bench/peers/README.md)): a round
of all-reduces, out of place, sums, begun by all ranks together, takes as long as it does for the
slowest rank. Best of {rounds} rounds in each of {passes} passes, in which the libraries take turns.
Loopback and shared memory only.

{versions}

{noise}

*Times as fast* is the best peer's time through that of Railhead over shared memory, with buffers
from anywhere, and with buffers from `rhMemAlloc` *in windows*, which ranks work on where they lie
(MPI's are from `MPI_Alloc_mem`, as its standard advises). *The limit* is
the time in which as many threads copy as much with non-temporal stores: each input read once,
each output written once. Caches can beat it, and below 1 MiB it says nothing; where 64 MiB beat it,
the machine's memory was faster in that minute than when the limit was measured. gloo's all-reduce is
in place: the copy that would put it out of place is not counted against it. MPI has no 16-bit
floats."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(passes):
    """Runs every candidate with every number of ranks, in turn. Returns Results, versions, and
    what to say of the noise."""
    times, bandwidth, versions, others = {}, {}, {}, []
    neighbours = Neighbours(PATIENCE_SECONDS)
    begin = time.monotonic()
    with open(OUT / "results.jsonl", "w", encoding="utf-8") as raw:
        for number in range(1, passes + 1):
            for ranks in RANKS:
                memory = candidates.memory_bandwidth(ranks)
                print(json.dumps({"ranks": ranks, "memory": memory}), file=raw, flush=True)
                bandwidth.setdefault(ranks, []).append(memory)
                for candidate in CANDIDATES:
                    say(f"[{time.monotonic() - begin:4.0f} s] pass {number} of {passes}: "
                        f"{candidate.name}, {ranks} ranks")
                    neighbours.wait_for_quiet()
                    answer = []
                    others.append(neighbours.share_during(
                        lambda: answer.extend(ask(candidate, ranks, raw))))
                    head, *rows = answer
                    versions[candidate.name] = head["library"]
                    for row in rows:
                        key = (ranks, row["type"], row["bytes"], candidate.name)
                        times.setdefault(key, []).append((row["best_us"], row["median_us"]))
    cells = {key: tables.Cell(min(best for best, _ in of), statistics.median(m for _, m in of))
             for key, of in times.items()}
    say(f"others took {statistics.mean(others):.0%} of the cores")
    return (tables.Results(cells, bandwidth, [c.name for c in CANDIDATES]), versions,
            tables.noise(times, others))


def ask(candidate, ranks, raw):
    """One run of one candidate: what its rank 0 says of the library, then a row for each size."""
    # The goals for 16-bit floats are for two ranks, and PyTorch is slow with more.
    types = candidate.types if ranks == 2 else candidate.types[:1]
    text = candidate.start(ranks, [",".join(types), ROUNDS, ROUND_MS, *SIZES])
    head, *rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for row in rows:
        print(json.dumps({"candidate": candidate.name, "ranks": ranks} | row), file=raw, flush=True)
    if head["ranks"] != ranks or len(rows) != len(SIZES) * len(types):
        raise Failure(f"{candidate.name} did not measure what it was asked for", log=raw.name)
    wrong = [row for row in rows if row["wrong"] != 0]
    if wrong:
        raise Failure(f"{candidate.name} sums wrongly: {wrong[0]}", log=raw.name)
    return [head, *rows]


def main():
    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    # So that what runs is ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        candidates.build()
        results, versions, noise = measure(passes)
    except Failure as failure:
        say(f"error: {failure}" + (f" (log: {failure.log})" if failure.log else ""))
        return 1
    compared = "\n".join(f"- {name}: {version}" for name, version in versions.items())
    print(ABOUT.format(rounds=ROUNDS, passes=passes, versions=compared, noise=noise))
    print()
    print(tables.document(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
