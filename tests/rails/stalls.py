# SPDX-License-Identifier: Apache-2.0
"""Computes the cost of a failure from the operations of job.Job. Pure functions."""

import statistics


def usual(operations, before):
    """Returns the duration of an all-reduce without faults."""
    return statistics.median(o.end - o.begin for o in operations if o.end < before)


def stall(operations, fault, until):
    """Returns by how much the slowest all-reduce between `fault` and `until` exceeds the usual one then: the rails that
    are left have less bandwidth, which is no stall."""
    hit = [o.end - o.begin for o in operations if o.end > fault and o.begin < until]
    left = [o.end - o.begin for o in operations if o.begin > fault and o.end < until]
    return max(0.0, max(hit) - max(usual(operations, fault), statistics.median(left or [0.0])))


def used_again(operations, rail, repaired, enough):
    """Returns the seconds from the repair until the rail has sent `enough` bytes more."""
    before = max(o.sent[rail] for o in operations if o.end <= repaired)
    for operation in operations:
        if operation.end > repaired and operation.sent[rail] >= before + enough:
            return operation.end - repaired
    return float("inf")
