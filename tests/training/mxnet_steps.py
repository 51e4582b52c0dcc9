# SPDX-License-Identifier: Apache-2.0
"""Gluon on all ranks, each with its part of the data, and the store's own calls with known results. Prints the
losses, which equal those of one process with all of the data.

usage: mxnet_steps.py [STEPS]     10 by default
"""

import os
import sys

import mxnet as mx
import numpy as np
import railhead.mxnet  # noqa: F401  registers the store

STEPS = int((sys.argv[1:] or ["10"])[0])
BATCH = 12  # of all ranks together


def check_store(store):
    ranks, rank = store.num_workers, store.rank
    value, out = mx.nd.full((2, 3), rank + 1), mx.nd.zeros((2, 3))
    store.broadcast("b", value, out)
    assert (out.asnumpy() == 1).all(), out
    total = sum(range(1, ranks + 1))
    # One array, of two devices, and in place.
    store.pushpull("p", mx.nd.full((4,), rank + 1), out=(out := mx.nd.zeros((4,))))
    assert (out.asnumpy() == total).all(), out
    outs = [mx.nd.zeros((4,)), mx.nd.zeros((4,))]
    store.pushpull("q", [mx.nd.full((4,), rank + 1), mx.nd.full((4,), 10)], out=outs)
    assert all((one.asnumpy() == total + 10 * ranks).all() for one in outs), outs
    value = mx.nd.full((5,), 2 * rank, dtype="float64")
    store.pushpull("r", value)
    assert (value.asnumpy() == ranks * (ranks - 1)).all(), value
    assert not store.is_capable("optimizer")


def train(store, start):
    """Returns the losses of all data, and the final weights."""
    ranks, rank = store.num_workers, store.rank
    random = np.random.RandomState(5)
    inputs = random.randn(BATCH, 6).astype(np.float32)
    targets = inputs @ random.randn(6, 1).astype(np.float32)
    mine = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    x, y = mx.nd.array(inputs[mine]), mx.nd.array(targets[mine])
    net = mx.gluon.nn.Dense(1, in_units=6)
    net.initialize(mx.init.Constant(start))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0.5}, kvstore=store)
    loss_of = mx.gluon.loss.L2Loss()
    losses = []
    for _ in range(STEPS):
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(BATCH)
        total = loss.sum()
        store.pushpull("loss", total)
        losses.append(float(total.asscalar()) / BATCH)
    return losses, net.weight.data()


def check_start(store):
    """All ranks have rank 0's weights from the first step on, whatever weights they begin with."""
    _, weights = train(store, start=float(store.rank))
    first = mx.nd.zeros(weights.shape)
    store.broadcast("first", weights if store.rank == 0 else first, out=first)
    assert (weights.asnumpy() == first.asnumpy()).all(), (weights, first)


def main():
    store = mx.kv.create("railhead")
    check_store(store)
    check_start(store)
    losses, _ = train(store, start=0.5)
    print("loss", " ".join(f"{loss:.5f}" for loss in losses), flush=True)
    print(f"rank {os.environ['RANK']} is done", flush=True)


main()
