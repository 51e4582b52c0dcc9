# SPDX-License-Identifier: Apache-2.0
"""One rank of a group whose callers do what frameworks do around calls. Prints the names of the parts that passed.

usage: callers.py PART...     PART: a function below; with torchrun's variables
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MEAN = (RANKS - 1) / 2


def callbacks():
    """A future's callback waits for another call, as torch's hooks that compress gradients do."""
    first = torch.full((4,), float(RANK))
    seen = []

    def again(future):
        second = future.value()[0].clone()
        dist.all_reduce(second)
        work = dist.all_gather([torch.empty(4) for _ in range(RANKS)], second, async_op=True)
        work.get_future().wait()
        seen.append(second[0].item())
        return second

    for _ in range(3):  # not at once: each rank's main thread and callbacks would call in an order of their own
        dist.all_reduce(first.clone(), async_op=True).get_future().then(again).wait()
    assert seen == [MEAN * RANKS * RANKS] * 3, seen


def power_sgd():
    """DDP with PowerSGD, whose hook makes and awaits calls in callbacks."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for step in range(5):
        model(torch.randn(8, 64, generator=torch.Generator().manual_seed(10 * step + RANK))).square().mean().backward()
    mine = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    others = [torch.empty_like(mine) for _ in range(RANKS)]
    dist.all_gather(others, mine)
    assert all(torch.equal(other, mine) for other in others), "the gradients differ"


def inference():
    """Results are tensors of the caller's inference mode, also if another thread copies them."""
    with torch.inference_mode():
        outputs = [torch.empty(3) for _ in range(RANKS)]
        dist.all_gather(outputs, torch.full((3,), float(RANK)), async_op=True).wait()
        assert [output[0].item() for output in outputs] == list(range(RANKS))
        turned = torch.empty(4, 3).t()
        peer = RANK ^ 1
        works = [dist.isend(torch.full((3, 4), float(RANK)), peer), dist.irecv(turned, peer)]
        for work in works:
            work.wait()
        assert (turned == peer).all(), turned


def parameters():
    """Parameters are broadcast as they are, also if their elements have another order in memory."""
    for asynchronous in (False, True):
        weights = nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last)
        with torch.no_grad():
            weights.weight.fill_(RANK)
        work = dist.broadcast(weights.weight, 1, async_op=asynchronous)
        if work:
            work.wait()
        assert (weights.weight == 1).all(), weights.weight
    # The root's own tensor is only read.
    tensor = torch.ones(1).expand(8) if RANK == 0 else torch.zeros(8)
    dist.broadcast(tensor, 0)
    assert tensor.sum() == 8


def coalesced():
    """Calls that wait for their results, inside of a group: all of them are done at its end."""
    tensor, total, outputs = torch.full((3,), float(RANK)), torch.ones(2), [torch.empty(2) for _ in range(RANKS)]
    with dist._coalescing_manager(device=torch.device("cpu")):
        dist.broadcast(tensor, 1)
        dist.reduce(total, 0)
        dist.all_gather(outputs, torch.full((2,), float(RANK)))
        dist.barrier()
    assert (tensor == 1).all() and (RANK != 0 or (total == RANKS).all()), (tensor, total)
    assert [output[0].item() for output in outputs] == list(range(RANKS))


def splits():
    """Several groups that torch gives one part of the store."""
    world = dist.group.WORLD
    for _ in range(3):
        group = world.split_group(list(range(RANKS)))
        tensor = torch.ones(1)
        group.allreduce([tensor]).wait()
        assert tensor.item() == RANKS


def main():
    # Timeouts are each rank's own.
    dist.init_process_group("railhead", timeout=datetime.timedelta(seconds=300 + 10 * RANK))
    for part in sys.argv[1:]:
        globals()[part]()
        print(f"rank {RANK}: {part}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
