#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import unittest

import tables
from tables import MI, Cell, Results


def results(ours, **peers):
    """Returns results of 64 MiB of fp32 between 2 ranks, in microseconds."""
    times = {"Railhead shm": ours} | {name.replace("_", " "): t for name, t in peers.items()}
    cells = {(2, "fp32", 64 * MI, name): Cell(t, 2 * t) for name, t in times.items()}
    return Results(cells, {2: [9e9, 16e9]}, list(times))


class TablesTest(unittest.TestCase):
    def test_ratio_is_to_the_best_peer(self):
        self.assertEqual(results(100.0, Open_MPI=700.0, gloo=900.0).ratio(2, "fp32", 64 * MI), 7.0)

    def test_our_own_ways_are_no_peers(self):
        measured = results(100.0, Railhead_TCP=10.0, Railhead_windows=20.0, gloo=500.0)
        self.assertEqual(measured.ratio(2, "fp32", 64 * MI), 5.0)

    def test_limit_counts_every_rank_reading_and_writing(self):
        # 4 times 64 MiB at 16 GB/s take 16777 us.
        self.assertAlmostEqual(results(33554.432, gloo=1.0).of_limit(2, "fp32", 64 * MI), 0.5)

    def test_goals_that_are_missed_are_said(self):
        table = "\n".join(tables.goal_table(results(100.0, gloo=500.0)))
        self.assertIn("| 6.0 | 5.00 | - | **no** |", table)

    def test_goals_that_are_reached_are_said(self):
        table = "\n".join(tables.goal_table(results(100.0, gloo=600.0)))
        self.assertIn("| 6.0 | 6.00 | - | yes |", table)

    def test_goals_that_only_windows_reach_are_said(self):
        measured = results(200.0, Railhead_windows=100.0, gloo=600.0)
        self.assertIn("| 6.0 | 3.00 | 6.00 | in windows |", "\n".join(tables.goal_table(measured)))

    def test_16_bit_floats_are_compared_with_fp16_of_gloo(self):
        cells = {(2, kind, 64 * MI, name): Cell(t, t) for kind, name, t in (
            ("fp16", "gloo", 900.0), ("bf16", "gloo", 300.0), ("bf16", "Railhead shm", 100.0))}
        measured = Results(cells, {2: [1e9]}, ["Railhead shm", "gloo"])
        self.assertEqual(measured.against_fp16_of_gloo("bf16", 64 * MI), 9.0)

    def test_what_was_not_measured_is_no_goal(self):
        rows = tables.goals(results(100.0, gloo=1.0))
        self.assertEqual([row for row in rows if "16 MiB" in row[0]], [])

    def test_full_table_has_bus_bandwidth(self):
        # 64 MiB in 67108.864 us are 1 GB/s; each of two ranks sends its whole buffer.
        row = tables.full_table(results(67108.864), 2, "fp32")[2]
        self.assertEqual(row, "| 64 MiB | Railhead shm | 67108.9 | 134217.7 | 1.000 | 1.000 |")

    def test_noise_is_that_of_a_typical_pass(self):
        text = tables.noise({"a": [(100, 0), (130, 0), (150, 0)]}, [0.1, 0.3])
        self.assertIn("took 20% of the cores' time", text)
        self.assertIn("10% in the quietest and 30% in the loudest", text)
        self.assertIn("took\n30% longer", text)

    def test_sizes_are_in_the_largest_whole_unit(self):
        self.assertEqual([tables.size_text(s) for s in (8, 1 << 10, 16 << 10, MI, 1500)],
                         ["8 B", "1 KiB", "16 KiB", "1 MiB", "1500 B"])


if __name__ == "__main__":
    unittest.main()
