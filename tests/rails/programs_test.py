# SPDX-License-Identifier: Apache-2.0
"""Programs are legal and repeatable, cover what they must, and are judged as they should be. Nothing is played here."""

import copy
import unittest

from program import commands, generate, judge, legal, plan, smaller

SEEDS = range(1, 400)


def plans(**only):
    return (generate.generate(seed, **only) for seed in SEEDS)


def finished(the_plan, lines=(), status=0):
    """Returns ranks that have ended well; the first one has written these lines."""
    ranks = [judge.Rank(["ready", "end checked=1", "bye"], "", status, 0, "") for _ in the_plan.world.pods]
    ranks[0].lines[1:1] = lines
    return ranks


class Programs(unittest.TestCase):
    def test_a_seed_is_one_program(self):
        for seed in (1, 77, 1234):
            self.assertEqual(generate.generate(seed).to_json(), generate.generate(seed).to_json())
            self.assertNotEqual(generate.generate(seed).to_json(), generate.generate(seed + 1).to_json())

    def test_json_is_the_program(self):
        for one in plans():
            again = plan.from_json(one.to_json())
            self.assertEqual(plan.to_text(again), plan.to_text(one))
            self.assertEqual(commands.commands(again), commands.commands(one))

    def test_all_are_legal_also_in_other_orders(self):
        swapped = 0
        for one in plans():
            legal.check(one)
            swapped += bool(one.swaps)
        self.assertGreater(swapped, 50)

    def test_all_kinds_of_everything_occur(self):
        seen, calls, types, worlds = set(), set(), set(), set()
        for one in plans():
            seen.add(one.kind)
            worlds.add((one.world.transport, one.world.subnets))
            seen |= {fault["what"] for fault in one.faults}
            for step in one.steps:
                seen.add(step["do"])
                for part in step.get("parts", [step]):
                    if part["do"] == "call":
                        calls.add(part["kind"])
                        types.add((part["type"], part["op"]))
        kinds = {kind for kind, weight in generate.KINDS.items() if weight}
        self.assertLessEqual({*kinds, *generate.FAULTS, *legal.TOGETHER, *legal.TRANSFERS, "group", "pair", "alarm",
                              "revoke", "destroy", "unwindow"}, seen)
        self.assertEqual(set(generate.CALLS), calls)
        self.assertGreater(len(types), 80)
        self.assertLessEqual({("shm", "own"), ("tcp", "own"), ("tcp", "shared"), ("pods", "shared"), ("verbs", "own")},
                             worlds)

    def test_a_receive_before_its_send_is_illegal(self):
        one = next(one for one in plans(kinds={"quiet": 1}) if any(step["do"] == "isend" for step in one.steps))
        one.swaps = {}
        wait = next(step for step in one.steps if step["do"] == "wait_recv" and not step["any_source"])
        sender = next(step for step in one.steps if step["do"] == "isend" and step["message"] == wait["message"])
        receiver = plan.members(one)[wait["comm"]][wait["receiver"]]
        other = plan.members(one)[wait["comm"]][wait["sender"]]
        # Both ranks meet between the wait and the send.
        one.steps.remove(sender)
        at = one.steps.index(wait) + 1
        meeting = {"do": "split", "id": 99998, "comm": wait["comm"], "colors": [0] * len(plan.members(one)[wait["comm"]]),
                   "keys": [0] * len(plan.members(one)[wait["comm"]]), "new": {"0": 999}}
        one.steps[at:at] = [meeting, sender]
        if receiver != other:
            self.assertRaises(legal.Illegal, legal.check, one)


class Smaller(unittest.TestCase):
    def test_what_does_not_matter_is_dropped(self):
        for one in list(plans(kinds={"quiet": 3, "rails": 1, "kill": 1}))[:60]:
            calls = [step["id"] for step in one.steps if step["do"] == "call"]
            if not calls:
                continue
            wanted = calls[len(calls) // 2]

            def fails(candidate, wanted=wanted):
                legal.check(candidate)
                commands.commands(candidate)
                return any(step["id"] == wanted for step in candidate.steps)

            small = smaller.shrink(copy.deepcopy(one), fails)
            self.assertTrue(fails(small))
            self.assertEqual(small.faults, [])
            self.assertFalse([unit for unit in smaller.units(small)
                              if (less := smaller.without(small, [unit])) is not None and fails(less)])


class Judge(unittest.TestCase):
    def plan_of(self, kind):
        return next(plans(kinds={kind: 1}))

    def test_what_ended_well_is_right(self):
        one = self.plan_of("quiet")
        self.assertEqual(judge.findings(one, finished(one)), [])

    def test_each_wrong_line_is_a_finding(self):
        one = self.plan_of("quiet")
        for line in ("wrong step=3 byte 7 of 9 is 0x1, not 0x2", "left a thread",
                     "error comm=0 step=1 seconds=0.1 internal error: rank 1 is gone"):
            self.assertEqual(len(judge.findings(one, finished(one, [line]))), 1, line)

    def test_a_rank_that_has_not_ended_or_crashed_is_a_finding(self):
        one = self.plan_of("quiet")
        for status in (None, 1, -11):
            self.assertEqual(len(judge.findings(one, finished(one, status=status))), one.world.ranks())

    def test_other_bits_on_another_rank_are_a_finding(self):
        one = self.plan_of("quiet")
        ranks = finished(one, ["digest step=4 aa"])
        ranks[1].lines.insert(1, "digest step=4 ab")
        self.assertEqual(len(judge.findings(one, ranks)), 1)

    def test_an_error_names_a_rank_that_died_and_comes_in_time(self):
        one = next(one for one in plans(kinds={"kill": 1}) if 0 not in plan.dying(one) and len(plan.dying(one)) == 1)
        victim = plan.members(one)[0].index(next(iter(plan.dying(one))))
        for named, seconds, wrong in ((victim, 0.1, 0), (victim + 1, 0.1, 1), (victim, 500, 1)):
            line = f"error comm=0 step=99999 seconds={seconds} remote: rank {named} (pod a) is gone"
            ranks = finished(one, [line])
            for rank in plan.dying(one):
                ranks[rank].status = -9
            self.assertEqual(len(judge.findings(one, ranks)), wrong, line)


if __name__ == "__main__":
    unittest.main()
