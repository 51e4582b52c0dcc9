# SPDX-License-Identifier: Apache-2.0
"""One rank that times the same calls of torch over gloo and over railhead, in turns.

usage: loop.py all_reduce PASSES BYTES...     with torchrun's variables
       loop.py ddp PASSES MEBIBYTES           steps of a model with MEBIBYTES of gradients

Rank 0 prints one line: RESULT and a JSON object, {bytes or "step": {"gloo": seconds, "railhead": seconds}}; for ddp
also "alone", a step without other ranks. Each is the median over all passes of the slowest rank's mean.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

BACKENDS = ("gloo", "railhead")
LAYERS = 5
BATCH = 8
STEPS = 4


def iterations_of(size):
    return max(4, min(400, (32 << 20) // size))


def seconds_of(call, count):
    """Returns the slowest rank's mean time."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    mean = torch.tensor([(time.perf_counter() - begin) / count], dtype=torch.float64)
    dist.all_reduce(mean, dist.ReduceOp.MAX)
    return mean.item()


def in_turns(calls, passes, count):
    """Returns {name: median} of calls by name, after a warm-up pass. Each pass begins with a different call."""
    found = {name: [] for name in calls}
    names = list(calls)
    for number in range(passes + 1):
        for name in names[number % len(names):] + names[:number % len(names)]:
            found[name].append(seconds_of(calls[name], count))
    return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}


def all_reduce(groups, passes, sizes):
    results = {}
    for size in map(int, sizes):
        calls = {}
        for name, group in groups.items():
            data = torch.ones(size // 4)
            dist.all_reduce(data, group=group)
            if not torch.all(data == dist.get_world_size()):
                raise AssertionError(f"{name}: wrong sums of {size} bytes")
            data.zero_()  # otherwise it would grow
            calls[name] = lambda data=data, group=group: dist.all_reduce(data, group=group)
        results[size] = in_turns(calls, passes, iterations_of(size))
    return results


def model_of(mebibytes):
    width = int((mebibytes * (1 << 20) / 4 / LAYERS) ** 0.5)
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(LAYERS))), width


def ddp(groups, passes, sizes):
    [mebibytes] = sizes
    calls, gradients = {}, {}
    for name in ("alone", *groups):
        model, width = model_of(int(mebibytes))
        if name != "alone":
            model = nn.parallel.DistributedDataParallel(model, process_group=groups[name])
        x = torch.randn(BATCH, width, generator=torch.Generator().manual_seed(dist.get_rank()))

        def step(model=model, x=x):
            model.zero_grad()
            model(x).square().mean().backward()

        step()
        gradients[name] = [parameter.grad.clone() for parameter in model.parameters()]
        calls[name] = step
    for one, two in zip(gradients["gloo"], gradients["railhead"], strict=True):
        torch.testing.assert_close(one, two)
    return {"step": in_turns(calls, passes, STEPS)}


def main():
    what, passes, *rest = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    results = {"all_reduce": all_reduce, "ddp": ddp}[what](groups, int(passes), rest)
    if dist.get_rank() == 0:
        print("RESULT", json.dumps(results), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
