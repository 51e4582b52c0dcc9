#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puts faults into production code, one at a time, and says which unit tests notice.

usage: tests/mutation/run.py [COUNT [SEED]]     30 faults, seed 1

A seed stands for the same faults as long as the sources are the same. Faults that do not compile are not
counted. Each is put into a clone of what is committed; the tests whose programs the fault has changed run,
and those of its top folder, until one fails. A fault that none notices is either no fault (an
optimisation, a text of a log) or a missing test: a person decides. Prints a table in Markdown.
"""

import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLONE = ROOT / "out" / "mutation"
BUILD = CLONE / "build" / "release"
FOLDERS = ("base", "fabric", "kube", "device-plugin", "operator", "cli", "runtime")
NOT_PRODUCTION = re.compile(r"_(test|fuzz|bench)\.cc$|/testing/|/testdata/|fake_|_for_test")
TEST_SECONDS = 600
BUILD_SECONDS = 3600
MOST_MEMORY = 6 << 30  # of one process: a fault may take all there is

# (what is replaced, by what). Spaces around operators keep templates and pointers out.
SWAPS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), ("if (!", "if ("),
         ("return true;", "return false;"), ("return false;", "return true;"),
         ("std::min(", "std::max("), ("std::max(", "std::min("), (" += ", " -= "), ("++", "--"))
# A statement of one line that is a call: it is left out.
CALL = re.compile(r"^(\s+)(?!return\b|co_return\b|throw\b|delete\b|else\b|if\b)[\w:.>\-]+(\[[^\]]*\])?\([^{}]*\);$")
NOT_CODE = re.compile(r"^\s*(//|#|\*)|static_assert|LOG\(|spdlog|^\s*case ")


def sites():
    """All (path, line number, new line), in a fixed order."""
    listed = subprocess.run(["git", "ls-files", "--", *(f"{folder}/*.cc" for folder in FOLDERS)], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    for name in sorted(listed):
        if NOT_PRODUCTION.search(name):
            continue
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


def programs():
    """Test programs, by path."""
    return sorted(path for path in BUILD.glob("*/railhead_*_test") if path.is_file())


def build():
    done = subprocess.run(["cmake", "--build", "--preset", "release"], cwd=CLONE, capture_output=True, text=True,
                          timeout=BUILD_SECONDS, env=os.environ | {"CCACHE_BASEDIR": str(CLONE), "CCACHE_NOHASHDIR": "1"})
    return done.returncode == 0, done.stdout + done.stderr


def first_failure(path):
    """The name of a test of this program that fails, or None."""
    name = path.name.removeprefix("railhead_")
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        child = subprocess.Popen(
            [path, "--gtest_fail_fast", "--gtest_brief=1"], cwd=path.parent, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY)))
        try:
            code = child.wait(TEST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(child.pid, signal.SIGKILL)  # and ranks that it left behind
        except ProcessLookupError:
            pass
        child.wait()
        out.seek(0)
        failed = re.search(r"^\[  FAILED  \] ([\w/.]+)", out.read(), re.MULTILINE)
    if code == 0:
        return None
    if failed:
        return f"{name}: {failed[1]}"
    return f"{name}: " + (f"no end within {TEST_SECONDS} s" if code is None else f"ends with {code}")


def caught_by(name, begin):
    near = [path for path in programs() if path.parent.name == name.split("/", maxsplit=1)[0]]
    changed = [path for path in programs() if path.stat().st_mtime >= begin and path not in near]
    for path in near + changed:
        failure = first_failure(path)
        if failure:
            return failure
    return None


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    shutil.rmtree(CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, CLONE], check=True)
    subprocess.run(["cmake", "--preset", "release"], cwd=CLONE, check=True, stdout=subprocess.DEVNULL)
    passed, text = build()
    if not passed:
        sys.exit(f"error: the build fails without a fault:\n{text[-2000:]}")
    before = [failure for failure in map(first_failure, programs()) if failure]
    if before:
        sys.exit(f"error: fails without a fault: {before}")
    found = list(sites())
    random.Random(seed).shuffle(found)
    print(f"{len(found)} places, seed {seed}\n\n| where | fault | noticed by |\n|---|---|---|", flush=True)
    survived, tried = 0, 0
    for name, number, new in found:
        if tried == count:
            break
        path = CLONE / name
        whole = path.read_text("utf-8")
        lines = whole.splitlines(keepends=True)
        old = lines[number]
        lines[number] = new + "\n"
        begin = time.time()
        path.write_text("".join(lines), "utf-8")
        compiles, _ = build()
        if compiles:
            tried += 1
            who = caught_by(name, begin)
            survived += who is None
            fault = f"`{old.strip()}` -> `{new.strip()}`".replace("|", "\\|")
            print(f"| {name}:{number + 1} | {fault} | {who or '**nobody**'} |", flush=True)
        path.write_text(whole, "utf-8")
    print(f"\n{tried - survived} of {tried} were noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
