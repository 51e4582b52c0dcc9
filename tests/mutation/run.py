#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puts faults into production code, one at a time, and says which unit test notices each.

usage: tests/mutation/run.py [COUNT [SEED]]     30 faults, seed 1

A seed stands for the same faults as long as the sources are the same. Faults that do not compile are not
counted. Each is put into a clone of what is committed (out/mutation). The tests beside the changed file run
first, for all faults; then, for those that were not noticed, every test program that contains the file, until
a test fails. Only what runs is built.

Tests that take longer than five times their time without a fault, and 30 s, count as a failure. A
failure that looks like one of time is repeated without the fault: a test that fails there too says nothing
about the fault, and is left out. Results are kept in out/mutation.json, so that an interrupted run goes on
where it ended; a fault that no test noticed is tried again once tests have changed.

A fault that no test notices is either harmless (an optimisation, the text of a log) or a missing test: a
person decides (docs/mutation.md). Progress goes to stderr, a table in Markdown to stdout.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLONE = ROOT / "out" / "mutation"
BUILD = CLONE / "build" / "release"
STATE = ROOT / "out" / "mutation.json"
FOLDERS = ("base", "fabric", "kube", "jobs", "device-plugin", "placement", "operator", "cli", "runtime")
NOT_PRODUCTION = re.compile(r"_(test|fuzz|bench)\.cc$|/testing/|/testdata/|fake_|_for_test")
BUILD_SECONDS = 3600
CLEAN_SECONDS = 1800   # of a program without a fault
SLOW = ("railhead_conformance_test",)  # minutes: not among the tests beside a file
SHARDS = 4             # processes of one program; half of what tests do is waiting
MOST_MEMORY = 6 << 30  # of one process: a fault may take all there is
ABOUT_TIME = re.compile(r"deadline|timed? ?out|within \d|elapsed|did not (end|finish|become)", re.IGNORECASE)

# (what is replaced, by what). Spaces around operators keep templates and pointers out.
SWAPS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), ("if (!", "if ("),
         ("return true;", "return false;"), ("return false;", "return true;"),
         ("std::min(", "std::max("), ("std::max(", "std::min("), (" += ", " -= "), ("++", "--"))
# A statement of one line that is a call: it is left out.
CALL = re.compile(r"^(\s+)(?!return\b|co_return\b|throw\b|delete\b|else\b|if\b)[\w:.>\-]+(\[[^\]]*\])?\([^{}]*\);$")
NOT_CODE = re.compile(r"^\s*(//|#|\*)|static_assert|LOG\(|spdlog|^\s*case ")


def log(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def git(*words):
    return subprocess.run(["git", *words], cwd=CLONE, capture_output=True, text=True, check=True).stdout


def production():
    listed = git("ls-files", "--", *(f"{folder}/*.cc" for folder in FOLDERS)).split()
    return [name for name in sorted(listed) if not NOT_PRODUCTION.search(name)]


def sites():
    """All (path, line number, new line), in a fixed order."""
    for name in production():
        for number, line in enumerate((CLONE / name).read_text("utf-8").splitlines()):
            code = re.sub(r'"(\\.|[^"\\])*"', lambda text: "\0" * len(text[0]), line)  # texts are left alone
            code = re.sub(r"//.*", lambda text: "\0" * len(text[0]), code)
            if NOT_CODE.search(line):
                continue
            for old, new in SWAPS:
                begin = code.find(old)
                if begin >= 0:
                    yield name, number, line[:begin] + new + line[begin + len(old):]
            call = CALL.match(code)
            if call:
                yield name, number, f"{call[1]};"


class State:
    """What is known, in a file: seconds of programs, and results of faults."""

    def __init__(self):
        # A result stands as long as what it is about: "noticed" for the sources, "not noticed" for the tests too.
        names = set(production())
        digests = [hashlib.sha256(), hashlib.sha256()]
        for line in git("ls-files", "-s", "--", *FOLDERS, "CMakeLists.txt", "cmake").splitlines():
            is_source = line.split("\t")[1] in names
            digests[1].update(line.encode())
            if is_source:
                digests[0].update(line.encode())
        self.sources, self.tests = (digest.hexdigest()[:16] for digest in digests)
        kept = json.loads(STATE.read_text("utf-8")) if STATE.exists() else {}
        same = kept.get("sources") == self.sources
        self.results = kept["results"] if same else {}
        self.clean = kept["clean"] if same and kept.get("tests") == self.tests else {}

    def result(self, fault):
        """How far the tests have come: "near" or "far"; what noticed; whether it compiles. None if not tried."""
        kept = self.results.get(json.dumps(fault))
        return kept if kept and (kept["by"] or not kept["compiles"] or kept["tests"] == self.tests) else None

    def keep(self, fault, by, far):
        self.results[json.dumps(fault)] = {"by": by or None, "compiles": by is not False, "tests": self.tests,
                                           "far": far}
        self.write()

    def write(self):
        part = STATE.with_suffix(".part")
        part.write_text(json.dumps({"sources": self.sources, "tests": self.tests, "clean": self.clean,
                                    "results": self.results}, indent=1), "utf-8")
        part.rename(STATE)


class Tree:
    """The clone's sources: with one fault or without, changed only when they must."""

    def __init__(self):
        self.fault = None
        self.whole = ""

    def set(self, fault):
        if fault == self.fault:
            return
        if self.fault:
            (CLONE / self.fault[0]).write_text(self.whole, "utf-8")
        self.fault = fault
        if fault:
            name, number, new = fault
            self.whole = (CLONE / name).read_text("utf-8")
            lines = self.whole.splitlines(keepends=True)
            lines[number] = new + "\n"
            (CLONE / name).write_text("".join(lines), "utf-8")


def build(*targets):
    done = subprocess.run(["cmake", "--build", "--preset", "release", "--target", *targets], cwd=CLONE,
                          capture_output=True, text=True, timeout=BUILD_SECONDS,
                          env=os.environ | {"CCACHE_BASEDIR": str(CLONE), "CCACHE_NOHASHDIR": "1"})
    return done.returncode == 0, done.stdout + done.stderr


def programs():
    """Test programs, and of each the source files in it and in the programs that it starts."""
    found = {}
    for path in sorted(BUILD.rglob("railhead_*_test")):
        if not path.is_file():
            continue
        inputs = subprocess.run(["ninja", "-t", "inputs", path.name], cwd=BUILD, capture_output=True, text=True,
                                check=True).stdout.split()
        sources = {name for name in inputs if name.endswith(".cc")}
        contained = {os.path.relpath(BUILD / name, CLONE) for name in sources}
        for name in sources:
            unity = BUILD / name
            if unity.parent.name == "unity":
                contained.update(re.findall(r'#include "(.+)"', unity.read_text("utf-8")))
        found[path] = contained
    return found


class Outcome:
    """The end of one run of a test program."""

    def __init__(self, code, text, seconds, limit):
        self.seconds = seconds
        self.passed = code == 0
        self.killed = code == -signal.SIGKILL
        begun = re.findall(r"^\[ RUN      \] (\S+)", text, re.MULTILINE)
        failed = re.findall(r"^\[  FAILED  \] ([\w/.]+?),? ", text + " ", re.MULTILINE)
        failed += re.findall(r"^\[  FAILED  \] ([\w/.]+)$", text, re.MULTILINE)
        names = set(begun)
        self.failed = sorted(name for name in set(failed) if name in names)
        self.how = "fails"
        if code is None:
            self.how = f"not done in {limit:.0f} s"
        elif code < 0 and not self.failed:
            self.how = f"ends with signal {-code}"
        if not self.passed and not self.failed and begun:
            self.failed = begun[-1:]  # the program died or hung in it
        self.about_time = code is None or bool(ABOUT_TIME.search(text))


def start(path, arguments, shard, shards, out):
    return subprocess.Popen(
        [path, *arguments], cwd=path.parent, start_new_session=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        env=os.environ | {"GTEST_SHARD_INDEX": str(shard), "GTEST_TOTAL_SHARDS": str(shards)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY)))


def run(path, limit, tests, but=(), shards=SHARDS):
    """Runs these tests of a program (all if `tests` is None) in several processes, until one fails."""
    chosen = ":".join(tests) if tests is not None else "*"
    arguments = ["--gtest_fail_fast", f"--gtest_filter={chosen}-{':'.join(but)}"]
    with contextlib.ExitStack() as files:
        outs = [files.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in range(shards)]
        begin = time.monotonic()
        children = [start(path, arguments, shard, shards, out) for shard, out in enumerate(outs)]
        try:
            while time.monotonic() - begin < limit:
                codes = [child.poll() for child in children]
                if any(codes) or None not in codes:
                    break
                time.sleep(0.05)
            codes = [child.poll() for child in children]
        finally:
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # and ranks that it left behind
                child.wait()
        worst = next((at for at, code in enumerate(codes) if code), None)
        if worst is None:
            worst = codes.index(None) if None in codes else 0
        outs[worst].seek(0)
        return Outcome(codes[worst], outs[worst].read(), time.monotonic() - begin, limit)


def files_of_tests(path):
    """The source file of each test of a program."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([path, "--gtest_list_tests", f"--gtest_output=json:{out.name}"], cwd=path.parent, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        suites = json.loads(pathlib.Path(out.name).read_text("utf-8"))["testsuites"]
    found = {}
    for suite in suites:
        for test in suite["testsuite"]:
            found[f"{suite['name']}.{test['name']}"] = os.path.relpath(BUILD / test["file"], CLONE)  # as compiled there
    return found


class Run:
    def __init__(self):
        self.tree = Tree()
        self.state = State()
        self.programs = programs()
        self.tests = {path: files_of_tests(path) for path in self.programs}

    def near(self, name, path):
        """The program's tests of this file if it has any, else those beside the file."""
        own = name.removesuffix(".cc") + "_test.cc"
        folder = name.rpartition("/")[0]
        tests = self.tests[path]
        return ([test for test, file in tests.items() if file == own]
                + [test for test, file in tests.items() if file != own and file.rpartition("/")[0] == folder])

    def clean(self, path, tests):
        """Seconds of these tests without a fault, and those that fail even so."""
        key = f"{path.name} " + (hashlib.sha256(":".join(tests).encode()).hexdigest()[:8] if tests else "all")
        if key not in self.state.clean:
            self.tree.set(None)
            passed, text = build(path.name)
            if not passed:
                sys.exit(f"error: {path.name} does not build without a fault:\n{text[-2000:]}")
            broken = []
            outcome = run(path, CLEAN_SECONDS, tests)
            while not outcome.passed:
                if not outcome.failed:
                    sys.exit(f"error: {path.name} {outcome.how} without a fault")
                log(f"{path.name}: {outcome.failed[0]} {outcome.how} without a fault: left out")
                broken += outcome.failed[:1]
                outcome = run(path, CLEAN_SECONDS, tests, broken)
            self.state.clean[key] = {"seconds": outcome.seconds, "broken": broken}
            self.state.write()
            log(f"{key}: {outcome.seconds:.0f} s without a fault")
        return self.state.clean[key]

    def failure(self, fault, path, tests):
        """What test of this program notices the fault, None if none does, False if it does not compile."""
        clean = self.clean(path, tests)
        limit = 5 * clean["seconds"] + 30
        left_out, kills = list(clean["broken"]), 0
        while True:
            self.tree.set(fault)
            if not build(path.name)[0]:
                return False
            outcome = run(path, limit, tests, left_out)
            if outcome.passed:
                return None
            if outcome.killed and kills == 0:
                kills = 1  # by the kernel, perhaps because of another process's memory
                continue
            if outcome.about_time and outcome.failed:
                test = outcome.failed[0]
                self.tree.set(None)
                build(path.name)
                if not run(path, limit, [test], shards=1).passed:
                    log(f"{test} fails without the fault, too: left out")
                    left_out.append(test)
                    continue
            test = outcome.failed[0] if outcome.failed else "before the first test"
            how = "" if outcome.how == "fails" else f" ({outcome.how})"
            return f"{path.name.removeprefix('railhead_')}: {test}{how}"

    def noticed_by(self, fault, far):
        """What notices the fault, None if nothing does, False if it does not compile."""
        chosen = []
        holders = [path for path, contained in self.programs.items() if fault[0] in contained]
        for path in holders:
            near = self.near(fault[0], path)
            if far:
                chosen.append((path.name in SLOW, path.parts[len(BUILD.parts)] != fault[0].split("/")[0], path, None))
            elif near and path.name not in SLOW:
                own = self.tests[path][near[0]] == fault[0].removesuffix(".cc") + "_test.cc"
                chosen.append((not own, len(near), path, near))
        for _, _, path, tests in sorted(chosen, key=lambda one: one[:3]):
            failure = self.failure(fault, path, tests)
            if failure is not None:
                return failure
        if holders and not chosen:  # does it compile at all?
            self.tree.set(fault)
            return None if build(holders[0].name)[0] else False
        return None


def clone():
    if not (CLONE / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, CLONE], check=True)
    git("fetch", "--quiet", str(ROOT), "HEAD")
    git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    subprocess.run(["cmake", "--preset", "release"], cwd=CLONE, check=True, stdout=subprocess.DEVNULL)
    log(f"build of {git('rev-parse', '--short', 'HEAD').strip()} without a fault")
    passed, text = build("railhead_tests")
    if not passed:
        sys.exit(f"error: the build fails without a fault:\n{text[-2000:]}")


def row(fault, kept):
    name, number, new = fault
    old = (CLONE / name).read_text("utf-8").splitlines()[number].strip()
    text = f"`{old}` -> `{new.strip()}`".replace("|", "\\|")
    by = kept["by"] or ("**none**" if kept["far"] else "**none beside it**; others not run")
    return f"| {name}:{number + 1} | {text} | {by} |"


def try_fault(work, fault, progress, far):
    kept = work.state.result(fault)
    if kept and (kept["by"] or not kept["compiles"] or not far):
        return kept
    begin = time.monotonic()
    work.state.keep(fault, work.noticed_by(fault, far), far)
    work.tree.set(None)
    kept = work.state.result(fault)
    log(f"{progress}, {time.monotonic() - begin:.0f} s: "
        + (row(fault, kept) if kept["compiles"] else f"{fault[0]}:{fault[1] + 1} does not compile"))
    return kept


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for name in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT of what it starts in the background
        signal.signal(name, signal.default_int_handler)
    clone()
    work = Run()
    found = list(sites())
    random.Random(seed).shuffle(found)
    chosen = []
    try:
        for fault in found:  # first the tests beside the file, for all faults
            if len(chosen) == count:
                break
            if try_fault(work, fault, f"{len(chosen) + 1}/{count}", False)["compiles"]:
                chosen.append(fault)
        for at, fault in enumerate(chosen, 1):  # then, for those that are left, all that contain it
            kept = work.state.result(fault)
            if not kept["by"] and not kept["far"]:
                try_fault(work, fault, f"{at}/{count}, all tests", True)
    except KeyboardInterrupt:
        log("interrupted; the same command goes on from here")
    finally:
        work.tree.set(None)
    kept = [work.state.result(fault) for fault in chosen]
    print(f"{len(found)} places, seed {seed}\n\n| where | fault | noticed by |\n|---|---|---|")
    for fault, one in zip(chosen, kept):
        print(row(fault, one))
    print(f"\n{sum(one['by'] is not None for one in kept)} of {len(kept)} were noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
