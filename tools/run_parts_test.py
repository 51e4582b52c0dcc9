# SPDX-License-Identifier: Apache-2.0
"""run_parts with parts of a few shell words: which parts run, fail, and leave processes behind."""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import parts

TOOLS = pathlib.Path(__file__).resolve().parent
DEADLINE = 240

# The program with other parts, in its own folder.
PROGRAM = """
import pathlib, sys
sys.path.insert(0, {tools!r})
import check_machine, run_parts
from parts import Part
run_parts.ROOT = pathlib.Path({folder!r})
run_parts.LOGS = run_parts.ROOT / "out" / "parts"
run_parts.PARTS = ({parts})
run_parts.TEST = run_parts.PARTS and tuple(part.name for part in run_parts.PARTS)
check_machine.check = lambda **_: None
check_machine.cache = lambda: run_parts.ROOT
sys.exit(run_parts.main())
"""


class RunParts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railhead-parts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, parts, *words, **options):
        text = PROGRAM.format(tools=str(TOOLS), folder=str(self.folder), parts=parts)
        child = subprocess.Popen([sys.executable, "-B", "-c", text, *words], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, **options)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        return child

    def run_parts(self, parts, *words):
        child = self.start(parts, *words)
        return child.communicate(timeout=DEADLINE)[0], child.returncode

    def test_parts_have_names_of_their_own(self):
        names = [part.name for part in parts.PARTS]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_tests_that_hang_or_crash_are_named_below_the_table(self):
        text = ("  1/2 Test #7: Rails.NonsenseIsAnError ....   Passed    0.01 sec",
                "  8 - Rails.NothingHangs (Timeout)", "  9 - Rails.NothingFalls (SEGFAULT)")
        out, _ = self.run_parts(f"""Part("broken", "printf '%s\\n' '{text[0]}' '{text[1]}' '{text[2]}'; exit 8"),""",
                                "test")
        table = out[out.index("| broken"):]
        self.assertNotIn(text[0], table)
        self.assertIn(text[1], table)
        self.assertIn(text[2], table)

    def test_a_failure_stops_only_what_needs_it(self):
        out, code = self.run_parts("""
            Part("broken", "echo the cause; false"), Part("after", "touch after", ("broken",)),
            Part("later", "touch later", ("after",)), Part("other", "touch other", weight=4),""", "test")
        self.assertEqual(code, 1, out)
        self.assertEqual(out.splitlines()[-1], "1 passed, 3 failed")
        self.assertIn("    | the cause", out)
        self.assertIn("after: failed: not run, as broken failed", out)
        self.assertTrue((self.folder / "other").exists())
        self.assertFalse((self.folder / "after").exists())
        self.assertRegex(out, r"\| other \| \d+ \| \d+ \| passed \|")

    def test_a_failure_ends_at_once_what_only_its_targets_need(self):
        # `shared` and `kept` are needed by a target that can still pass; `long` and `next` are not.
        parts = """
            Part("long", "touch begun; sleep 300", weight=1), Part("next", "touch next", ("long",), weight=1),
            Part("broken", "until [ -e begun ]; do sleep 0.05; done; false", weight=1),
            Part("shared", "until [ -e begun ]; do sleep 0.05; done; sleep 1; touch shared", weight=1),
            Part("target", "touch target", ("next", "shared", "broken")), Part("kept", "test -e shared", ("shared",)),"""
        begin = time.monotonic()
        for targets, counts, exists in ((("target",), "0 passed, 2 failed", False),
                                        (("target", "kept"), "2 passed, 2 failed", True)):
            with self.subTest(targets):
                for name in ("begun", "shared"):
                    (self.folder / name).unlink(missing_ok=True)
                out, code = self.run_parts(parts, *targets)
                self.assertEqual(code, 1, out)
                self.assertEqual(out.splitlines()[-1], counts, out)
                self.assertIn("target: failed: not run, as broken failed", out)
                self.assertRegex(out, r"\| long \| \d+ \| \d+ \| ended \|")
                self.assertEqual((self.folder / "shared").exists(), exists, out)
        self.assertFalse((self.folder / "next").exists())
        self.assertLess(time.monotonic() - begin, 250, "it has waited for `long`")

    def test_what_passes_is_quiet_and_in_its_log(self):
        out, code = self.run_parts('Part("a", "echo noise"), Part("b", "echo more", ("a",)),', "test")
        self.assertEqual(code, 0, out)
        self.assertEqual(out.splitlines()[-1], "2 passed, 0 failed")
        self.assertNotIn("noise", out)
        self.assertEqual((self.folder / "out/parts/a.log").read_text(), "noise\n")

    def test_one_part_brings_what_it_needs_and_speaks(self):
        out, code = self.run_parts("""
            Part("first", "echo quiet; touch first"), Part("wanted", "test -e first; echo loud", ("first",)),
            Part("unwanted", "touch unwanted"),""", "wanted")
        self.assertEqual(code, 0, out)
        self.assertIn("loud", out)
        self.assertNotIn("quiet", out)
        self.assertFalse((self.folder / "unwanted").exists())

    def test_a_failed_command_in_the_middle_fails_the_part(self):
        for command in ("false; true", "x=$(false); true", "false | cat", "echo $nowhere"):
            with self.subTest(command):
                self.assertEqual(self.run_parts(f'Part("p", {command!r}),', "p")[1], 1)

    def test_parts_run_side_by_side_up_to_the_capacity(self):
        # Each waits for the other, so they must run at once; the heavy part must find neither running.
        out, code = self.run_parts("""
            Part("a", "touch a; until [ -e b ]; do sleep 0.05; done; rm a", weight=1, limit=200),
            Part("b", "touch b; while [ -e a ]; do sleep 0.05; done", weight=1, limit=200),
            Part("alone", "test ! -e a", weight=4),""", "test")
        self.assertEqual(code, 0, out)

    def test_too_long_a_part_is_ended(self):
        out, code = self.run_parts('Part("slow", "sleep 300", limit=1),', "test")
        self.assertEqual(code, 1, out)
        self.assertIn("slow: failed: no end within 1 s", out)

    def test_an_interrupt_ends_everything(self):
        child = self.start("""
            Part("a", "sleep 300 & echo $! > a.pid; touch ready; wait", weight=1),
            Part("b", "trap 'touch cleaned' EXIT; touch trapped; while :; do sleep 0.1; done", weight=1),""", "test")
        for name in ("ready", "trapped"):
            self.wait_for(child, name)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=DEADLINE + 90)
        self.assertEqual(child.returncode, 130, out)
        self.assertTrue((self.folder / "cleaned").exists())
        pid = int((self.folder / "a.pid").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), f"{pid} still runs")

    def wait_for(self, child, name):
        deadline = time.monotonic() + DEADLINE
        while not (self.folder / name).exists():
            self.assertIsNone(child.poll())
            self.assertLess(time.monotonic(), deadline, f"no file {name}")
            time.sleep(0.05)

    def test_one_at_a_time(self):
        first = self.start('Part("a", "touch ready; sleep 300"),', "test")
        self.wait_for(first, "ready")
        out, code = self.run_parts('Part("a", "true"),', "test")
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=DEADLINE + 90)
        self.assertEqual(code, 1)
        self.assertIn("another `make` is at work in this checkout", out)

    def test_an_unknown_part_is_named(self):
        out, code = self.run_parts('Part("a", "true"),', "b")
        self.assertEqual(code, 1)
        self.assertRegex(out, re.escape("no part 'b'; there are: test a"))


if __name__ == "__main__":
    unittest.main()
