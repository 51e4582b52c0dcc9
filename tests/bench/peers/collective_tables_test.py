#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import unittest

import collective_tables
from collective_tables import Results
from tables import KI, MI, Cell


def results(**of):
    """Returns results of broadcasts of 1 KiB between 2 ranks, in microseconds."""
    times = {name.replace("_", " "): t for name, t in of.items()}
    return Results({("broadcast", 2, KI, name): Cell(t, 2 * t) for name, t in times.items()},
                   list(times))


class CollectiveTablesTest(unittest.TestCase):
    def test_ratio_is_our_time_through_open_mpis(self):
        measured = results(Railhead_shm=3.0, Open_MPI=2.0, MPICH=1.0)
        self.assertEqual(measured.ratio("broadcast", 2, KI), 1.5)

    def test_what_was_not_measured_has_no_ratio(self):
        self.assertIsNone(results(Railhead_shm=3.0).ratio("broadcast", 2, KI))
        self.assertIsNone(results(Open_MPI=3.0).ratio("broadcast", 2, KI))

    def test_a_slower_row_is_named(self):
        measured = results(Railhead_shm=3.0, Railhead_windows=1.0, Open_MPI=2.0)
        self.assertEqual(
            collective_tables.slower_rows(measured),
            ["- Broadcast, 2 ranks, 1 KiB: 1.50 (3.0 us, Open MPI 2.0 us; in windows 0.50)"])
        text = collective_tables.document(measured)
        self.assertIn("| Broadcast | 2 | **1.50** (0.50) |", text)
        self.assertIn("| 1 KiB | 3.0 | 1.0 | 2.0 | **1.50** | 0.50 |", text)

    def test_a_row_that_is_as_fast_is_not_named(self):
        measured = results(Railhead_shm=2.004, Open_MPI=2.0)
        self.assertEqual(collective_tables.slower_rows(measured), [])
        self.assertIn("No row is slower than Open MPI's.", collective_tables.document(measured))
        self.assertIn("| 1 KiB | 2.0 | 2.0 | 1.00 | - |", collective_tables.document(measured))

    def test_windows_do_not_excuse_buffers_from_anywhere(self):
        measured = results(Railhead_shm=2.1, Railhead_windows=0.1, Open_MPI=2.0)
        self.assertEqual(len(collective_tables.slower_rows(measured)), 1)

    def test_order_is_that_of_the_measurement_and_then_of_ranks(self):
        cells = {(collective, ranks, 8, "Open MPI"): Cell(1.0, 1.0)
                 for collective in ("scatter", "barrier", "all_to_all") for ranks in (8, 2)}
        self.assertEqual(Results(cells, ["Open MPI"]).groups(),
                         [("scatter", 2), ("scatter", 8), ("barrier", 2), ("barrier", 8),
                          ("all_to_all", 2), ("all_to_all", 8)])

    def test_a_barrier_has_a_column_without_data(self):
        cells = {(collective, 4, size, name): Cell(t, t)
                 for collective, size in (("barrier", 0), ("reduce", 8 * MI))
                 for name, t in (("Railhead shm", 1.0), ("Open MPI", 2.0))}
        table = collective_tables.summary_table(Results(cells, ["Railhead shm", "Open MPI"]))
        self.assertEqual(table, ["| collective | ranks | no data | 8 MiB |", "|---|---|---|---|",
                                 "| Barrier | 4 | 0.50 | - |", "| Reduce | 4 | - | 0.50 |"])

    def test_a_table_has_only_libraries_that_were_measured(self):
        measured = results(Railhead_shm=1.0, Open_MPI=2.0)
        measured.candidates.insert(1, "gloo")
        self.assertEqual(collective_tables.table(measured, "broadcast", 2)[0],
                         "| size | Railhead shm, us | Open MPI, us | ours / Open MPI | in windows |")


if __name__ == "__main__":
    unittest.main()
