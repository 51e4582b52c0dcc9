# SPDX-License-Identifier: Apache-2.0
"""railhead.tensorflow on all ranks: means of tensors of several types with known results, eagerly and in a graph, and
a custom loop with equal losses on all ranks."""

import contextlib
import os

import numpy as np
import railhead
import railhead.tensorflow
import tensorflow as tf

KINDS = (tf.float32, tf.float64, tf.bfloat16, tf.float16)


def given(rank):
    """Small integers, whose means over 2 or 4 ranks are exact in each type, and one missing gradient."""
    tensors = []
    for number, kind in enumerate(KINDS * 2):
        shape = [(), (3,), (2, 5), (0, 4), (1, 2, 3), (7,), (4, 1), (2,)][number]
        count = int(np.prod(shape))
        tensors.append(tf.cast(tf.reshape(tf.range(count), shape) % 8 + 4 * rank, kind))
    tensors.insert(3, None)
    tensors.append(tf.IndexedSlices(tf.fill([1, 2], 4.0 * (rank + 1)), tf.constant([rank]), tf.constant([4, 2])))
    return tensors


def check_means(comm):
    everyone = [given(rank) for rank in range(comm.size)]
    for run in (railhead.tensorflow.average, tf.function(railhead.tensorflow.average)):
        found = run(everyone[comm.rank], comm)
        assert found[3] is None and len(found) == len(everyone[0])
        for index, mean in enumerate(found):
            if mean is None:
                continue
            known = sum(tf.cast(tf.convert_to_tensor(tensors[index]), tf.float64) for tensors in everyone) / comm.size
            assert mean.dtype == everyone[0][index].dtype, (index, mean)
            np.testing.assert_array_equal(np.array(tf.cast(mean, tf.float64)), np.array(known))


def check_shapes():
    """A graph knows the shapes of the results, since a later layer may need them."""
    comm = type("Two", (), {"size": 2, "rank": 0})()

    @tf.function
    def mean_of(tensor):
        return railhead.tensorflow.average([tensor], comm)[0]

    traced = mean_of.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
    assert traced.output_shapes.as_list() == [None, 3], traced.output_shapes


def losses(comm):
    random = np.random.RandomState(1)
    inputs = random.randn(32 * comm.size, 8).astype(np.float32)
    targets = inputs @ random.randn(8, 1).astype(np.float32)
    mine = slice(32 * comm.rank, 32 * comm.rank + 32)
    weights = tf.Variable(np.full((8, 1), float(comm.rank), np.float32))
    railhead.tensorflow.broadcast([weights], comm)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        [gradient] = railhead.tensorflow.average(tape.gradient(loss, [weights]), comm)
        weights.assign_sub(0.1 * gradient)
        return loss

    for _ in range(20):
        loss = step(tf.constant(inputs[mine]), tf.constant(targets[mine]))
    return float(loss), weights.numpy()


def check_error(comm):
    """If ranks pass different shapes, all ranks get an error that names the cause."""
    try:
        railhead.tensorflow.average([tf.zeros([4 + comm.rank])], comm)
    except (tf.errors.OpError, railhead.Error) as error:
        assert "rank" in str(error), error
        return
    raise AssertionError("a contradiction went through")


def main():
    comm = railhead.init()
    check_means(comm)
    check_shapes()
    loss, weights = losses(comm)
    everyone = np.empty((comm.size, 8, 1), np.float32)
    comm.all_gather(weights, everyone)
    assert all(np.array_equal(one, everyone[0]) for one in everyone), everyone
    assert loss < 0.1, loss
    with contextlib.suppress(railhead.Error), comm.split(0) as other:  # its end also raises
        check_error(other)
    comm.destroy()
    print(f"rank {os.environ['RANK']} is done", flush=True)


main()
