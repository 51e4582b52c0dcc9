# SPDX-License-Identifier: Apache-2.0
"""One rank of four ways of training that use several groups, or transfers between ranks. Rank 0 prints the losses.

usage: meshes.py BACKEND      with torchrun's variables and an even number of ranks
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

STEPS, BATCH, WIDTH = 6, 8, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def model_of(blocks):
    """Returns a model that is equal on all ranks."""
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(blocks)))


def batch(step, part):
    """Returns the batch of this step for the ranks that share a part of the data."""
    random = torch.Generator().manual_seed(100 * step + part)
    x = torch.randn(BATCH, WIDTH, generator=random)
    return x, torch.roll(x, 1, dims=1)


def train(model, part, parts, group):
    """Returns the mean losses; `group` has one rank of each part of the data."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        x, y = batch(step, part)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=group)
        losses.append(mean.item() / parts)
    return losses


def sharded(model, mesh):
    for block in model:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def split_over(model, mesh):
    plan = {}
    for index in range(len(model)):
        plan |= {f"{index}.up": ColwiseParallel(), f"{index}.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


def hsdp(rank, size):
    """HSDP: parameters are sharded within a group and replicated across groups."""
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard"))
    return train(sharded(model_of(2), mesh), rank, size, dist.group.WORLD)


def tensor(rank, size):
    """Tensor parallel: each layer is split over all ranks, which have the same data."""
    mesh = init_device_mesh("cpu", (size,))
    return train(split_over(model_of(2), mesh), 0, size, dist.group.WORLD)


def fsdp_tensor(rank, size):
    """Layers are split over pairs, and each half is sharded over the pairs."""
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
    model = sharded(split_over(model_of(2), mesh["tensor"]), mesh["data"])
    return train(model, rank // 2, size // 2, mesh["data"].get_group())


def pipeline(rank, size):
    """Pipeline: each rank has a block, and passes activations and gradients on. The last rank has the losses."""
    block = model_of(size)[rank]
    stage = PipelineStage(block, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(block.parameters(), 0.05, momentum=0.9)
    found = []
    for step in range(STEPS):
        x, y = batch(step, 0)
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        elif rank < size - 1:
            schedule.step()
        else:
            schedule.step(target=y, losses=losses)
            found.append(sum(loss.item() for loss in losses) / len(losses))
        optimizer.step()
    everyone = [None] * size
    dist.all_gather_object(everyone, found)
    return everyone[-1]


def main():
    [backend] = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    for way in (hsdp, tensor, fsdp_tensor, pipeline):
        losses = way(dist.get_rank(), dist.get_world_size())
        if dist.get_rank() == 0:
            print(way.__name__, *(f"{loss:.6f}" for loss in losses), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
