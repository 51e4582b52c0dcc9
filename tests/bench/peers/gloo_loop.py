# SPDX-License-Identifier: Apache-2.0
"""The loop of loop.c for gloo, as PyTorch offers it: change both.

usage: gloo_loop.py TYPES ROUNDS ROUND_MS BYTES...    (RANK, WORLD_SIZE; MEETING: a new file's path)

PyTorch's all_reduce is in place. Nothing is copied back between calls, inside or outside the time
measured: the sums are checked once before, and what is measured sums zeros, whose sums stay finite.
"""

import datetime
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

PERIOD = 7
PIECE = PERIOD << 16
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

rank = int(os.environ["RANK"])
ranks = int(os.environ["WORLD_SIZE"])


def given(of_rank):
    """What a rank gives, up to the length of a piece."""
    return torch.arange(PIECE, dtype=torch.int32).remainder_(PERIOD).add_(of_rank + 1)


def largest(mine):
    """The largest of all ranks' numbers, on all ranks. None returns before every rank has come."""
    numbers = torch.zeros(ranks, dtype=torch.float32)
    numbers[rank] = mine
    dist.all_reduce(numbers)
    return numbers.max().item()


def round_of(buffer, iterations):
    """Seconds that so many all-reduces took."""
    largest(0.0)
    begin = time.perf_counter()
    for _ in range(iterations):
        dist.all_reduce(buffer)
    return largest(time.perf_counter() - begin)


def count_wrong(buffer):
    mine = given(rank).to(buffer.dtype)
    for piece in buffer.split(PIECE):
        piece.copy_(mine[:piece.numel()])
    dist.all_reduce(buffer)
    right = given(0).mul_(ranks).add_(ranks * (ranks - 1) // 2).to(buffer.dtype)
    return sum(int((piece != right[:piece.numel()]).sum()) for piece in buffer.split(PIECE))


def measure(name, size, rounds, round_seconds):
    buffer = torch.zeros(size // TYPES[name].itemsize, dtype=TYPES[name])
    wrong = largest(float(count_wrong(buffer)))
    buffer.zero_()
    iterations = 1
    while min(round_of(buffer, iterations) for _ in range(3)) < round_seconds / 2:
        iterations *= 2
    times = [round_of(buffer, iterations) / iterations * 1e6 for _ in range(rounds)]
    if rank == 0:
        print(json.dumps({"type": name, "bytes": size, "iterations": iterations,
                          "best_us": min(times), "median_us": statistics.median(times),
                          "wrong": int(wrong)}), flush=True)


def main():
    types, rounds, round_ms, *sizes = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.environ['MEETING']}", rank=rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=60))
    if rank == 0:
        print(json.dumps({"library": f"gloo of PyTorch {torch.__version__}", "ranks": ranks}),
              flush=True)
    for name in types.split(","):
        for size in sizes:
            measure(name, int(size), int(rounds), float(round_ms) / 1e3)
    dist.destroy_process_group()


main()
