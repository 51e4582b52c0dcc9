# SPDX-License-Identifier: Apache-2.0
"""Evaluates the measurements: shares, goals and tables."""

import statistics

from tables import reached

EQUAL_GOAL = 0.95    # share of the bandwidth of plain streams on the same rails
UNEQUAL_GOAL = 0.93  # share of the sum of the rails, as measured with plain streams
STALL_GOAL = 0.5     # seconds
RETURN_GOAL = 2.0


def goal_of(rates):
    return EQUAL_GOAL if len(set(rates)) == 1 else UNEQUAL_GOAL


def bandwidth_table(results):
    """`results` is {rates: {name: [bytes per second, one for each pass]}}; "raw" is one of the names."""
    lines = ["| rails, Mbit/s | bytes | plain streams, MB/s | Railhead, MB/s | of plain | goal | | "
             "Open MPI, MB/s | of plain | Open MPI tuned, MB/s | of plain |", "|" + "---|" * 11]
    for rates, by_name in results.items():
        raw = statistics.median(by_name["raw"])
        goal = goal_of(rates)
        for size in sorted({key[1] for key in by_name if key != "raw"}):
            ours = statistics.median(by_name["railhead", size])
            peers = [statistics.median(by_name[name, size]) for name in ("openmpi", "tuned")]
            lines.append(
                f"| {' + '.join(f'{rate:g}' for rate in rates)} | {size >> 20} MiB | {raw / 1e6:.1f} "
                f"| {ours / 1e6:.1f} | {ours / raw:.1%} | {goal:.0%} | {reached(ours >= goal * raw)} | "
                + " | ".join(f"{peer / 1e6:.1f} | {peer / raw:.1%}" for peer in peers) + " |")
    return "\n".join(lines)


def failure_table(events):
    """`events` is [{"trouble", "stall", "back"}], in seconds."""
    lines = ["| what happens | times | stall, median | longest | used again, median | longest | |",
             "|---|---|---|---|---|---|---|"]
    for trouble in sorted({event["trouble"] for event in events}):
        of = [event for event in events if event["trouble"] == trouble]
        stalls = [event["stall"] for event in of]
        back = [event["back"] for event in of]
        good = max(stalls) < STALL_GOAL and max(back) < RETURN_GOAL
        lines.append(f"| {trouble} | {len(of)} | {statistics.median(stalls):.2f} s "
                     f"| {max(stalls):.2f} s | {statistics.median(back):.2f} s | {max(back):.2f} s "
                     f"| {reached(good)} |")
    return "\n".join(lines)
