#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch over railhead compared with gloo, in the same processes; the backend's overhead over the C API.

usage: run.py [PASSES]     prints Markdown; progress goes to standard error. Run `make wheel` first.
"""

import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "frameworks"), str(ROOT / "tests" / "rails"),
                str(ROOT / "tests" / "bench" / "peers")]

import cases  # noqa: E402
from neighbours import Neighbours  # noqa: E402
from network import Network  # noqa: E402
from one_torch import OUT, Torch  # noqa: E402

MINOR = "2.15"
SIZES = tuple(4096 << (2 * i) for i in range(8))  # to 64 MiB
GOALS = {2: 4, 4: 3}  # minimum speedup over gloo in shared memory, by ranks
GRADIENTS_MEBIBYTES = 100
RAILS = (200, 200)  # Mbit/s
RAILS_SIZES = (1 << 20, 8 << 20, 32 << 20)
RAILS_GOAL = 1.8  # minimum speedup over gloo on one of the rails
BACKEND_GOAL = 10e-6  # maximum seconds more than the C API's call at 4 KiB
PRIORITY = -10

ABOUT = """\
Two or four processes of this machine, one thread each for what torch computes. Both backends are groups of the same
processes and take turns; each figure is the median of {passes} passes of the slowest rank's mean. Sums and gradients are
compared before anything is timed. Other programs took {others:.0%} of the cores during the runs; all that is measured
ran with priority {priority}. torch is {version}.
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def verdict(reached):
    return "reached" if reached else "missed"


def result(text):
    """Returns the result of loop.py, with numbers as keys if they are numeric."""
    found = re.search("^RESULT (.*)$", text, re.M)
    cases.expect(found, text)
    return {int(key) if key.isdigit() else key: row for key, row in json.loads(found[1]).items()}


def size_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def in_memory(torch, passes):
    return {ranks: result(torch.run(HERE / "loop.py", "all_reduce", passes, *SIZES, ranks=ranks, seconds=600))
            for ranks in GOALS}


def c_call():
    """Returns the seconds of the same all-reduce of two ranks with the C API."""
    text = cases.run_ranks(2, ROOT / "out" / "portable" / "bin" / "railhead-perf", "all_reduce", "-b", SIZES[0], "-e",
                           SIZES[0], "-n", 2000, "-w", 200, "-o", "json")
    [row] = json.JSONDecoder().raw_decode(text, text.index("{"))[0]["results"]
    return row["in_place"]["time_us"] * 1e-6


def over_rails(torch, passes):
    folder = OUT / "bench"
    folder.mkdir(exist_ok=True)
    with (Network(RAILS) as network,
          torch.on_nodes(network, folder, HERE / "loop.py", "all_reduce", passes, *RAILS_SIZES,
                         GLOO_SOCKET_IFNAME=network.interfaces()[0]) as (children, (said, _))):
        for child in children:
            child.wait(600)
        return result(said.read_text("utf-8"))


def tables(memory, call, steps, rails):
    yield "## All-reduce in memory\n"
    yield "| ranks | bytes | gloo, us | railhead, us | gloo / railhead | goal | |"
    yield "|---|---|---|---|---|---|---|"
    for ranks, rows in memory.items():
        for size, row in rows.items():
            ratio = row["gloo"] / row["railhead"]
            yield (f"| {ranks} | {size_of(size)} | {row['gloo'] * 1e6:,.1f} | {row['railhead'] * 1e6:,.1f} | {ratio:.1f} | "
                   f"{GOALS[ranks]} | {verdict(ratio >= GOALS[ranks])} |")
    ours = memory[2][SIZES[0]]["railhead"]
    yield (f"\nThe C API's call of two ranks and {size_of(SIZES[0])} (railhead-perf, in place) takes {call * 1e6:.1f} us: torch and "
           f"the backend add {(ours - call) * 1e6:.1f} us (goal: at most {BACKEND_GOAL * 1e6:.0f}, "
           f"{verdict(ours - call <= BACKEND_GOAL)}).\n")
    yield f"## A step of DDP with {GRADIENTS_MEBIBYTES} MiB of gradients\n"
    yield "Forward, backward and all-reduce of five linear layers. The time beyond a step without DDP is the time that ranks wait for each other.\n"
    yield "| ranks | without DDP, ms | gloo, ms | railhead, ms | more than without: gloo, ms | railhead, ms | gloo / railhead |"
    yield "|---|---|---|---|---|---|---|"
    for ranks, found in steps.items():
        row = found["step"]
        more = {name: row[name] - row["alone"] for name in ("gloo", "railhead")}
        yield (f"| {ranks} | {row['alone'] * 1e3:.0f} | {row['gloo'] * 1e3:.0f} | {row['railhead'] * 1e3:.0f} | "
               f"{more['gloo'] * 1e3:.0f} | {more['railhead'] * 1e3:.0f} | {row['gloo'] / row['railhead']:.2f} |")
    yield (f"\n## Two nodes, {len(RAILS)} rails of {RAILS[0]} Mbit/s\n")
    yield "Two network namespaces joined by shaped links. gloo uses one interface, which it is given.\n"
    yield "| bytes | gloo, ms | railhead, ms | gloo / railhead | goal | |"
    yield "|---|---|---|---|---|---|"
    for size, row in rails.items():
        ratio = row["gloo"] / row["railhead"]
        yield (f"| {size_of(size)} | {row['gloo'] * 1e3:.1f} | {row['railhead'] * 1e3:.1f} | {ratio:.2f} | {RAILS_GOAL} | "
               f"{verdict(ratio >= RAILS_GOAL)} |")


def main():
    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    torch = Torch(MINOR)
    torch.unpack()
    version = cases.run(torch.python, "-c", "import torch; print(torch.__version__)").strip()
    found, others = {}, []

    def measure(name, what):
        say(f"{name} ...")
        others.append(Neighbours.share_during(lambda: found.setdefault(name, what())))

    measure("all-reduce in memory", lambda: in_memory(torch, passes))
    measure("the C API's call", c_call)
    measure("steps", lambda: {ranks: result(torch.run(HERE / "loop.py", "ddp", passes, GRADIENTS_MEBIBYTES, ranks=ranks,
                                                      seconds=600)) for ranks in GOALS})
    measure("two rails", lambda: over_rails(torch, passes))
    print(ABOUT.format(passes=passes, others=sum(others) / len(others), priority=PRIORITY, version=version))
    print(*tables(*found.values()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
