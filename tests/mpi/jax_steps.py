# SPDX-License-Identifier: Apache-2.0
"""Data-parallel steps of JAX on all ranks, like a user's script: it does not refer to Railhead.

Prints the losses, and on each rank the collectives whose results were compared with known ones.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = 12


def losses(mesh, ranks, rank):
    """Returns the losses of a linear model, whose gradients are averaged over the ranks."""
    random = np.random.RandomState(0)
    inputs = random.randn(64 * ranks, 32).astype(np.float32)
    targets = inputs @ random.randn(32, 1).astype(np.float32)
    mine = slice(rank * 64, (rank + 1) * 64)
    split, whole = NamedSharding(mesh, PartitionSpec("ranks")), NamedSharding(mesh, PartitionSpec())
    x = jax.make_array_from_process_local_data(split, inputs[mine])
    y = jax.make_array_from_process_local_data(split, targets[mine])
    weights = jax.device_put(jnp.zeros((32, 1)), whole)

    @jax.jit
    def step(weights, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
        return weights - 0.1 * gradient, loss

    found = []
    for _ in range(STEPS):
        weights, loss = step(weights, x, y)
        found.append(float(loss))
    return found


def check_collectives(mesh, ranks, rank):
    """Checks JAX's collectives, on a vector whose elements contain the rank."""
    count = 12 * ranks

    def on_ranks(function, local, out):
        spec = PartitionSpec("ranks")
        array = jax.make_array_from_process_local_data(NamedSharding(mesh, spec), local)
        mapped = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=out, check_vma=False))
        return np.asarray(mapped(array).addressable_shards[0].data)

    def values(of, kind):
        return (np.arange(count) % 7 + 10 * of).astype(kind)

    checked = 0
    spec = PartitionSpec("ranks")
    for kind in (np.float32, np.int32, np.int8, np.uint16, np.complex64):
        mine, all_ = values(rank, kind), [values(r, kind) for r in range(ranks)]
        wanted = {
            "psum": (lambda a: jax.lax.psum(a, "ranks"), sum(all_[1:], all_[0])),
            "all_gather": (lambda a: jax.lax.all_gather(a, "ranks", tiled=True), np.concatenate(all_)),
            "psum_scatter": (lambda a: jax.lax.psum_scatter(a, "ranks", tiled=True),
                             sum(all_[1:], all_[0]).reshape(ranks, -1)[rank]),
            "all_to_all": (lambda a: jax.lax.all_to_all(a, "ranks", 0, 0, tiled=True),
                           np.concatenate([a.reshape(ranks, -1)[rank] for a in all_])),
            "ppermute": (lambda a: jax.lax.ppermute(a, "ranks", [(r, (r + 1) % ranks) for r in range(ranks)]),
                         values((rank - 1) % ranks, kind)),
        }
        if kind is not np.complex64:
            wanted["pmax"] = (lambda a: jax.lax.pmax(a, "ranks"), all_[-1])
            wanted["pmin"] = (lambda a: jax.lax.pmin(a, "ranks"), all_[0])
        for name, (function, known) in wanted.items():
            found = on_ranks(function, mine, spec)
            assert found.dtype == known.dtype and np.array_equal(found, known.astype(kind)), (
                f"rank {rank}: {name} of {np.dtype(kind)}: {found} in place of {known}")
            checked += 1
    return checked


def main():
    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:29600", ranks, rank)
    mesh = Mesh(jax.devices(), ("ranks",))
    print("losses", " ".join(f"{loss:.6f}" for loss in losses(mesh, ranks, rank)), flush=True)
    print(f"rank {rank}: {check_collectives(mesh, ranks, rank)} collectives are right", flush=True)
    jax.distributed.shutdown()


main()
