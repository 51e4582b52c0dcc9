# SPDX-License-Identifier: Apache-2.0
"""Data-parallel steps of MLX on all ranks, like a user's script: it does not refer to Railhead.

usage: mlx_steps.py [STEPS]     8 by default

Prints the losses, and the number of collectives whose results were compared with known ones.
"""

import sys

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

STEPS = int((sys.argv[1:] or ["8"])[0])


def train(average, inputs):
    """Returns the model's losses before each step; `inputs`: a batch for each step."""
    mx.random.seed(0)
    model = nn.Linear(16, 1)
    mx.eval(model.parameters())
    optimizer = optim.SGD(learning_rate=0.1)
    loss_and_gradients = nn.value_and_grad(model, lambda model, x, y: mx.mean((model(x) - y) ** 2))
    found = []
    for batch in inputs:
        x = mx.array(batch)
        loss, gradients = loss_and_gradients(model, x, x.sum(1, keepdims=True))
        optimizer.update(model, average(gradients))
        mx.eval(model.parameters(), optimizer.state)
        found.append(loss.item())
    return found


def losses(group):
    """Returns the losses of all ranks, each with its own data. They equal those of one process with all data."""
    random = np.random.RandomState(1)
    data = [random.randn(group.size(), 32, 16).astype(np.float32) for _ in range(STEPS)]
    mine = train(lambda gradients: nn.average_gradients(gradients, group=group), [batch[group.rank()] for batch in data])
    found = mx.distributed.all_sum(mx.array(mine), group=group) / group.size()
    alone = train(lambda gradients: gradients, [batch.reshape(-1, 16) for batch in data])
    assert mx.allclose(found, mx.array(alone), rtol=1e-4, atol=1e-6).item(), f"{found}, {alone} in one process"
    return found.tolist()


def check_collectives(group):
    rank, ranks = group.rank(), group.size()
    checked = 0

    def check(name, found, known):
        nonlocal checked
        mx.eval(found)
        assert found.dtype == known.dtype and mx.array_equal(found, known).item(), f"{name}: {found}, not {known}"
        checked += 1

    kinds = (mx.float32, mx.float16, mx.bfloat16, mx.int32, mx.int8, mx.uint16, mx.int64, mx.complex64)
    for kind in kinds:
        def values(of, kind=kind):
            return (mx.arange(1001) % 7 + of).astype(kind)

        everyone = [values(r) for r in range(ranks)]
        check(f"all_sum {kind}", mx.distributed.all_sum(values(rank), group=group), sum(everyone[1:], everyone[0]))
        check(f"all_gather {kind}", mx.distributed.all_gather(values(rank), group=group), mx.concatenate(everyone))
        if kind != mx.complex64:
            check(f"all_max {kind}", mx.distributed.all_max(values(rank), group=group), everyone[-1])
            check(f"all_min {kind}", mx.distributed.all_min(values(rank), group=group), everyone[0])
    # Each rank sends to the next.
    if rank % 2 == 0 and rank + 1 < ranks:
        mx.eval(mx.distributed.send(mx.arange(5000) + rank, rank + 1, group=group))
    elif rank % 2 == 1:
        check("recv", mx.distributed.recv((5000,), mx.int32, rank - 1, group=group), mx.arange(5000) + rank - 1)
    return checked


def main():
    group = mx.distributed.init(strict=True, backend="mpi")
    print("losses", " ".join(f"{loss:.6f}" for loss in losses(group)), flush=True)
    print(f"rank {group.rank()}: {check_collectives(group)} collectives are right", flush=True)


main()
