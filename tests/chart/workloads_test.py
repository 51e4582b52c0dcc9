# SPDX-License-Identifier: Apache-2.0
"""Runs the pods of tests/workloads through the operator's program, and compares the results with its README."""

import sys
import unittest

from helm import ROOT

sys.path.insert(0, str(ROOT / "tests" / "workloads"))
import table  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "operator" / "railhead-operator"


class Workloads(unittest.TestCase):
    maxDiff = None

    def test_the_readme_says_what_the_operator_does(self):
        self.assertEqual(table.written().splitlines(), table.table(PROGRAM).splitlines())


if __name__ == "__main__":
    unittest.main()
