#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of torch's `nccl` backend on an emulated GPU, whose every result is compared with that of the `gloo` backend.

usage: ranks.py LIBNCCL collectives
       ranks.py LIBNCCL train STEPS [UNTIL]      with UNTIL: at least STEPS steps, until rank 0 finds that file

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them; LD_PRELOAD names the emulation. NCCL moves and
reduces data in the memory of the GPU; as no other kernels are emulated, the rest is computed on the CPU. Prints a line
for each call or step; "end" at the end.
"""

import ctypes
import os
import sys

ctypes.CDLL(None).LoadStockNccl(sys.argv[1].encode())

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
COUNTS = (1, 1000, 300_001)
TYPES = (torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8)
LAYERS, WIDTH, BATCH = 4, 256, 8
RATE = 0.01  # of learning


def numbers(count, kind, salt=0):
    """1, 2 and 3 in an order of this rank: exact in every type, also as a sum or product of a few ranks."""
    return (((torch.arange(count) * 2654435761 + RANK * 40503 + salt * 9973) >> 7) % 3 + 1).to(kind)


class Backend:
    """Calls of one backend, with a group of all ranks and one without the first."""

    def __init__(self, device, group, others):
        self.device, self.group, self.others = device, group, others

    def put(self, tensor):
        return tensor.to(self.device, copy=True)

    def empty(self, count, kind):
        return torch.zeros(count, dtype=kind).to(self.device)

    def all_reduce(self, op, count, kind):
        data = self.put(numbers(count, kind))
        dist.all_reduce(data, op, group=self.group)
        return [data]

    def sum(self, *what):
        return self.all_reduce(dist.ReduceOp.SUM, *what)

    def product(self, *what):
        return self.all_reduce(dist.ReduceOp.PRODUCT, *what)

    def least(self, *what):
        return self.all_reduce(dist.ReduceOp.MIN, *what)

    def greatest(self, *what):
        return self.all_reduce(dist.ReduceOp.MAX, *what)

    def at_once(self, count, kind):
        """Calls that are all under way before the first is waited for."""
        data = [self.put(numbers(count, kind, salt)) for salt in range(4)]
        for work in [dist.all_reduce(one, group=self.group, async_op=True) for one in data]:
            work.wait()
        return data

    def of_others(self, count, kind):
        data = self.put(numbers(count, kind))
        if self.others is not None:
            dist.all_reduce(data, group=self.others)
        return [data]

    def broadcast(self, count, kind):
        data = [self.put(numbers(count, kind, root)) for root in range(RANKS)]
        for root, one in enumerate(data):
            dist.broadcast(one, root, group=self.group)
        return data

    def reduce(self, count, kind):
        data = [self.put(numbers(count, kind, root)) for root in range(RANKS)]
        for root, one in enumerate(data):
            dist.reduce(one, root, group=self.group)
        return [data[RANK]]  # that of the others may have any content

    def all_gather(self, count, kind):
        results = [self.empty(count, kind) for _ in range(RANKS)]
        dist.all_gather(results, self.put(numbers(count, kind)), group=self.group)
        return results

    def all_gather_into_tensor(self, count, kind):
        result = self.empty(count * RANKS, kind)
        dist.all_gather_into_tensor(result, self.put(numbers(count, kind)), group=self.group)
        return [result]

    def reduce_scatter_tensor(self, count, kind):
        result = self.empty(count, kind)
        dist.reduce_scatter_tensor(result, self.put(numbers(count * RANKS, kind)), group=self.group)
        return [result]

    def all_to_all_single(self, count, kind):
        result = self.empty(count * RANKS, kind)
        dist.all_to_all_single(result, self.put(numbers(count * RANKS, kind)), group=self.group)
        return [result]

    def uneven(self, count, kind):
        """An all-to-all in which rank i sends count + j elements to rank j, and none to itself."""
        sent = [0 if peer == RANK else count + peer for peer in range(RANKS)]
        got = [0 if peer == RANK else count + RANK for peer in range(RANKS)]
        result = self.empty(sum(got), kind)
        dist.all_to_all_single(result, self.put(numbers(sum(sent), kind)), got, sent, group=self.group)
        return [result]

    def scatter(self, count, kind):
        result = self.empty(count, kind)
        parts = [self.put(numbers(count, kind, peer)) for peer in range(RANKS)] if RANK == 0 else None
        dist.scatter(result, parts, 0, group=self.group)
        return [result]

    def gather(self, count, kind):
        results = [self.empty(count, kind) for _ in range(RANKS)] if RANK == 0 else None
        dist.gather(self.put(numbers(count, kind)), results, 0, group=self.group)
        return results or []

    def shift(self, count, kind):
        result = self.empty(count, kind)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, self.put(numbers(count, kind)), (RANK + 1) % RANKS, self.group),
            dist.P2POp(dist.irecv, result, (RANK - 1) % RANKS, self.group)])
        for work in works:
            work.wait()
        return [result]


CALLS = ("sum", "product", "least", "greatest", "at_once", "of_others", "broadcast", "reduce", "all_gather",
         "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "uneven", "scatter", "gather", "shift")


def collectives(gloo):
    members = list(range(1, RANKS))
    others = [dist.new_group(members, backend=backend) for backend in ("nccl", "gloo")]
    if RANK not in members:
        others = [None, None]
    nccl, reference = Backend("cuda", None, others[0]), Backend("cpu", gloo, others[1])
    for name in CALLS:
        for count in COUNTS:
            for kind in TYPES:
                got, want = (getattr(backend, name)(count, kind) for backend in (nccl, reference))
                for place, (one, other) in enumerate(zip(got, want, strict=True)):
                    if not torch.equal(one.cpu(), other):
                        wrong = int((one.cpu() != other).sum())
                        sys.exit(f"{name} {count} {kind}: result {place}: {wrong} elements are wrong")
        dist.barrier()
        print(f"{name}: right", flush=True)


class Product(torch.autograd.Function):
    """x times the transposed weight, computed on the CPU. Gradients of the weight are multiples of 1/1024, so that their
    sum over ranks is exact in any order."""

    @staticmethod
    def forward(ctx, weight, x):
        host = weight.detach().cpu()
        ctx.device = weight.device
        ctx.save_for_backward(x, host)
        return x @ host.t()

    @staticmethod
    def backward(ctx, gradient):
        x, host = ctx.saved_tensors
        of_weight = ((gradient.t() @ x) * 1024).round().clamp(-(2 ** 20), 2 ** 20) / 1024
        return of_weight.to(ctx.device), gradient @ host


class Network(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        draw = torch.Generator().manual_seed(1)
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter((torch.randn(WIDTH, WIDTH, generator=draw) / 16).to(device)) for _ in range(LAYERS))

    def forward(self, x):
        for weight in self.weights:
            x = torch.tanh(Product.apply(weight, x))
        return x


def parallel(device, group):
    """DDP whose averages are sums: a division would be a kernel. Its check of the parameters at the start would be one,
    too."""
    model = DistributedDataParallel(Network(device), process_group=group, init_sync=False, gradient_as_bucket_view=True,
                                    bucket_cap_mb=0.3)

    def hook(_, bucket):
        work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
        return work.get_future().then(lambda done: done.value()[0])
    model.register_comm_hook(None, hook)
    return model


def train(gloo, steps, until):
    """DDP over NCCL beside DDP over gloo: all gradients and all weights must be equal after each step."""
    models = parallel("cuda", None), parallel("cpu", gloo)
    step = 0
    while True:
        draw = torch.Generator().manual_seed(step * RANKS + RANK)
        batch = torch.randn(BATCH, WIDTH, generator=draw)
        for model in models:
            model(batch).pow(2).sum().backward()
        moved = 0
        for weight, other in zip(*(model.parameters() for model in models), strict=True):
            if not torch.equal(weight.grad.cpu(), other.grad):
                sys.exit(f"step {step}: {int((weight.grad.cpu() != other.grad).sum())} elements of a gradient are wrong")
            moved += int((other.grad != 0).sum())
            with torch.no_grad():
                other -= RATE / RANKS * other.grad
                weight.copy_(weight.cpu() - RATE / RANKS * weight.grad.cpu())
            if not torch.equal(weight.detach().cpu(), other.detach()):
                sys.exit(f"step {step}: other weights than in the reference")
            weight.grad = other.grad = None
        if not moved:
            sys.exit(f"step {step}: all gradients are 0")
        step += 1
        print(f"step {step}", flush=True)
        end = torch.tensor([int(step >= steps and (until is None or os.path.exists(until)))])
        dist.broadcast(end, 0, group=gloo)
        if end.item():
            return


def main():
    torch.set_num_threads(1)
    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl")
    gloo = dist.new_group(backend="gloo")
    if sys.argv[2] == "collectives":
        collectives(gloo)
    else:
        train(gloo, int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
    dist.destroy_process_group()
    print("end", flush=True)


if __name__ == "__main__":
    main()
