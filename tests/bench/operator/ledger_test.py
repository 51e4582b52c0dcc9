# SPDX-License-Identifier: Apache-2.0
"""ledger.py reports broken invariants, and nothing else."""

import unittest

from ledger import MOST_HALF, Ledger

NODES = {f"n{number}": True for number in range(4)}


def pod(name, node=None, phase="Running"):
    return {"metadata": {"name": name}, "spec": {"nodeName": node} if node else {}, "status": {"phase": phase}}


def never(_):
    return False


class Looks(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.ledger.come("w1", 2, 0)

    def look(self, *pods, nodes=None, seconds=2 * MOST_HALF, excused=never):
        """Takes a snapshot per second and returns the faults."""
        for now in range(seconds):
            self.ledger.look({"w1": list(pods)}, nodes or NODES, now, excused)
        return self.ledger.faults

    def test_a_gang_that_is_half_done_with_room_for_the_rest(self):
        faults = self.look(pod("w1-0", "n0"), pod("w1-1"))
        self.assertEqual(faults, ["w1 has 1 of 2 pods on nodes for 30 s, with 3 free nodes"])

    def test_without_room(self):
        self.assertFalse(self.look(pod("w1-0", "n0"), pod("w1-1"), nodes={"n0": True, "n1": False}))

    def test_in_excused_time(self):
        self.assertFalse(self.look(pod("w1-0", "n0"), pod("w1-1"), excused=lambda name: name == "w1"))

    def test_while_its_controller_has_not_made_the_other_pod(self):
        self.assertFalse(self.look(pod("w1-0", "n0"), pod("w1-1", "n1", "Failed")))

    def test_for_a_shorter_time(self):
        self.assertFalse(self.look(pod("w1-0", "n0"), pod("w1-1"), seconds=MOST_HALF))

    def test_whole_or_untouched(self):
        self.assertFalse(self.look(pod("w1-0"), pod("w1-1")))
        self.assertEqual(self.ledger.gangs["w1"].state, "waits")
        self.assertFalse(self.look(pod("w1-0", "n0"), pod("w1-1", "n1")))
        self.assertEqual(self.ledger.gangs["w1"].state, "whole")

    def test_a_node_that_is_held_twice(self):
        self.assertEqual(self.look(pod("w1-0", "n0"), pod("w1-1", "n0"), seconds=1), ["n0 has w1-0 and w1-1"])

    def test_a_node_whose_earlier_pod_has_ended(self):
        self.assertFalse(self.look(pod("w1-0", "n0", "Succeeded"), pod("w1-1", "n0"), seconds=1))


if __name__ == "__main__":
    unittest.main()
