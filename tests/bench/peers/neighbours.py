# SPDX-License-Identifier: Apache-2.0
"""What else uses this machine's cores: to wait for a quiet moment, and to say how quiet it was."""

import os
import resource
import time

QUIET = 0.1  # of all cores
LONGEST_WAIT_SECONDS = 10


def busy_seconds():
    """Seconds that all cores have worked since the start, or that a hypervisor took from them."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = \
            [int(field) for field in stat.readline().split()[1:9]]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """What of it was this process and its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Neighbours:
    """Waits no more than `patience` seconds in its life, and a few at a time: who builds something
    big is no reason to give it all to the first run."""

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
        """The part of all cores' time that others took while work() ran, from 0 to 1."""
        begin, busy, own = time.monotonic(), busy_seconds(), own_seconds()
        work()
        seconds = (time.monotonic() - begin) * os.cpu_count()
        return max(0.0, (busy_seconds() - busy - (own_seconds() - own)) / seconds)
