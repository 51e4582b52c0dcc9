#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import unittest

import transfer_tables
from transfer_tables import C_API, LIBMPI, MPICH, OPEN_MPI, TORCH_GLOO, TORCH_OURS, WHEEL, Results, Section


def results(best=True, sizes=(8,), **times):
    """Returns one pass of these times at every size; the medians are twice as long."""
    names = {"c_api": C_API, "libmpi": LIBMPI, "open_mpi": OPEN_MPI, "mpich": MPICH, "wheel": WHEEL,
             "ours": TORCH_OURS, "gloo": TORCH_GLOO}
    return Results({(names[name], size): [(time, 2 * time)] for name, time in times.items() for size in sizes}, best)


class TransferTablesTest(unittest.TestCase):
    def test_best_is_that_of_all_passes(self):
        measured = Results({(C_API, 8): [(3.0, 5.0), (2.0, 7.0), (4.0, 6.0)]}, best=True)
        self.assertEqual(measured.us(C_API, 8), 2.0)

    def test_median_is_that_of_the_passes_medians(self):
        measured = Results({(C_API, 8): [(3.0, 5.0), (2.0, 7.0), (4.0, 6.0)]}, best=False)
        self.assertEqual(measured.us(C_API, 8), 6.0)

    def test_what_was_not_measured_has_no_figure(self):
        self.assertIsNone(results(c_api=1.0).us(OPEN_MPI, 8))
        self.assertIsNone(results(c_api=1.0).ratio(C_API, OPEN_MPI, 8))
        self.assertIsNone(results(open_mpi=1.0).ratio(C_API, OPEN_MPI, 8))

    def test_ratios_above_the_goal_are_bold(self):
        measured = results(c_api=2.0, libmpi=2.1, open_mpi=1.0)
        self.assertEqual(transfer_tables.main_table(measured, "memory"), [
            "| size | C API, us | libmpi, us | Open MPI, us | C API / Open MPI | libmpi / Open MPI |",
            "|---|---|---|---|---|---|",
            "| 8 B | 2.00 | 2.10 | 1.00 | 2.00 | **2.10** |"])

    def test_tcp_has_a_goal_of_its_own(self):
        row = transfer_tables.main_table(results(c_api=13.0, libmpi=11.9, open_mpi=10.0), "tcp")[-1]
        self.assertEqual(row, "| 8 B | 13.0 | 11.9 | 10.0 | **1.30** | 1.19 |")

    def test_columns_are_of_what_was_measured(self):
        table = transfer_tables.main_table(results(sizes=(1024, 64), c_api=100.4, mpich=1.0), "memory")
        self.assertEqual(table, ["| size | C API, us | MPICH, us |", "|---|---|---|", "| 64 B | 100 | 1.00 |",
                                 "| 1 KiB | 100 | 1.00 |"])

    def test_a_size_that_one_library_lacks(self):
        measured = results(c_api=1.0, open_mpi=1.0)
        measured.times[OPEN_MPI, 64] = [(1.0, 1.0)]
        self.assertEqual(transfer_tables.main_table(measured, "memory")[-1], "| 64 B | - | 1.00 | - |")

    def test_goal_that_is_reached(self):
        self.assertEqual(transfer_tables.goal_lines(results(sizes=(8, 64), c_api=2.0, open_mpi=1.0), "memory"),
                         ["Goal: at most 2.0 times Open MPI's time at every size. C API: reached (largest 2.00)."])

    def test_goal_that_is_missed(self):
        measured = results(sizes=(8, 1024, 4096), c_api=1.0, libmpi=1.0, open_mpi=1.0)
        measured.times[C_API, 8] = [(1.3, 1.3)]
        measured.times[C_API, 4096] = [(1.25, 1.25)]
        self.assertEqual(transfer_tables.goal_lines(measured, "tcp"), [
            "Goal: at most 1.2 times Open MPI's time at every size. "
            "C API: **missed** at 8 B, 4 KiB (largest 1.30). libmpi: reached (largest 1.00)."])

    def test_no_goal_without_open_mpi(self):
        self.assertEqual(transfer_tables.goal_lines(results(c_api=1.0, mpich=1.0), "memory"), [])

    def test_torch_table_has_the_overhead(self):
        self.assertEqual(transfer_tables.torch_table(results(wheel=1.5, ours=8.0, gloo=40.0)), [
            "| size | C API, us | railhead, us | gloo, us | railhead / gloo | more than the C API, us |",
            "|---|---|---|---|---|---|",
            "| 8 B | 1.50 | 8.00 | 40.0 | 0.20 | 6.50 |"])

    def test_every_figure(self):
        self.assertEqual(transfer_tables.every_figure(results(c_api=1.0, open_mpi=20.0)), [
            "| size | C API | Open MPI |", "|---|---|---|", "| 8 B | 1.00 / 2.00 | 20.0 / 40.0 |"])

    def test_spread_is_that_of_a_typical_cell(self):
        measured = Results({("a", 8): [(1.0, 0), (1.3, 0), (2.0, 0)], ("b", 8): [(1.0, 0), (1.1, 0), (9.0, 0)],
                            ("c", 8): [(1.0, 0), (1.2, 0), (1.9, 0)]}, best=True)
        self.assertAlmostEqual(transfer_tables.spread([measured]), 0.2)
        medians = Results({("a", 8): [(0, 10.0), (0, 9.0), (0, 12.0)]}, best=False)
        self.assertAlmostEqual(transfer_tables.spread([medians]), 1 / 9)

    def test_one_pass_has_no_spread(self):
        one, two = results(c_api=1.0), Results({(C_API, 8): [(1.0, 1.0), (1.2, 1.2)]}, best=True)
        self.assertNotIn("typical pass", transfer_tables.noise([one], [0.0]))
        self.assertIn("typical pass is 10% above", transfer_tables.noise([two], [0.0]))

    def test_noise_says_when_figures_mean_little(self):
        quiet = transfer_tables.noise([results(c_api=1.0)], [0.01, 0.03])
        self.assertIn("Other programs took 2% of the cores' time (1% to 3% of a run's)", quiet)
        self.assertNotIn("**", quiet)
        loud = transfer_tables.noise([results(c_api=1.0)], [0.1, 0.3])
        self.assertIn("**Other programs took 20% of the cores' time (10% to 30% of a run's): measure again", loud)

    def test_document(self):
        text = transfer_tables.document([
            Section("Quiet", "About it.", {"memory": results(c_api=1.0, open_mpi=1.0, wheel=1.0, ours=5.0, gloo=9.0),
                                           "tcp": results(c_api=9.0, open_mpi=1.0)}),
            Section("Limited", "", {}, not_measured="no control groups")])
        headings = [line for line in text.splitlines() if line.startswith("#")]
        self.assertEqual(headings, ["## Quiet", "### Memory", "### torch.distributed, memory", "### TCP",
                                    "### Best and median", "#### Memory", "#### TCP", "## Limited"])
        self.assertIn("Not measured: no control groups.", text)
        self.assertIn("C API: **missed** at 8 B (largest 9.00).", text)

    def test_document_of_torch_alone(self):
        text = transfer_tables.document([Section("Quiet", "", {"tcp": results(wheel=1.0, ours=5.0, gloo=9.0)})])
        headings = [line for line in text.splitlines() if line.startswith("#")]
        self.assertEqual(headings, ["## Quiet", "### torch.distributed, TCP", "### Best and median", "#### TCP"])


if __name__ == "__main__":
    unittest.main()
