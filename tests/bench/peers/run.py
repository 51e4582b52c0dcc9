#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives between processes of this machine: Railhead compared with Open MPI, MPICH and gloo.

usage: run.py all_reduce|collectives [PASSES]
       prints the tables in Markdown; progress goes to standard error
"""

import dataclasses
import signal
import sys

import candidates
import collective_tables
import tables
import turns
from railbed.console import Failure
from tables import KI, MI

ALL_REDUCE_SIZES = (8, KI, 16 * KI, 64 * KI, MI, 4 * MI, 16 * MI, 64 * MI)
SIZES = (8, KI, 64 * KI, 256 * KI, MI, 8 * MI, 64 * MI)
LARGEST_BUFFER = 64 * MI

ABOUT_ALL_REDUCE = """\
One loop measures them all ([tests/bench/peers](../tests/bench/peers/README.md)): a round
of all-reduces, out of place, sums, begun by all ranks together, takes as long as it does for the
slowest rank. Best of {rounds} rounds in each of {passes} passes, in which the libraries take turns.
Loopback and shared memory only. [bench-collectives.md](bench-collectives.md) has the other collectives.

{versions}

{noise}

*Times as fast* is the best peer's time through that of Railhead over shared memory, with buffers
from anywhere, and with buffers from `rhMemAlloc` *in windows*, which ranks work on where they lie
(MPI's are from `MPI_Alloc_mem`, as its standard advises). *The limit* is
the time in which as many threads copy as much with non-temporal stores: each input read once,
each output written once. Caches can beat it, and below 1 MiB it means nothing; if 64 MiB beat it,
the machine's memory was faster in that minute than when the limit was measured. gloo's all-reduce is
in place: the copy that would put it out of place is not counted against it. MPI has no 16-bit
floats."""

ABOUT_COLLECTIVES = """\
One loop measures them all ([tests/bench/peers](../tests/bench/peers/README.md)): a round
of calls, begun by all ranks together, takes as long as it does for the slowest rank. Best of {rounds}
rounds in each of {passes} passes, in which the libraries take turns. Calls follow each other without
a pause, so a root that need not wait for the others may run ahead of them. fp32, sums, out of place
(gloo's all-reduce and reduce are in place), root 0; send and receive go around the ring of ranks.
Every rank checks what it has received. Loopback and shared memory only.

The *size* is that of a block: what one rank gives another in all-gather, reduce-scatter, all-to-all,
gather and scatter, and the whole buffer in the others. No buffer is larger than 64 MiB.

{versions}

{noise}

Buffers of Railhead are from anywhere, and, *in windows*, from `rhMemAlloc`, for the collectives that
use windows; MPI's are from `MPI_Alloc_mem`."""


def all_reduce_works(candidate, ranks):
    # The goals for 16-bit floats are for two ranks, and PyTorch is slow with more.
    types = candidate.types if ranks == 2 else candidate.types[:1]
    return types, [("all_reduce", size) for size in ALL_REDUCE_SIZES]


def all_reduce_document(measured):
    cells = {(ranks, kind, size, name): cell
             for (ranks, kind, _, size, name), cell in measured.cells().items()}
    return tables.document(tables.Results(cells, measured.bandwidth,
                                          [c.name for c in candidates.CANDIDATES]))


def collective_works(candidate, ranks):
    works = []
    for collective in candidate.collectives:
        blocks = ranks if collective in collective_tables.OF_BLOCKS else 1
        sizes = [0] if collective == "barrier" else SIZES
        works += [(collective, size) for size in sizes if blocks * size <= LARGEST_BUFFER]
    return ("fp32",), works


def collectives_document(measured):
    cells = {(collective, ranks, size, name): cell
             for (ranks, _, collective, size, name), cell in measured.cells().items()}
    return collective_tables.document(
        collective_tables.Results(cells, [c.name for c in candidates.CANDIDATES]))


@dataclasses.dataclass(frozen=True)
class Part:
    plan: turns.Plan
    about: str
    document: object  # function (Measured) -> Markdown


PARTS = {part.plan.name: part for part in (
    Part(turns.Plan("all_reduce", 5, 7, 10, all_reduce_works, memory=True),
         ABOUT_ALL_REDUCE, all_reduce_document),
    Part(turns.Plan("collectives", 3, 5, 10, collective_works), ABOUT_COLLECTIVES,
         collectives_document))}


def main():
    part = PARTS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if part is None:
        print(__doc__, file=sys.stderr)
        return 2
    plan = part.plan
    if len(sys.argv) > 2:
        plan = dataclasses.replace(plan, passes=int(sys.argv[2]))
    # So that running programs are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        candidates.build()
        measured = turns.measure(plan)
    except Failure as failure:
        turns.say(f"error: {failure}" + (f" (log: {failure.log})" if failure.log else ""))
        return 1
    print(part.about.format(
        rounds=plan.rounds, passes=plan.passes,
        versions="\n".join(f"- {name}: {version}" for name, version in measured.versions.items()),
        noise=tables.noise(measured.times, measured.others)))
    print()
    print(part.document(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
