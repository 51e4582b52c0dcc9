#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of pingpong.c over a socket pair that can be faulty: it reports every kind of wrong message."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SIZES = (8, 64, 1000, 65536)


class PingpongTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = pathlib.Path(cls.folder.name) / "pingpong"
        subprocess.run(["cc", "-O1", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror",
                        HERE / "pingpong.c", HERE / "endpoint_faulty.c", "-o", cls.program], check=True, timeout=60)

    def run_it(self, *arguments, **variables):
        return subprocess.run([self.program, *map(str, arguments)], env=os.environ | variables, timeout=60,
                              capture_output=True, text=True)

    def rows(self, **variables):
        done = self.run_it(5, 1, *SIZES, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        head, *rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(head, {"library": "socket pair", "ranks": 2})
        self.assertEqual([row["bytes"] for row in rows], list(SIZES))
        return rows

    def test_times_of_right_messages(self):
        for row in self.rows():
            self.assertEqual(row["wrong"], 0)
            self.assertLessEqual(row["rounds"], 5)
            self.assertGreater(row["best_us"], 0)
            self.assertGreaterEqual(row["median_us"], row["best_us"])

    def test_rounds_that_take_too_long_are_fewer(self):
        # Messages become slow during the search for a number of iterations, or after it.
        done = self.run_it(100, 1, 64, FAULT="slow", FAULT_RANK="1")
        row = json.loads(done.stdout.splitlines()[1])
        self.assertEqual(row["wrong"], 0)
        self.assertGreaterEqual(row["rounds"], 5)
        self.assertLess(row["rounds"], 100)

    def test_wrong_messages_are_counted_on_both_ranks(self):
        for fault in ("middle", "last", "stale", "beyond"):
            for rank in ("0", "1"):
                with self.subTest(fault=fault, rank=rank):
                    small, *rows = self.rows(FAULT=fault, FAULT_RANK=rank)
                    self.assertEqual(small["wrong"], 0)
                    for row in rows:
                        self.assertGreater(row["wrong"], 0, row)

    def test_wrong_arguments(self):
        for arguments in ((), (5, 1), (0, 1, 8), (5, 0, 8), (5, 1, 7), (5, 1, "word"), (1001, 1, 8)):
            with self.subTest(arguments=arguments):
                done = self.run_it(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn("usage:", done.stderr)


if __name__ == "__main__":
    unittest.main()
