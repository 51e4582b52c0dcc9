# SPDX-License-Identifier: Apache-2.0
"""What a failure cost, out of the operations that job.Job has seen. Functions of values."""

import statistics


def usual(operations, before):
    """How long an all-reduce takes while nothing is wrong."""
    return statistics.median(o.end - o.begin for o in operations if o.end < before)


def stall(operations, fault, until):
    """By how much the slowest all-reduce between `fault` and `until` exceeds the usual one."""
    hit = [o.end - o.begin for o in operations if o.end > fault and o.begin < until]
    return max(0.0, max(hit) - usual(operations, fault))


def used_again(operations, rail, repaired, enough):
    """Seconds from the repair until the rail has sent `enough` bytes more."""
    before = max(o.sent[rail] for o in operations if o.end <= repaired)
    for operation in operations:
        if operation.end > repaired and operation.sent[rail] >= before + enough:
            return operation.end - repaired
    return float("inf")
