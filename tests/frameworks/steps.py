# SPDX-License-Identifier: Apache-2.0
"""One rank that trains with DDP and prints the loss of each step. The test injects the faults.

usage: steps.py BACKEND FOLDER STEPS     with torchrun's variables

Rank 0 saves weights and optimizer in FOLDER after each step, and training resumes from there. If the file FOLDER/die
exists, rank 1 removes it and kills itself after its third step.
"""

import os
import pathlib
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 400


def main():
    backend, folder, steps = sys.argv[1:]
    kept, die = pathlib.Path(folder) / "kept", pathlib.Path(folder) / "die"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    first = 0
    if kept.exists():
        state = torch.load(kept)
        first = state["step"] + 1
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    wrapped = nn.parallel.DistributedDataParallel(model)
    for step in range(first, int(steps)):
        random = torch.Generator().manual_seed(step * size + rank)
        x = torch.randn(16, WIDTH, generator=random)
        loss = nn.functional.mse_loss(wrapped(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{kept}.new")
            os.replace(f"{kept}.new", kept)
            print(f"step {step} {mean.item() / size:.9f}", flush=True)
        dist.barrier()
        if rank == 1 and step == first + 2 and die.exists():
            die.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
