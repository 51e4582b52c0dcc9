#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random legal programs for the runtime library, whose every result is compared with a reference, and faults meanwhile.

usage: programs.py [--seed N] [--count N] [--kinds KIND=WEIGHT,...] [--transports NAME,...] [--lanes N]
       programs.py --seed N --print [-o json]     what the program does
       programs.py --seed N --repeat 20           plays it again and again
       programs.py --seed N --shrink              drops what does not matter for its failure
       programs.py --plan FILE ...                a program of -o json, in place of a seed

A seed stands for the same program as long as the generator is the same (program/generate.py). The last line of a run of
many is one for docs/long-runs.md. Exits with 1 if anything was wrong.
"""

import argparse
import collections
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from program import generate, smaller
from program.plan import from_json, to_text
from program.play import Lane, Starters

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402

OUT = ROOT / "out" / "programs"
PROGRESS_SECONDS = 10
MOST_FINDINGS = 6   # of a program, which are printed
SHRINK_SECONDS = 600
SHRINK_TRIES = 2    # until a program counts as one that does not fail


class Run:
    """Plays programs in several lanes."""

    def __init__(self, plans, count, stop_after):
        self._plans = plans
        self._count = count
        self._stop_after = stop_after
        self._lock = threading.Lock()
        self._begin = self._spoken = time.monotonic()
        self._problems = []  # of the generator or of this program
        self.done = collections.Counter()  # by kind
        self.failed = []     # seeds
        self.seconds = 0.0

    def _next(self):
        with self._lock:
            if self._problems or (self._stop_after and len(self.failed) >= self._stop_after):
                return None
            return next(self._plans, None)

    def _take(self, plan, found, folder, seconds):
        with self._lock:
            self.done[plan.kind] += 1
            if found:
                self.failed.append(plan.seed)
                print(f"seed {plan.seed}: {plan.kind}, {plan.world.ranks()} ranks over {plan.world.transport}, "
                      f"{seconds:.1f} s: {folder}")
                for text in found[:MOST_FINDINGS]:
                    print(f"    {text[:700]}")
            else:
                shutil.rmtree(folder)
            done = sum(self.done.values())
            now = time.monotonic()
            if self._count > 1 and (now - self._spoken > PROGRESS_SECONDS or done == self._count):
                self._spoken = now
                left = (now - self._begin) / done * (self._count - done)
                print(f"[{done}/{self._count}] {len(self.failed)} failed, about {left:.0f} s left", flush=True)

    def _work(self, starters, number):
        lane = Lane(starters, OUT, f"lane{number}")
        try:
            while (plan := self._next()) is not None:
                begin = time.monotonic()
                found, folder = lane.play(plan)
                self._take(plan, found, folder, time.monotonic() - begin)
        except BaseException as problem:  # the main thread raises it
            self._problems.append(problem)
        finally:
            lane.close()

    def play(self, lanes):
        OUT.mkdir(parents=True, exist_ok=True)
        starters = Starters(OUT)
        threads = [threading.Thread(target=self._work, args=(starters, number)) for number in range(lanes)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            print("interrupted: waiting for the programs that run", flush=True)
            self._plans = iter(())
            for thread in threads:
                thread.join()
        starters.close()
        self.seconds = time.monotonic() - self._begin
        if self._problems:
            raise self._problems[0]


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=8"], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or "unknown"


def summary(run, options):
    """Returns a row of the table in docs/long-runs.md."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(run.done.items()))
    failed = ", ".join(map(str, sorted(run.failed))) or "none"
    seeds = f"{options.seed}-{options.seed + options.count - 1}"
    return (f"| {time.strftime('%Y-%m-%d')} | {commit()} | {seeds} | {kinds} | {os.cpu_count()} cores, "
            f"{run.seconds / 60:.0f} min | {failed} |")


def _sort_of(finding):
    """What must stay the same while a program is made smaller."""
    for words in ("hangs", "wrong step", "names none", "where none may be", "came only after", "still", "other bits"):
        if words in finding:
            return words
    return "ended"


def make_smaller(plan):
    """Returns the smallest program that fails in one of the plan's ways, and its findings."""
    OUT.mkdir(parents=True, exist_ok=True)
    starters = Starters(OUT)
    lane = Lane(starters, OUT, "smaller")
    deadline = time.monotonic() + SHRINK_SECONDS
    best = {}

    def sorts(of):
        found = lane.play(of)[0]
        return {_sort_of(finding) for finding in found}, found

    try:
        wanted = set()
        for _ in range(10 * SHRINK_TRIES):
            wanted, found = sorts(plan)
            if wanted:
                break
        if not wanted:
            return None, []
        best.update(plan=plan, found=found)

        def fails(smaller_plan):
            for _ in range(SHRINK_TRIES):
                if time.monotonic() > deadline:
                    raise TimeoutError
                again, seen = sorts(smaller_plan)
                if again & wanted:
                    best.update(plan=smaller_plan, found=seen)
                    print(f"  {len(smaller.units(smaller_plan))} parts left", flush=True)
                    return True
            return False

        try:
            smaller.shrink(plan, fails)
        except (TimeoutError, KeyboardInterrupt):
            pass
    finally:
        lane.close()
        starters.close()
    return best["plan"], best["found"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=3 * os.cpu_count())
    parser.add_argument("--kinds", default="")
    parser.add_argument("--transports", default=",".join(generate.TRANSPORTS))
    parser.add_argument("--plan", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--stop-after", type=int, default=0, help="failures")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("-o", choices=("text", "json"), default="text")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # so that namespaces do not stay behind
        signal.signal(number, signal.default_int_handler)
    kinds = {name: float(weight) for name, _, weight in
             (one.partition("=") for one in options.kinds.split(",") if one)} or generate.KINDS

    def plans():
        if options.plan:
            yield from_json(options.plan.read_text("utf-8"))
            return
        for seed in range(options.seed, options.seed + options.count):
            yield generate.generate(seed, kinds, options.transports.split(","))

    show = (lambda plan: plan.to_json()) if options.o == "json" else to_text
    if options.print:
        for plan in plans():
            print(show(plan))
        return 0
    try:
        if options.shrink:
            plan, found = make_smaller(next(plans()))
            if plan is None:
                print("it does not fail")
                return 0
            print(show(plan))
            print("\n".join(found))
            return 1
        count = options.count * options.repeat
        run = Run(itertools.chain.from_iterable(plans() for _ in range(options.repeat)), count, options.stop_after)
        run.play(max(1, min(options.lanes, count)))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    right = sum(run.done.values()) - len(run.failed)
    print(f"{right} of {sum(run.done.values())} programs were right, in {run.seconds:.1f} s")
    if count > 1:
        print(summary(run, options))
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
