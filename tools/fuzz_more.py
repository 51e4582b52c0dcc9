#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each fuzz test for MINUTES of CPU time, and prints the results. The tests begin with their stored corpora.
Inputs that reach new code go to out/fuzz/NAME/corpus, inputs that break a parser to out/fuzz/NAME/crash-*. To keep a
finding, fix the parser and add the file to the stored corpus.

usage: tools/fuzz_more.py BUILD_FOLDER MINUTES [NAME...]     after a build with -DRAILHEAD_FUZZ=ON
RECORD=docs/fuzz.md names a page that gets a row for each program. A call continues where the page ends: each turn of
SLICE seconds goes to the fuzz test with the least CPU time. SIGINT and SIGTERM end it; work done until then counts.
Minutes of another build of a program do not count. JOBS is the number of concurrent tests (default: cores).
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

MOST_MEMORY = 2048  # maximum memory of a fuzzer, MiB
SLOWEST_INPUT = 60  # wall-clock seconds after which an input counts as a hang; other programs may run, too
SLICE = 180  # CPU seconds of a turn
LOOK = 0.5  # seconds between two readings of the CPU time
STATS = ("number_of_executed_units", "new_units_added", "peak_rss_mb")
# Order among tests with equal time: first bytes that any host or pod may send, then input of tenants, then the rest.
FIRST = (
    "railhead_rail_handshake_fuzz", "railhead_bootstrap_handshake_fuzz", "railhead_bootstrap_node_fuzz",
    "railhead_bootstrap_multiplexer_fuzz",
    "railhead_tcp_frames_fuzz", "railhead_kube_http_fuzz", "railhead_metrics_request_fuzz", "railhead_verbs_address_fuzz",
    "railhead_agreement_fuzz", "railhead_transfers_note_fuzz", "railhead_recorder_position_fuzz",
    "railhead_operator_admission_fuzz", "railhead_gangs_objects_fuzz", "railhead_verdict_page_fuzz",
    "railhead_job_secret_fuzz", "railhead_verdict_facts_fuzz", "railhead_printable_text_fuzz",
    "railhead_metrics_families_fuzz", "railhead_preflight_facts_fuzz", "railhead_nri_fuzz",
)
ROW = re.compile(r"^\| (\w+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| `(\w+)` \| ([\d-]+) \|$",
                 re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Row:
    """Results of one program so far."""

    program: str  # the first digits of its SHA-256
    seconds: float = 0  # of CPU time
    inputs: int = 0
    new: int = 0
    mebibytes: int = 0
    day: str = ""


def fuzz_tests(build, names):
    """Returns {name: (program, stored corpus)} of the fuzz tests that CMake declares, or of those in `names`."""
    listed = subprocess.run(
        ["ctest", "--test-dir", build, "--label-regex", "fuzz", "--show-only=json-v1"],
        capture_output=True, text=True, check=True)
    found = {}
    for test in json.loads(listed.stdout)["tests"]:
        if names and test["name"] not in names:
            continue
        if "command" not in test:
            raise SystemExit(f"error: {test['name']} is not built in {build}")
        program, _, corpus = test["command"]
        found[test["name"]] = program, corpus
    return found


def cpu_seconds(pid):
    """Returns the CPU seconds of a child that has not been waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(name, program, stored, seconds, stopping):
    """Runs a fuzzer. Returns its exit code, CPU seconds and numbers, and the last lines of its output."""
    folder = pathlib.Path("out/fuzz") / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    with open(folder / "log", "w+", encoding="utf-8", errors="replace") as log:
        child = subprocess.Popen(
            [program, corpus, stored, "-print_final_stats=1", f"-rss_limit_mb={MOST_MEMORY}",
             f"-timeout={SLOWEST_INPUT}", f"-artifact_prefix={folder}/"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, process_group=0)
        asked = False
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            used = cpu_seconds(child.pid)
            # In its first second it may not handle the signal yet.
            if not asked and (used >= seconds or (stopping.is_set() and used > 1)):
                child.send_signal(signal.SIGUSR1)  # it ends after its current input
                asked = True
            time.sleep(LOOK)
        used = cpu_seconds(child.pid)
        code = child.wait()
        log.seek(0)
        said = log.read()
    stats = {key: int(value) for key, value in re.findall(r"stat::(\w+):\s+(\d+)", said)}
    return code, used, [stats.get(key, 0) for key in STATS], said[-3000:]


def read_record(path):
    """Reads the rows of a page that record() wrote, by name."""
    if not path or not os.path.exists(path):
        return {}
    rows = {}
    for name, seconds, inputs, new, mebibytes, program, day in ROW.findall(pathlib.Path(path).read_text("utf-8")):
        numbers = [int(number.replace(",", "")) for number in (seconds, inputs, new, mebibytes)]
        rows[name] = Row(program, *numbers, day)
    return rows


def record(path, rows):
    """Writes a page for people, which read_record() can parse."""
    lines = ["# What fuzzers have tried", "",
             "Each fuzz test under AddressSanitizer and UBSan, beginning with its stored corpus. Nothing was found by "
             "the programs below.",
             f"`RECORD={path} MINUTES=10 make fuzz-more` goes on with those that have had less than ten minutes of "
             "CPU time.", "",
             "| fuzz test | CPU seconds | inputs | new in the corpus | MiB | program | until |",
             "|---|---|---|---|---|---|---|"]
    lines += [f"| {name} | {row.seconds:,.0f} | {row.inputs:,} | {row.new:,} | {row.mebibytes:,} | `{row.program}` | "
              f"{row.day} |" for name, row in sorted(rows.items()) if row.seconds]
    unfinished = pathlib.Path(f"{path}.new")
    unfinished.write_text("\n".join(lines) + "\n", "utf-8")
    unfinished.replace(path)


class Turns:
    """Decides which fuzz test runs next, and keeps the results of all."""

    def __init__(self, tests, minutes, path):
        self._tests = tests
        self._goal = minutes * 60
        self._path = path
        self._lock = threading.Lock()
        self._running = set()
        self.failed = {}
        self.stopping = threading.Event()
        before = read_record(path)
        self._rows = dict(before)  # rows of other fuzz tests stay on the page
        for name, (program, _) in tests.items():
            digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:12]
            same = name in before and before[name].program == digest
            self._rows[name] = before[name] if same else Row(digest)

    def _next(self):
        """Returns the fuzz test with the least time, and its maximum run time; None if no test remains."""
        def order(name):
            place = FIRST.index(name) if name in FIRST else len(FIRST)
            return round(self._rows[name].seconds / SLICE), place, name

        with self._lock:
            # A program may stop late or early by some inputs: the rest of its minutes may be shorter than a turn.
            waiting = [name for name in self._tests if name not in self._running and name not in self.failed
                       and self._rows[name].seconds < self._goal - 0.5]
            if not waiting or self.stopping.is_set():
                return None
            name = min(waiting, key=order)
            self._running.add(name)
            return name, min(SLICE, self._goal - self._rows[name].seconds)

    def work(self):
        while (turn := self._next()) is not None:
            name, seconds = turn
            code, used, (inputs, new, mebibytes), end = run(name, *self._tests[name], seconds, self.stopping)
            with self._lock:
                self._running.discard(name)
                row = self._rows[name]
                row = Row(row.program, row.seconds + used, row.inputs + inputs, row.new + new,
                          max(row.mebibytes, mebibytes), time.strftime("%Y-%m-%d", time.gmtime()))
                print(f"{name:40} {row.inputs:14,} {row.new:8,} {row.mebibytes:6,} {row.seconds:8.0f}"
                      f"{'' if code == 0 else '  FOUND'}", flush=True)
                if code != 0:
                    self.failed[name] = end
                self._rows[name] = row if code == 0 else Row(row.program)
                if self._path:
                    record(self._path, self._rows)


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    build, minutes, names = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    tests = fuzz_tests(build, names)
    if not tests:
        raise SystemExit(f"error: no fuzz test of {build} has one of the names {' '.join(names)}")
    turns = Turns(tests, minutes, os.environ.get("RECORD"))
    print(f"{'fuzz test':40} {'inputs':>14} {'new':>8} {'MiB':>6} {'seconds':>8}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: turns.stopping.set())
    jobs = int(os.environ.get("JOBS", os.cpu_count()))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(turns.work) for _ in range(jobs)]:
            worker.result()
    for name, end in turns.failed.items():
        print(f"\n{name}: out/fuzz/{name}/log ends with\n{end}", file=sys.stderr)
    raise SystemExit(1 if turns.failed else 0)


if __name__ == "__main__":
    main()
