#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random legal programs for the runtime library, beside a reference, with faults.

usage: programs.py [--seed N] [--count N] [--lanes N] [--kinds KIND=WEIGHT,...] [-o json] [--print]
"""

import argparse
import collections
import pathlib
import queue
import shutil
import sys
import threading
import time

from program import generate
from program.plan import from_json, to_text
from program.play import Lane, Starters

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "programs"


def run(plans, lanes, out, each):
    """Plays plans in several lanes; calls each(plan, findings, folder, seconds), one at a time."""
    out.mkdir(parents=True, exist_ok=True)
    starters = Starters(out)
    lock = threading.Lock()
    failures = queue.Queue()

    def work(number):
        lane = Lane(starters, out, f"l{number}")
        try:
            while True:
                with lock:
                    plan = next(plans, None)
                if plan is None:
                    return
                begin = time.monotonic()
                found, folder = lane.play(plan)
                with lock:
                    each(plan, found, folder, time.monotonic() - begin)
        except BaseException as failure:  # noqa: B902: the main thread raises it
            failures.put(failure)
            raise
        finally:
            lane.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    starters.close()
    if not failures.empty():
        raise failures.get()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--kinds")
    parser.add_argument("--transports", default=",".join(generate.TRANSPORTS))
    parser.add_argument("--plan")
    parser.add_argument("-o", choices=("text", "json"), default="text")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    kinds = None
    if options.kinds:
        kinds = {name: float(weight) for name, _, weight in (one.partition("=") for one in options.kinds.split(","))}

    def plans():
        if options.plan:
            yield from_json(pathlib.Path(options.plan).read_text("utf-8"))
            return
        for seed in range(options.seed, options.seed + options.count):
            yield generate.generate(seed, kinds, options.transports.split(","))

    if options.print:
        for plan in plans():
            print(plan.to_json() if options.o == "json" else to_text(plan))
        return 0
    failed = []
    spent = collections.Counter()
    begin = time.monotonic()

    def each(plan, found, folder, seconds):
        slow = [f'{plan.seed} {file.name} {line}' for file in sorted(folder.glob('rank-*.out')) for line in file.read_text().splitlines() if line.startswith('slow')]
        spent[plan.world.transport] += seconds
        if found:
            failed.append(plan.seed)
            print(f"seed {plan.seed} ({plan.world.transport}, {plan.world.ranks()} ranks, {seconds:.1f} s): {folder}")
            for text in found[:6]:
                print(f"    {text[:600]}")
        else:
            shutil.rmtree(folder)
        for text in slow:
            print(f"    slow: {text}", flush=True)
        if seconds > 8 or options.count == 1:
            print(f"seed {plan.seed}: {seconds:.2f} s", flush=True)

    run(plans(), min(options.lanes, options.count), OUT, each)
    print(f"{options.count - len(failed)} of {options.count} right in {time.monotonic() - begin:.1f} s; {dict(spent)}; failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
