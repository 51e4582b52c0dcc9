#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import conditions
import neighbours
from conditions import Hierarchy, NotMeasured

UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
VERSION_1 = ("cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
             "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n")
HYBRID = VERSION_1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"


def seconds_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HierarchyTest(unittest.TestCase):
    def test_version_2_with_the_cpu_controller(self):
        found = conditions.hierarchy_of("proc /proc proc rw 0 0\n" + UNIFIED, "", lambda _: "cpuset cpu io\n")
        self.assertEqual(found, Hierarchy(2, pathlib.Path("/sys/fs/cgroup")))

    def test_version_1_below_the_own_group(self):
        found = conditions.hierarchy_of(VERSION_1, "5:cpuset:/\n4:cpu,cpuacct:/docker/7\n0::/x\n", lambda _: "")
        self.assertEqual(found, Hierarchy(1, pathlib.Path("/sys/fs/cgroup/cpu,cpuacct/docker/7")))

    def test_both_versions(self):
        found = conditions.hierarchy_of(HYBRID, "1:cpu,cpuacct:/\n", lambda _: "hugetlb\n")
        self.assertEqual(found, Hierarchy(1, pathlib.Path("/sys/fs/cgroup/cpu,cpuacct")))

    def test_a_controller_that_is_not_enabled(self):
        with self.assertRaisesRegex(NotMeasured, "no control groups with a CPU controller"):
            conditions.hierarchy_of(UNIFIED, "0::/\n", lambda _: "cpuset memory\n")

    def test_a_group_outside_of_this_mount(self):
        with self.assertRaises(NotMeasured):
            conditions.hierarchy_of(VERSION_1, "4:cpu,cpuacct:/../7\n", lambda _: "")


class ThrottlingTest(unittest.TestCase):
    def test_both_versions(self):
        for text in ("usage_usec 7\nnr_periods 40\nnr_throttled 3\nthrottled_usec 9\n",
                     "nr_periods 40\nnr_throttled 3\nthrottled_time 9\n"):
            self.assertEqual(conditions.throttling_of(text), (3, 40))


class BusyTest(unittest.TestCase):
    def test_one_process_spins_on_each_core_until_the_end(self):
        before = neighbours.own_seconds()
        with conditions.busy() as place:
            self.assertEqual(len(place.spinners), os.cpu_count())
            self.assertEqual(place.prefix, [])
            deadline = time.monotonic() + 60
            while min(map(seconds_of, place.spinners)) < 0.1:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            for pid in place.spinners:
                self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), os.getpriority(os.PRIO_PROCESS, 0))
        for pid in place.spinners:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
        # So they are no other programs in the figures.
        self.assertGreaterEqual(neighbours.own_seconds() - before, 0.1 * os.cpu_count())


class LimitedTest(unittest.TestCase):
    def test_a_process_sees_the_limit_and_is_held_to_it(self):
        spin = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
        try:
            with conditions.limited(0.05) as place:
                shown = subprocess.run([*place.prefix, "/bin/sh", "-c", "cat /sys/fs/cgroup/cpu.max 2>/dev/null ||"
                                        " cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us"], capture_output=True, text=True,
                                       timeout=60, check=True).stdout
                self.assertEqual(shown.split()[0], "5000")
                used = subprocess.run([*place.prefix, "/usr/bin/python3", "-c", spin], capture_output=True, text=True,
                                      timeout=60, check=True).stdout
                self.assertLess(float(used), 0.3)
                group = place.group
                self.assertTrue(group.exists())
        except NotMeasured as reason:
            self.skipTest(str(reason))
        self.assertFalse(group.exists())
        throttled, periods = place.throttled
        self.assertGreater(throttled, 0)
        self.assertGreaterEqual(periods, throttled)

    def test_arguments_arrive_unchanged(self):
        words = ["a b", "$HOME", "'", ""]
        try:
            with conditions.limited(1) as place, tempfile.TemporaryDirectory() as folder:
                show = ["/usr/bin/python3", "-c", "import sys; print(sys.argv[1:])", *words]
                out = subprocess.run([*place.prefix, *show], capture_output=True, text=True, timeout=60, check=True,
                                     cwd=folder).stdout
        except NotMeasured as reason:
            self.skipTest(str(reason))
        self.assertEqual(out.strip(), str(words))


if __name__ == "__main__":
    unittest.main()
