# SPDX-License-Identifier: Apache-2.0
"""One rank that trains a small transformer and prints its losses, on rank 0.

usage: train.py BACKEND ddp|zero|fsdp [DEVICE]      cpu or cuda; with torchrun's variables
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn


class Numbers(torch.utils.data.Dataset):
    """A data set that is equal on all ranks."""

    def __init__(self, count):
        self._count = count

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        return torch.randint(0, 100, (33,), generator=torch.Generator().manual_seed(index))


def parallel(how, model, device):
    if how == "ddp":
        wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
        return wrapped, torch.optim.AdamW(wrapped.parameters(), 1e-3)
    if how == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer  # pylint: disable=import-outside-toplevel
        wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
        return wrapped, ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.AdamW, lr=1e-3)
    from torch.distributed.device_mesh import init_device_mesh  # pylint: disable=import-outside-toplevel
    from torch.distributed.fsdp import fully_shard  # pylint: disable=import-outside-toplevel
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    wrapped = fully_shard(model, mesh=mesh)
    return wrapped, torch.optim.AdamW(wrapped.parameters(), 1e-3)


def main():
    backend, how, *rest = sys.argv[1:]
    device = (rest or ["cpu"])[0]
    os.environ["LOCAL_RANK"] = "0"  # the ranks share one device
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(backend)
    size = dist.get_world_size()
    layer = {"d_model": 64, "nhead": 4, "dim_feedforward": 256, "dropout": 0.0, "batch_first": True}
    model, optimizer = parallel(how, nn.Sequential(
        nn.Embedding(100, 64), nn.TransformerEncoderLayer(**layer), nn.TransformerEncoderLayer(**layer),
        nn.Linear(64, 100)).to(device), device)
    numbers = Numbers(32 * size)
    sampler = torch.utils.data.distributed.DistributedSampler(numbers, shuffle=False)
    # The loader is forked after the group was created: it must neither use nor end the group.
    loader = torch.utils.data.DataLoader(numbers, batch_size=8, sampler=sampler, num_workers=1)
    losses = []
    for tokens in loader:
        tokens = tokens.to(device)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / size)
    if dist.get_rank() == 0:
        print("losses", *(f"{loss:.6f}" for loss in losses), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
