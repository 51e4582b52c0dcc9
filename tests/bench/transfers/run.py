#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers between two processes of this machine: Railhead compared with Open MPI, MPICH and gloo.

Prints tables in Markdown; progress goes to standard error. For work on the library itself:

    run.py --quick --build build/release                   memory, quiet, less than a minute
    run.py --quick --libraries "C API" --sizes 8,4096      a few seconds
    run.py tcp --conditions busy --passes 1 --json FILE
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import re
import signal
import statistics
import sys
import time

import conditions
import libraries
import transfer_tables
from candidates import ROOT
from conditions import NotMeasured
from neighbours import Neighbours
from railbed.console import Failure
from tables import KI, MI
from transfer_tables import LIBRARIES, TRANSPORTS, Results, Section
from turns import say

PARTS = (*TRANSPORTS, "torch")
SIZES = (8, 64, 256, KI, 4 * KI, 16 * KI, 64 * KI, 256 * KI, MI)
PASSES, QUICK_PASSES = 3, 2
PATIENCE_SECONDS, QUICK_PATIENCE_SECONDS = 180, 5  # in total, to wait for other load
MAX_SIZE = 1 << 30


@dataclasses.dataclass(frozen=True)
class Condition:
    title: str
    begin: object  # context manager that yields a conditions.Place
    rounds: int
    round_ms: int
    best: bool     # the figure of the tables: the best round, or the median
    about: str


CONDITIONS = {
    "quiet": Condition(
        "Quiet", conditions.quiet, 9, 10, True,
        "Nothing else runs on purpose. Best of {rounds} rounds of about {ms} ms in each of {passes} passes."),
    "busy": Condition(
        "Busy", conditions.busy, 25, 20, False,
        "On each core another process spins, at the same priority. Median of the {passes} passes' medians of {rounds}\n"
        "rounds of about {ms} ms (fewer rounds, at least 5, if they take much longer)."),
    # A round is longer than the period after which the kernel grants more time.
    "limited": Condition(
        "Limited", functools.partial(conditions.limited, libraries.RANKS), 5, 200, False,
        "All processes of a job together get the time of {ranks} cores: they are in a control group with that limit,\n"
        "which they see as a container does. Median of the {passes} passes' medians of {rounds} rounds of about {ms} "
        "ms."),
}

ABOUT = """\
Ping-pong of two ranks ([tests/bench/transfers](../tests/bench/transfers/README.md)): one-way time, which is half of
a round trip. The libraries take turns. Loopback and shared memory only. Every message is checked: in timed rounds its
first and its last bytes, in other rounds all of them. *C API* is `rhIsend` or `rhIrecv`, `rhRequestWait` and
`rhRequestFree`; *libmpi* and *Open MPI* are one program with `MPI_Send` and `MPI_Recv`, built for Open MPI and run over
each library. Open MPI and MPICH have their defaults; over TCP, Open MPI uses `btl tcp,self`. Ratios above the goal are
bold.

{versions}"""

ABOUT_TORCH = """
*torch.distributed* is `send` and `recv` of two processes over both backends in turns; the C API beside it uses the
library of the same wheel, and its time is subtracted to get what torch and the backend add. gloo uses the loopback
device in both tables."""


@dataclasses.dataclass
class Measured:
    # (condition, transport, library, bytes) -> [(best us, median us) of each pass]
    times: dict = dataclasses.field(default_factory=dict)
    versions: dict = dataclasses.field(default_factory=dict)   # of each library
    others: dict = dataclasses.field(default_factory=dict)     # condition -> [share of the cores in each run]
    throttled: dict = dataclasses.field(default_factory=dict)  # condition -> [(throttled periods, periods)]
    reasons: dict = dataclasses.field(default_factory=dict)    # condition -> why it was not measured

    def results(self, condition):
        """Returns {transport: Results}, in the order of the tables."""
        found = {}
        for transport in TRANSPORTS:
            times = {(library, size): passes for (where, over, library, size), passes in self.times.items()
                     if (where, over) == (condition, transport)}
            if times:
                found[transport] = Results(times, CONDITIONS[condition].best)
        return found


def ask(library, condition, place, sizes):
    """Runs a library once. Returns its version, and {(library or backend, bytes): (best, median)}."""
    text = library.start(place.prefix, [condition.rounds, condition.round_ms, *sizes])
    head, *rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")] or [{}]
    if head.get("ranks") != libraries.RANKS or not re.search(library.reports, head["library"]):
        raise Failure(f"{library.name} over {library.transport} is not what ran: {head}")
    wrong = [row for row in rows if row["wrong"] != 0]
    if wrong:
        raise Failure(f"{library.name} over {library.transport} is wrong: {wrong[0]}")
    times = {(f"torch, {row['backend']}" if library.rows else library.name, row["bytes"]):
             (row["best_us"], row["median_us"]) for row in rows}
    if set(times) != {(name, size) for name in library.rows or (library.name,) for size in sizes}:
        raise Failure(f"{library.name} over {library.transport} did not measure what it was asked for: {rows}")
    return head["library"], times


def measure(options, found):
    """Runs every library under every condition, in turn."""
    done, begin = Measured(), time.monotonic()
    neighbours = Neighbours(options.patience)
    for number in range(1, options.passes + 1):
        for name in options.conditions:
            for library in found:
                if name in done.reasons:
                    continue
                say(f"[{time.monotonic() - begin:4.0f} s] pass {number} of {options.passes}: {name}, "
                    f"{library.transport}, {library.name}")
                neighbours.wait_for_quiet()
                try:
                    once(done, name, library, options.sizes, neighbours)
                except NotMeasured as reason:
                    say(f"{name} is not measured: {reason}")
                    done.reasons[name] = str(reason)
    return done


def once(done, name, library, sizes, neighbours):
    condition, answer = CONDITIONS[name], []

    def work():
        with condition.begin() as place:
            answer.extend((place, *ask(library, condition, place, sizes)))

    share = neighbours.share_during(work)
    place, version, times = answer
    done.others.setdefault(name, []).append(share)
    if place.throttled:
        done.throttled.setdefault(name, []).append(place.throttled)
    done.versions.setdefault(library.name if library.rows else f"{library.name}, {library.transport}", version)
    for (row, size), pair in times.items():
        done.times.setdefault((name, library.transport, row, size), []).append(pair)


def section(done, name, passes):
    condition = CONDITIONS[name]
    about = condition.about.format(rounds=condition.rounds, ms=condition.round_ms, passes=passes, ranks=libraries.RANKS)
    if name in done.reasons:
        return Section(condition.title, about, {}, done.reasons[name])
    results = done.results(name)
    about += "\n" + transfer_tables.noise(list(results.values()), done.others[name])
    if name in done.throttled:
        throttled, periods = map(sum, zip(*done.throttled[name], strict=True))
        about += (f"\nThe kernel throttled the jobs in {throttled} of {periods} periods of "
                  f"{conditions.PERIOD_US // 1000} ms.")
    return Section(condition.title, about, results)


def document(done, options):
    about = ABOUT.format(versions="\n".join(f"- {name}: {version}" for name, version in done.versions.items()))
    if "torch" in options.parts:
        about += "\n" + ABOUT_TORCH
    elif options.torch_missing:
        about += "\n\ntorch was not measured: there is no wheel (`make wheel`)."
    sections = [section(done, name, options.passes) for name in options.conditions]
    return f"{about}\n\n{transfer_tables.document(sections)}"


def as_json(done, options):
    return {"passes": options.passes, "versions": done.versions, "not_measured": done.reasons,
            "others": {name: statistics.mean(shares) for name, shares in done.others.items()},
            "rows": [{"condition": condition, "transport": transport, "library": library, "bytes": size,
                      "best_us": min(best for best, _ in passes),
                      "median_us": statistics.median(median for _, median in passes), "passes": passes}
                     for (condition, transport, library, size), passes in done.times.items()]}


def words_of(choices):
    def parse(text):
        words = [word.strip() for word in text.split(",")]
        for word in words:
            if word not in choices:
                raise argparse.ArgumentTypeError(f"'{word}' is not one of: {', '.join(choices)}")
        return words
    return parse


def sizes_of(text):
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = [0]
    if min(sizes) < 8 or max(sizes) > MAX_SIZE:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of bytes from 8 to {MAX_SIZE}")
    return sorted(set(sizes))


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="memory, tcp or torch; default: memory and tcp, and torch if `make wheel` has run")
    parser.add_argument("--quick", action="store_true",
                        help=f"memory, quiet, {QUICK_PASSES} passes; other options apply")
    parser.add_argument("--passes", type=positive, help=f"default: {PASSES}")
    parser.add_argument("--conditions", type=words_of(CONDITIONS), help=f"default: {','.join(CONDITIONS)}")
    parser.add_argument("--sizes", type=sizes_of, default=list(SIZES),
                        help=f"bytes; default: {','.join(map(str, SIZES))}")
    parser.add_argument("--libraries", type=words_of(LIBRARIES), default=list(LIBRARIES),
                        help=f"for memory and tcp; default: {','.join(LIBRARIES)}")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="folder of the build whose libraries are measured; default: build/release")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write all figures to this file")
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"'{part}' is not one of: {', '.join(PARTS)}")
    options.build = options.build.resolve()
    options.patience = QUICK_PATIENCE_SECONDS if options.quick else PATIENCE_SECONDS
    options.passes = options.passes or (QUICK_PASSES if options.quick else PASSES)
    options.conditions = options.conditions or (["quiet"] if options.quick else list(CONDITIONS))
    options.torch_missing = not options.parts and not options.quick and not libraries.has_wheel()
    if not options.parts:
        options.parts = ["memory"] if options.quick else [*TRANSPORTS, *(["torch"] if libraries.has_wheel() else [])]
    return options


def main():
    options = parse(sys.argv[1:])
    # So that running programs are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        found = libraries.build(options.parts, options.libraries, options.build)
        done = measure(options, found)
    except Failure as failure:
        say(f"error: {failure}" + (f" (log: {failure.log})" if failure.log else ""))
        return 1
    if options.json:
        options.json.write_text(json.dumps(as_json(done, options), indent=1) + "\n", "utf-8")
    print(document(done, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
