# SPDX-License-Identifier: Apache-2.0
"""The time of day is set back by an hour, and ahead by an hour and a day, on the machine of the leading operator:
while a gang arrives, waits for room and is held, and while leases are renewed and certificates maintained. It is also
wrong from the start. Nothing ends or hangs because of that. Each replica has its own time of day (time_of_day.c); the API server's does not change.
runtime/comm/api/wall_clock_test.cc tests ranks of a job in the same way, device-plugin/wall_clock_test.cc the
agent."""

import os
import pathlib
import struct
import subprocess
import sys
import time
import unittest

from gangs_test import LEAVES, NODES, SPACE, SPINES, GangScene, pod
from helm import NAMESPACE
from replica import Replica

from control_plane import COMMAND, wait_until

STEPS = (-3600, 3600, 86400)
ALL_NODES = SPINES * LEAVES * NODES
STILL = 12  # seconds: longer than a lease is valid without a renewal, and than gangs stay unchecked
BUSY = 2  # seconds for two requests: a machine on which they take longer may be too busy to renew a lease in time


class Clock:
    """The time of day of one replica."""

    def __init__(self, folder, name, seconds):
        self._file = folder / f"{name}.time"
        self.set(seconds)
        library = folder / "time_of_day.so"
        if not library.exists():
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library,
                            pathlib.Path(__file__).parent / "time_of_day.c"], check=True, timeout=COMMAND)
        self.environment = os.environ | {"LD_PRELOAD": str(library), "RAILHEAD_TIME_FILE": str(self._file)}

    def set(self, seconds):
        """Sets the offset from the machine's time, in seconds."""
        with open(self._file, "r+b" if self._file.exists() else "w+b") as file:
            file.write(struct.pack("<q", seconds))


class TimeOfDay(GangScene):
    @classmethod
    def make_replica(cls, name, seconds=0):
        clock = Clock(cls.folder, name, seconds)
        replica = Replica(cls.cluster, cls.folder, name, clock.environment)
        cls.clocks = {**getattr(cls, "clocks", {}), replica: clock}
        return replica

    def members(self, gang, indices, size, **annotations):
        self.sizes[gang] = size
        for index in indices:
            item = pod(gang, index, size)
            item["metadata"]["annotations"] |= {f"railhead.io/{key.replace('_', '-')}": value
                                                for key, value in annotations.items()}
            made = self.ask("POST", f"{SPACE}/pods", item)
            # The webhook's certificate is accepted, and the webhook responds.
            self.assertIn("railhead.io/injected", made["metadata"]["annotations"])

    def placed(self, gang):
        return len(self.look()[gang]) == self.sizes[gang]

    def wait_until_placed(self, gang):
        wait_until(lambda: self.placed(gang), f"{gang} on its nodes", self.replica.log)

    def phases(self):
        return {item["metadata"]["name"]: item["status"].get("phase") for item in self.pods()}

    def stays(self, holds, what):
        """Checks for STILL seconds that holds() is true. Returns whether it was; False if the machine was so busy that
        a lease may have been lost for that reason."""
        begin = busy = time.monotonic()
        while time.monotonic() < begin + STILL:
            asked = time.monotonic()
            self.cluster.get("leases", "-n", NAMESPACE)
            good = holds()
            now = time.monotonic()
            if now - asked > BUSY:
                busy = now
            if not good:
                self.assertTrue(begin < busy and now < busy + 2 * STILL, what)
                print(f"the machine was too busy to show more: {what}", file=sys.stderr)
                return False
            time.sleep(0.5)
        return True

    def leads_and_is_ready(self):
        return self.replica.leads() and self.replica.ask("/readyz")[0] == 200

    def play(self, step):
        clock = self.clocks[self.replica]
        # One gang runs, one waits for room, and one for its pods.
        self.members("holds", range(ALL_NODES - 4), ALL_NODES - 4)
        self.wait_until_placed("holds")
        self.members("waits", range(8), 8, gang_timeout="30m", gang_timeout_policy="fail")
        self.members("comes", range(2), 4, gang_timeout="30m", gang_timeout_policy="fail")
        time.sleep(1)
        clock.set(step)
        while not self.stays(self.leads_and_is_ready, "it leads no more, or is not ready"):
            wait_until(self.leads_and_is_ready, "the leader", self.replica.log)
        self.assertEqual(set(self.phases().values()), {"Pending"})
        self.assertEqual((self.look()["waits"], self.look()["comes"]), ({}, {}))
        self.members("comes", range(2, 4), 4)
        self.wait_until_placed("comes")
        self.leave("holds")
        self.wait_until_placed("waits")
        self.assertEqual(set(self.phases().values()), {"Pending"})
        # And back, while all run.
        clock.set(0)
        self.members("later", range(4), 4)
        self.wait_until_placed("later")
        wait_until(self.replica.leads, "the leader", self.replica.log)
        self.remove_all()
        wait_until(lambda: not self.pods(), "no pods")

    def test_1_nothing_ends_and_nothing_hangs(self):
        for step in STEPS:
            with self.subTest(step):
                self.play(step)

    def test_2_a_leader_whose_time_of_day_was_always_wrong_ends_no_wait(self):
        self.members("holds", range(ALL_NODES - 4), ALL_NODES - 4)
        self.wait_until_placed("holds")
        self.members("waits", range(8), 8, gang_timeout="30m", gang_timeout_policy="fail")
        other = self.make_replica("ahead", 86400)
        self.addClassCleanup(other.end)
        self.replica.end()
        wait_until(other.leads, "another leader", other.log)
        type(self).replica = other
        time.sleep(STILL)
        self.assertEqual(set(self.phases().values()), {"Pending"})
        self.leave("holds")
        self.wait_until_placed("waits")
        self.assertEqual(set(self.phases().values()), {"Pending"})
        self.remove_all()
        wait_until(lambda: not self.pods(), "no pods")

    def test_3_another_leads_though_its_time_of_day_was_set(self):
        for number, step in enumerate(STEPS):
            with self.subTest(step):
                other = self.make_replica(f"other{number}")
                self.addClassCleanup(other.end)
                other.wait_until_ready()
                self.clocks[other].set(step)
                self.stays(lambda other=other: self.replica.leads() and not other.leads(),
                           "a lease was taken from who has it")
                self.replica.end()
                wait_until(other.leads, "another leader", other.log)
                type(self).replica = other


if __name__ == "__main__":
    unittest.main()
