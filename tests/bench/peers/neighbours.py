# SPDX-License-Identifier: Apache-2.0
"""Measures other load on this machine's cores: to wait for a quiet moment, and to report how quiet it was."""

import os
import resource
import time

QUIET = 0.1  # share of all cores
LONGEST_WAIT_SECONDS = 10


def busy_seconds():
    """Returns the seconds since the start that all cores were busy, or that a hypervisor took from them."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = \
            [int(field) for field in stat.readline().split()[1:9]]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Returns the part of that time that belongs to this process and its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Neighbours:
    """Waits at most `patience` seconds in total, a few at a time, so that one long load does not use up all of it in
    the first run."""

    def __init__(self, patience):
        self._patience = patience

    def wait_for_quiet(self):
        for _ in range(LONGEST_WAIT_SECONDS):
            if self._patience <= 0 or self.share_during(lambda: time.sleep(0.5)) < QUIET:
                return
            time.sleep(0.5)
            self._patience -= 1

    @staticmethod
    def share_during(work):
        """Returns the share of all cores' time that other programs used while work() ran, from 0 to 1."""
        begin, busy, own = time.monotonic(), busy_seconds(), own_seconds()
        work()
        seconds = (time.monotonic() - begin) * os.cpu_count()
        return max(0.0, (busy_seconds() - busy - (own_seconds() - own)) / seconds)
