# SPDX-License-Identifier: Apache-2.0
"""One rank that times all_reduce of float32 tensors, by a backend of torch.

usage: bench.py BACKEND DEVICE [BYTES]...     with torchrun's variables; rank 0 prints "BYTES SECONDS" for each size

The time is the best of several rounds of many calls, of the rank that took longest: the machine may have other
work, and none makes a call faster.
"""

import sys
import time

import torch
import torch.distributed as dist

ROUNDS = 5
SECONDS = 0.15  # of one round, about


def timed(calls, tensor, device):
    """Seconds of one call, on the slowest rank."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor)
    if device == "cuda":
        torch.cuda.synchronize()
    mine = torch.tensor([(time.perf_counter() - begin) / calls], dtype=torch.float64)
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    return mine.item()


def main():
    backend, device, *sizes = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    timed(50, torch.zeros(1 << 22, device=device), device)  # a GPU that rests has a low clock
    for size in map(int, sizes):
        tensor = torch.zeros(size // 4, device=device)
        one = timed(3, tensor, device)
        calls = max(1, min(2000, int(SECONDS / one)))
        best = min(timed(calls, tensor, device) for _ in range(ROUNDS))
        if dist.get_rank() == 0:
            print(size, f"{best:.9f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
