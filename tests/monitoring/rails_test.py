# SPDX-License-Identifier: Apache-2.0
"""`railhead rails` with a real Prometheus that is filled with canned data."""

import json
import pathlib
import shutil
import tempfile
import unittest

import canned
import replay
from pictures_test import run
from rules import ROOT

PROGRAM = ROOT / "build" / "release" / "cli" / "railhead"
LOST, WHOLE = "2026-01-15T12:14:00Z", "2026-01-15T12:03:00Z"


class Rails(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-rails-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.running = replay.filled(cls.folder, canned.everything(), canned.NOON - 300, canned.NOON + canned.AFTER, canned.STEP)
        cls.url = cls.running.__enter__()
        cls.addClassCleanup(cls.running.__exit__, None, None, None)

    def rails(self, *words):
        return run(PROGRAM, "rails", "--prometheus", self.url, "--window", "2m", *words)

    def test_the_bandwidth_of_each_job_by_rail(self):
        done = self.rails("--at", WHOLE, "-n", "research", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = {job["job"]: job for job in json.loads(done.stdout)["jobs"]}
        self.assertEqual(set(jobs), {"llama-70b", "moe-32e"})
        for name, _, ranks, _, rate, *_ in canned.JOBS[:2]:
            self.assertEqual([rail["rail"] for rail in jobs[name]["rails"]], list(range(canned.RAILS)))
            for rail in jobs[name]["rails"]:
                self.assertTrue(0.3 < rail["bytesPerSecond"] / (ranks * rate) < 1.2, rail)

    def test_a_lost_rail_is_marked(self):
        done = self.rails("--at", LOST, "--job", "llama-70b")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        row = next(line for line in done.stdout.splitlines() if "llama-70b" in line).split()
        self.assertEqual([number for number, cell in enumerate(row[2:]) if cell.endswith("x")], [3])

    def test_what_is_not_there(self):
        done = self.rails("--at", WHOLE, "--job", "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no job sends", done.stdout)
        done = run(PROGRAM, "rails", "--prometheus", "http://127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("port-forward", done.stderr)


if __name__ == "__main__":
    unittest.main()
