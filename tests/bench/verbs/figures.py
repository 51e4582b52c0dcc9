# SPDX-License-Identifier: Apache-2.0
"""Formats the measurements as Markdown: goals, shares and tables. Pure functions."""

import statistics

from tables import reached, size_text

BANDWIDTH_GOAL = 0.92   # share of ib_write_bw's sum over the rails
LATENCY_GOAL = 2.5      # times ib_write_lat
PEER_GOAL = 1.0         # minimum speedup over the peer
# The NIC retries 7 times, each time after 4.096 us * 2^15, and then gives up.
QP_TIMEOUT = 7 * 4.096e-6 * 2**15
STALL_GOAL = QP_TIMEOUT + 0.1
PORT_DOWN_GOAL = 0.1
RETURN_GOAL = 2.0
ENOUGH = 64 << 10       # bytes that a rail must send to count as used again


def equal_table(rates, latencies, times):
    rate, latency = statistics.median(rates), statistics.median(latencies)
    lines = [f"ib_write_bw gives {rate / 1e6:.2f} MB/s on all rails together, ib_write_lat {latency:.0f} us "
             "for 8 bytes.", "",
             "| bytes | Railhead, us | Open MPI + UCX, us | times as fast | | Railhead, of the rails' rate | "
             "Open MPI + UCX | goal | |", "|---|---|---|---|---|---|---|---|---|"]
    for size in sorted(times["railhead"]):
        ours = statistics.median(times["railhead"][size])
        peer = statistics.median(times["openmpi"][size])
        ahead = peer / ours
        share = size / (ours * 1e-6) / rate
        goal, good = "", ""
        if size == 8:
            goal, good = f"{LATENCY_GOAL} x ib_write_lat", reached(ours <= LATENCY_GOAL * latency)
            goal += f": {ours / latency:.2f}"
        elif size >= 4 << 20:
            goal, good = f"{BANDWIDTH_GOAL:.0%}", reached(share >= BANDWIDTH_GOAL)
        lines.append(f"| {size_text(size)} | {ours:.0f} | {peer:.0f} | {ahead:.2f} | {reached(ahead >= PEER_GOAL)} "
                     f"| {share:.1%} | {size / (peer * 1e-6) / rate:.1%} | {goal} | {good} |")
    return "\n".join(lines)


def unequal_table(rates, times):
    rate = statistics.median(rates)
    lines = ["| bytes | ib_write_bw, MB/s | Railhead, MB/s | of it | goal | |", "|---|---|---|---|---|---|"]
    for size, took in sorted(times.items()):
        ours = size / (statistics.median(took) * 1e-6)
        lines.append(f"| {size_text(size)} | {rate / 1e6:.2f} | {ours / 1e6:.2f} | {ours / rate:.1%} "
                     f"| {BANDWIDTH_GOAL:.0%} | {reached(ours >= BANDWIDTH_GOAL * rate)} |")
    return "\n".join(lines)


def failures_table(unplugged, switched):
    """Takes failures of unplugged rails, and of rails whose ports were down: [{"stall", "back"}], in seconds."""
    lines = ["| | | median | longest | goal | |", "|---|---|---|---|---|---|"]
    for what, events, goal in (("unplugged", unplugged, STALL_GOAL), ("port down", switched, PORT_DOWN_GOAL)):
        for name, key, most in (("stall", "stall", goal), ("used again", "back", RETURN_GOAL)):
            times = [event[key] for event in events]
            lines.append(f"| {what} | {name} | {statistics.median(times):.2f} s | {max(times):.2f} s "
                         f"| {most:.2f} s | {reached(max(times) < most)} |")
    return "\n".join(lines)
