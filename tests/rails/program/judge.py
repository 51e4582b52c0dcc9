# SPDX-License-Identifier: Apache-2.0
"""What is wrong with what a program did. Pure functions."""

import dataclasses
import re
import signal

from .plan import KILL, dying, members

BUSY_SECONDS = 30  # by which a busy machine may delay an error


@dataclasses.dataclass
class Rank:
    """What one rank did."""
    lines: list       # that it wrote (player/player.h)
    log: str          # its stderr
    status: int       # its exit code, negative for a signal; None: it has not ended
    at: int           # the number of the line that it was playing
    command: str      # that line


def _fields(line):
    return dict(word.split("=", 1) for word in line.split(" ") if "=" in word)


def doomed(plan):
    """Returns of each communicator that must fail the ranks (of the world) that its errors may name."""
    victims = dying(plan)
    found = {}
    for comm, ranks in members(plan).items():
        named = [rank for rank in ranks if rank in victims]
        if named:
            found[comm] = named
    for step in plan.steps:
        if step["do"] == "revoke":
            found.setdefault(step["comm"], []).append(step["rank"])
    return found


def _made(step):
    """Returns the communicators that a step makes."""
    new = step.get("new")
    return list(new.values()) if isinstance(new, dict) else [] if new is None else [new]


def _error(plan, of, fates, rank, line):
    """Returns what is wrong with an error, or None."""
    fields = _fields(line)
    text = line.split(" ", 4)[4]
    comm = int(fields["comm"])
    if comm not in fates:
        return f"rank {rank}: an error where none may be: {line}"
    # While a communicator is made, errors have the numbers of its ranks, or of those of its parent.
    made = [number for step in plan.steps if step["id"] == int(fields["step"])
            for number in (*_made(step), step.get("comm", comm))]
    numbers = {of[own].index(one) for own in (comm, *made) for one in fates[comm] if one in of[own]}
    if rank in dying(plan):
        numbers = set(range(plan.world.ranks()))  # for a rank that was stopped, the others have gone
    if not any(re.search(rf"\brank {number}\b", text) for number in numbers):
        return f"rank {rank}: the error names none of {sorted(numbers)}: {line}"
    limit = BUSY_SECONDS
    if any(plan_step["signal"] != KILL for plan_step in dying(plan).values()):
        limit += 3 * plan.world.timeout() + int(plan.world.environment["RAILHEAD_START_TIMEOUT_SECONDS"])
    if float(fields["seconds"]) > limit and rank not in dying(plan):
        return f"rank {rank}: the error came only after {fields['seconds']} s: {line}"
    return None


def is_wrong(plan, rank, line):
    """Whether a line that a rank has written must not be there."""
    return line.startswith("wrong") or (
        line.startswith("error") and _error(plan, members(plan), doomed(plan), rank, line) is not None)


def findings(plan, ranks):
    """Returns what is wrong, a text each; `ranks` are all ranks' Rank."""
    found, hangs = [], []
    of, fates, victims = members(plan), doomed(plan), dying(plan)
    digests = {}
    for number, rank in enumerate(ranks):
        for line in rank.lines:
            if line.startswith("wrong"):
                found.append(f"rank {number}: {line}")
            elif line.startswith("left"):
                found.append(f"rank {number}: at the end there are still {line[5:]}")
            elif line.startswith("error"):
                wrong = _error(plan, of, fates, number, line)
                if wrong:
                    found.append(wrong)
            elif line.startswith("digest"):
                step, value = _fields(line)["step"], line.split()[-1]
                if digests.setdefault(step, (number, value))[1] != value:
                    found.append(f"rank {number}: step {step} has other bits than on rank {digests[step][0]}")
        killed = number in victims and victims[number]["signal"] == KILL
        if rank.status is None:
            hangs.append(f"rank {number} hangs in line {rank.at}: {rank.command}")
        elif killed and rank.status == -signal.SIGKILL:
            pass
        elif rank.status != 0 or not rank.lines or rank.lines[-1] != "bye":
            log = rank.log.strip()[-300:]
            found.append(f"rank {number} ended with {rank.status} in line {rank.at}: {rank.command}; {log}")
    return found or hangs  # after another finding, a program is ended
