#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzz test for some minutes, as many at once as there are cores, and prints what each has
done. They begin with the stored corpora; inputs that reach new code go to out/fuzz/NAME/corpus, and what
breaks a parser to out/fuzz/NAME/crash-*. To keep a finding, mend the parser and put its file into the
stored corpus.

usage: tools/fuzz_more.py BUILD_FOLDER MINUTES [NAME...]     after a build with -DRAILHEAD_FUZZ=ON
RECORD=docs/fuzz.md names a file that gets the table, if nothing was found.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

MOST_MEMORY = 2048  # MiB of one fuzzer
SLOWEST_INPUT = 10  # seconds, after which an input counts as a hang
STATS = ("number_of_executed_units", "new_units_added", "peak_rss_mb")


def fuzz_tests(build, names):
    """Name, program and stored corpus of each, or of those with these names, as CMake has declared them."""
    listed = subprocess.run(
        ["ctest", "--test-dir", build, "--label-regex", "fuzz", "--show-only=json-v1"],
        capture_output=True, text=True, check=True)
    found = []
    for test in json.loads(listed.stdout)["tests"]:
        if names and test["name"] not in names:
            continue
        if "command" not in test:
            raise SystemExit(f"error: {test['name']} is not built in {build}")
        program, _, corpus = test["command"]
        found.append((test["name"], program, corpus))
    return found


def run(test, minutes):
    """Numbers of one fuzzer, and the last lines it wrote where it has found something."""
    name, program, stored = test
    folder = pathlib.Path("out/fuzz") / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    done = subprocess.run(
        [program, corpus, stored, f"-max_total_time={round(minutes * 60)}", "-print_final_stats=1",
         f"-rss_limit_mb={MOST_MEMORY}", f"-timeout={SLOWEST_INPUT}", f"-artifact_prefix={folder}/"],
        capture_output=True, text=True, errors="replace", check=False)
    seconds = time.monotonic() - begin
    (folder / "log").write_text(done.stderr)
    stats = {key: int(value) for key, value in re.findall(r"stat::(\w+):\s+(\d+)", done.stderr)}
    return name, done.returncode, seconds, [stats.get(key, 0) for key in STATS], done.stderr[-3000:]


def record(path, minutes, rows):
    """A page for people, with what was done and by which code."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=True).stdout.strip()
    lines = ["# What fuzzers have tried", "",
             f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}: each fuzz test for {minutes:g} minutes of "
             "one core, under AddressSanitizer",
             f"and UBSan, beginning with its stored corpus. Nothing was found. `RECORD={path} MINUTES={minutes:g} make "
             "fuzz-more` writes this page.", "",
             "| fuzz test | inputs | new in the corpus | MiB | seconds |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {stats[0]:,} | {stats[1]:,} | {stats[2]:,} | {seconds:.0f} |"
              for name, seconds, stats in rows]
    pathlib.Path(path).write_text("\n".join(lines) + "\n", "utf-8")


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    build, minutes, names = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    tests = fuzz_tests(build, names)
    if not tests:
        raise SystemExit(f"error: no fuzz test of {build} has one of the names {' '.join(names)}")
    failed, rows = [], []
    print(f"{'fuzz test':40} {'inputs':>12} {'new':>7} {'MiB':>6} {'seconds':>8}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, seconds, stats, end in pool.map(lambda test: run(test, minutes), tests):
            print(f"{name:40} {stats[0]:12,} {stats[1]:7,} {stats[2]:6,} {seconds:8.0f}"
                  f"{'' if code == 0 else '  FOUND'}", flush=True)
            rows.append((name, seconds, stats))
            if code != 0:
                failed.append((name, end))
    for name, end in failed:
        print(f"\n{name}: out/fuzz/{name}/log ends with\n{end}", file=sys.stderr)
    if not failed and "RECORD" in os.environ:
        record(os.environ["RECORD"], minutes, rows)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
