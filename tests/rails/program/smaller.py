# SPDX-License-Identifier: Apache-2.0
"""Makes a program that fails smaller: drops steps and faults while it fails in the same way. Pure functions."""

import copy

from . import legal
from .plan import FOR_GOOD, KILL


def _must_stay(step):
    """Without these, what follows would not be legal: communicators that must fail would not."""
    do = step["do"]
    return (do in ("init", "revoke", "fail") or step.get("blocking", False)
            or (do == "alarm" and (step["signal"] == KILL or step["seconds"] == FOR_GOOD)))


def _new(step):
    new = step.get("new")
    return set(new.values()) if isinstance(new, dict) else set() if new is None else {new}


def without(plan, units):
    """Returns the plan without these units, and without all that needs them; None if it is not legal then."""
    smaller = copy.deepcopy(plan)
    steps = {number for kind, number in units if kind == "step"}
    messages = {number for kind, number in units if kind == "message"}
    faults = {number for kind, number in units if kind == "fault"}
    smaller.faults = [fault for at, fault in enumerate(smaller.faults) if at not in faults]
    comms, windows, kept = set(), set(), []
    for step in smaller.steps:
        if "parts" in step:
            step["parts"] = [part for part in step["parts"] if part["id"] not in steps and part["comm"] not in comms]
        if step["id"] in steps or step.get("message") in messages or step.get("comm") in comms \
                or step.get("parts") == []:
            if _must_stay(step):
                return None
            comms |= _new(step)
            windows |= {step["window"]} if step["do"] == "window" else set()
        elif step["do"] != "unwindow" or step["window"] not in windows:
            kept.append(step)
    for step in kept:
        for one in step.get("parts", [step]):
            if one["do"] == "call" and one.get("window") in windows:
                del one["window"]
    smaller.steps = kept
    numbers = {step["id"] for step in kept}
    smaller.swaps = {rank: [number for number in order if number in numbers]
                     for rank, order in smaller.swaps.items()}
    try:
        legal.check(smaller)
    except legal.Illegal:
        return None
    return smaller


def units(plan):
    """Returns what may be dropped, one by one."""
    found = [("fault", at) for at in range(len(plan.faults))]
    seen = set()
    for step in plan.steps:
        if "message" in step:
            if step["message"] not in seen:
                found.append(("message", step["message"]))
            seen.add(step["message"])
        elif not _must_stay(step):
            found.append(("step", step["id"]))
            found += [("step", part["id"]) for part in step.get("parts", ())]
    return found


def shrink(plan, fails):
    """Drops units while fails(plan); fails() may end it by an exception, with the smallest plan so far at hand."""
    size = max(1, len(units(plan)) // 2)
    while True:
        rest = units(plan)
        at = 0
        dropped = False
        while at < len(rest):
            smaller = without(plan, rest[at:at + size])
            if smaller is not None and fails(smaller):
                plan, dropped = smaller, True
                rest = units(plan)
            else:
                at += size
        if size == 1 and not dropped:
            return plan
        size = max(1, size // 2)
