# SPDX-License-Identifier: Apache-2.0
"""Keras on all ranks, each with its part of the data. Prints the losses of the epochs and sums of the weights, which
equal those of one process with all of the data."""

import os

import keras
import numpy as np
import railhead
import railhead.keras

EPOCHS, STEPS, BATCH = 3, 5, 12  # BATCH is that of all ranks together
WORDS = 50


def data():
    random = np.random.RandomState(7)
    inputs = random.randint(0, WORDS, (STEPS * BATCH, 6))
    return inputs, (inputs.sum(axis=1, keepdims=True) / 100).astype(np.float32)


def part_of(array, rank, ranks):
    """Returns this rank's share of each batch."""
    batches = array.reshape(STEPS, ranks, BATCH // ranks, -1)
    return batches[:, rank].reshape(STEPS * BATCH // ranks, -1)


def model_of(seed):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.Input((6,)),
        keras.layers.Embedding(WORDS, 8),  # its gradients are tf.IndexedSlices
        keras.layers.Flatten(),
        keras.layers.Dense(16, activation="tanh"),
        keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.Adam(0.01, clipnorm=0.5), loss="mse", metrics=["mae"])
    return model


def main():
    comm = railhead.init()
    inputs, targets = data()
    mine = [part_of(array, comm.rank, comm.size) for array in (inputs, targets)]
    # A rank that does not begin with rank 0's weights gets other results.
    model = model_of(seed=3 + comm.rank)
    callback = railhead.keras.DataParallel(comm)
    history = model.fit(*mine, batch_size=BATCH // comm.size, epochs=EPOCHS, shuffle=False, verbose=0,
                        validation_data=tuple(mine), callbacks=[callback])
    for name in ("loss", "mae", "val_loss"):
        print(name, " ".join(f"{value:.5f}" for value in history.history[name]), flush=True)
    print("weights", " ".join(f"{np.abs(np.array(weights)).sum():.4f}" for weights in model.weights), flush=True)
    # Training resumes: the optimizer's state is also equal on all ranks.
    model.fit(*mine, batch_size=BATCH // comm.size, epochs=1, shuffle=False, verbose=0, callbacks=[callback])
    print("more", " ".join(f"{np.abs(np.array(weights)).sum():.4f}" for weights in model.weights), flush=True)
    # Then without the callback, on one rank, with XLA which is Keras's default; the optimizer is restored.
    assert type(model.optimizer) is keras.optimizers.Adam and "apply" not in vars(model.optimizer)
    if comm.rank == 0:
        model.fit(*mine, batch_size=BATCH // comm.size, epochs=1, shuffle=False, verbose=0)
    comm.destroy()
    print(f"rank {os.environ['RANK']} is done", flush=True)


main()
