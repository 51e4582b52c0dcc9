# SPDX-License-Identifier: Apache-2.0
"""Runs torch's own tests of c10d backends (torch.testing._internal.distributed.distributed_test) on this backend.

usage: suite.py RANKS [WORD]...     runs tests whose names contain one of the words, or all; exits with 1 if one fails

torch's own driver starts all ranks again for each test. Here they stay: each rank gets the name of a test, creates a
process group, runs the test, and reports. Ranks restart only after a failure. A test that hangs is ended and fails.
suite_skips.txt lists tests that are not run, with the reason; tests also skip themselves (no GPU, too few ranks).
A test that skips itself because torch expects only other backends to support it (LIFTED) runs here.
"""

import collections
import importlib.metadata
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types

HERE = pathlib.Path(__file__).resolve().parent
MODULE = "torch.testing._internal.distributed.distributed_test"
BACKEND = "railhead"
# Reasons for which torch skips tests, and which do not apply to this backend.
LIFTED = re.compile(r"(Test requires backend railhead|Only MPI supports|Only gloo backend supports timeouts|get_future is only|"
                    r"GLOO Batch Send Recv CPU|Only Gloo backend supports sparse|Only Nccl & Gloo backend support Distributed)")
# Seconds: limit of a rank's start; limit of a test on all ranks; limit for the other ranks to report after the first one.
# They only end what hangs, and a machine that does much else may need minutes to import torch in all ranks.
START, LONGEST, BEHIND = 1200, 600, 300


# Torch's tests give their groups, and all ranks, as little as a second to come. On a busy machine ranks wait for a CPU for
# seconds: groups get at least SHORTEST seconds, unless they are to fail at once, and barriers of the tests TOGETHER.
SHORTEST, TOGETHER = 12, 300


def skips():
    """{test: reason} for this version of torch"""
    found = {}
    minor = ".".join(importlib.metadata.version("torch").split(".")[:2])
    for line in (HERE / "suite_skips.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            test, versions, reason = line.split(maxsplit=2)
            if versions in ("all", minor):
                found[test] = reason
    return found


# The code of a rank.


def load():
    """Loads the module with torch's tests, and makes it treat this backend as one of torch's own."""
    import unittest  # pylint: disable=import-outside-toplevel

    # A package for torch developers. These tests use its base class only.
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stub)
    from torch.testing._internal import common_distributed  # pylint: disable=import-outside-toplevel
    for feature in ("ddp", "subgroup"):
        common_distributed.DistTestCases.backend_feature[feature].add(BACKEND)
    if int(os.environ["WORLD_SIZE"]) >= 3:
        # Groups of ranks 1 and 2, for which torch 2.15 requires eight ranks.
        common_distributed.skip_if_small_worldsize = lambda test: test
    __import__(MODULE)
    module = sys.modules[MODULE]
    # The profiler's events have the names of torch's own backends.
    for name in dir(module):
        if name.endswith("PROFILING_SUPPORTED_BACKENDS"):
            getattr(module, name).clear()
    be_patient(module)
    return module


def be_patient(module):
    """Gives its groups and barriers the time that a busy machine takes."""
    import datetime  # pylint: disable=import-outside-toplevel

    def timedelta(*words, **parts):
        asked = datetime.timedelta(*words, **parts)
        return asked if asked < datetime.timedelta(seconds=1) else max(asked, datetime.timedelta(seconds=SHORTEST))

    sync = module.Barrier.sync.__func__
    module.timedelta = timedelta
    module.Barrier.sync = classmethod(lambda cls, wait_for=None, timeout=0: sync(cls, wait_for, max(timeout, TOGETHER)))


class Rank:
    """One rank, which runs tests by name."""

    def __init__(self, rank):
        self.rank = rank
        self.module = load()
        self.case = type("Case", (self.module.TestDistBackend, self.module.DistributedTest._DistTestBase), {})
        self.environment = dict(os.environ)

    def tests(self):
        """{test: why it skips itself, or ""}"""
        names = sorted(name for name in dir(self.case) if name.startswith("test_"))
        methods = {name: getattr(self.case, name) for name in names}
        whys = {name: getattr(method, "__unittest_skip_why__", "") if getattr(method, "__unittest_skip__", False) else ""
                for name, method in methods.items()}
        return {name: "" if LIFTED.match(why) else why for name, why in whys.items()}

    def run(self, test, folder):
        """Runs a test. Returns ("passed", "skipped" or "failed", a text)."""
        import unittest  # pylint: disable=import-outside-toplevel
        import torch.distributed as dist  # pylint: disable=import-outside-toplevel
        from torch.testing._internal.common_distributed import TEST_SKIPS  # pylint: disable=import-outside-toplevel

        os.environ["TEMP_DIR"] = folder
        self.module.Barrier.barrier_id = 0
        try:
            self._run(test, folder, dist)
            return "passed", ""
        except unittest.SkipTest as skip:
            return "skipped", str(skip)
        except SystemExit as end:
            for skip in TEST_SKIPS.values():
                if skip.exit_code == end.code:
                    return "skipped", skip.message
            return "failed", f"exit {end.code}"
        except BaseException:  # pylint: disable=broad-except
            return "failed", traceback.format_exc()
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
            os.environ.clear()
            os.environ.update(self.environment)
            dist.set_debug_level_from_env()

    def _run(self, test, folder, dist):
        import datetime  # pylint: disable=import-outside-toplevel
        import torch  # pylint: disable=import-outside-toplevel

        torch.manual_seed(1)
        # These tests put their model on the CPU if the backend has this name.
        self.module.BACKEND = "gloo" if test.startswith("test_accumulate_gradients_no_sync") else BACKEND
        case = self.case(test)
        case.rank = self.rank
        case.file_name = folder + "/init"
        seconds = max(getattr(self.module, "CUSTOM_PG_TIMEOUT", {}).get(test, 240), SHORTEST)
        dist.init_process_group(BACKEND, init_method="file://" + case.file_name, rank=self.rank,
                                world_size=int(os.environ["WORLD_SIZE"]), timeout=datetime.timedelta(seconds=seconds))
        getattr(case, test)()
        case._barrier(wait_for=int(os.environ["WORLD_SIZE"]))


def serve(rank):
    """Responds to each line [test, folder] on stdin with a line on stdout; output of tests goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    runner = Rank(rank)
    print(json.dumps(runner.tests()), file=answers)
    for line in sys.stdin:
        print(json.dumps(runner.run(*json.loads(line))), file=answers)


# The code that runs the ranks.


class World:
    """The processes of all ranks."""

    def __init__(self, size, folder):
        self.lines = queue.Queue()
        self.log = open(folder / "log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.ranks = [self._start(rank, size, folder) for rank in range(size)]
        answers = self.gather("the start", START, START)
        late = {rank: answer[1] for rank, answer in answers.items() if not isinstance(answer, dict)}
        if late:
            self.end()
            raise RuntimeError(f"ranks did not start: {late}; their output:\n{self.last_words()}")
        self.tests = answers[0]

    def _start(self, rank, size, folder):
        environment = {**os.environ, "BACKEND": BACKEND, "WORLD_SIZE": str(size), "RANK": str(rank), "INIT_METHOD": f"file://{folder}/shared",
                       "TEMP_DIR": str(folder), "RAILHEAD_METRICS_PORT": str(9402 + rank)}
        process = subprocess.Popen([sys.executable, __file__, "rank", str(rank)], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=self.log, env=environment, bufsize=1)

        def read():
            for line in process.stdout:
                self.lines.put((rank, json.loads(line)))
            self.lines.put((rank, None))
        threading.Thread(target=read, daemon=True).start()
        return process

    def gather(self, what, longest=LONGEST, behind=BEHIND):
        """Returns {rank: its response}; ("failed", a text) for a rank that has ended or does not respond."""
        found = {}
        while len(found) < len(self.ranks):
            try:
                rank, answer = self.lines.get(timeout=behind if found else longest)
            except queue.Empty:
                break
            found[rank] = answer or ("failed", "the process has ended")
        for rank in range(len(self.ranks)):
            found.setdefault(rank, ("failed", f"hangs: {what}"))
        return found

    def run(self, test, folder):
        for process in self.ranks:
            try:
                process.stdin.write(json.dumps([test, str(folder)]) + "\n")
            except BrokenPipeError:
                pass
        return self.gather(test)

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()

    def last_words(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")[-2000:]


def verdict(answers):
    """Combines the ranks' results into ("passed", "skipped" or "failed", the text): skipped if one rank skips."""
    states = {rank: tuple(answer) for rank, answer in answers.items()}
    failed = [f"rank {rank}: {text}" for rank, (state, text) in sorted(states.items()) if state == "failed"]
    if failed:
        return "failed", "\n".join(failed)
    skipped = [text for _, (state, text) in sorted(states.items()) if state == "skipped"]
    return ("skipped", skipped[0]) if skipped else ("passed", "")


def main():
    size, words = int(sys.argv[1]), sys.argv[2:]
    listed = skips()
    top = pathlib.Path(tempfile.mkdtemp(prefix="torch-suite-"))
    results, reasons, world = collections.Counter(), collections.Counter(), None
    todo = None
    try:
        while todo is None or todo:
            if world is None:
                world = World(size, top)
            if todo is None:
                todo = [test for test in world.tests if not words or any(word in test for word in words)]
            test = todo.pop(0)
            why = listed.get(test) or world.tests[test]
            begin = time.monotonic()
            if why:
                state, text = "skipped", why
            else:
                folder = top / test
                for name in ("barrier", "test_dir", "init_dir"):
                    (folder / name).mkdir(parents=True)
                (top / "shared").unlink(missing_ok=True)
                state, text = verdict(world.run(test, folder))
            results[state] += 1
            if state == "skipped":
                reasons[text if not listed.get(test) else "listed in suite_skips.txt"] += 1
            if state == "failed":
                world.end()
                print(f"{test}: FAILED: {text}\n{world.last_words()}", flush=True)
                world = None
            elif os.environ.get("VERBOSE"):
                print(f"{test}: {state} {text} {time.monotonic() - begin:.1f} s", flush=True)
    finally:
        if world is not None:
            world.end()
        shutil.rmtree(top, ignore_errors=True)
    for reason, count in reasons.most_common():
        print(f"skipped {count}: {reason}")
    print(f"torch's tests, {size} ranks: {results['passed']} passed, {results['failed']} "
          f"failed, {results['skipped']} skipped", flush=True)
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        serve(int(sys.argv[2]))
    else:
        sys.exit(main())
