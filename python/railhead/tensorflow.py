# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: means of gradients over the ranks of a job, for custom training loops.

    comm = railhead.init()

    @tf.function
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_of(model(inputs), targets)
        gradients = railhead.tensorflow.average(tape.gradient(loss, model.trainable_variables), comm)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    railhead.tensorflow.broadcast(model.variables, comm)     # all ranks begin with equal values

Keras models need one line only: railhead.keras.DataParallel.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from .communicator import AVG, Communicator


def average(tensors: Sequence[Optional[Any]], comm: Communicator) -> List[Optional[Any]]:
    """Returns the mean of each tensor over all ranks. None (a variable without a gradient) stays None.

    All ranks must pass the same number of tensors, with equal shapes and floating-point types, and None at the same
    positions. tf.IndexedSlices become dense. Works eagerly and in tf.function, but not in code that XLA compiles
    (jit_compile=True). All ranks raise an error of any rank; in a graph it is a tf.errors.OpError with the same text.
    Make one call of a communicator at a time: in a graph, order calls with tf.control_dependencies.
    """
    dense = [None if tensor is None else tf.convert_to_tensor(tensor) for tensor in tensors]
    if comm.size == 1:
        return dense
    given = [tensor for tensor in dense if tensor is not None]
    kinds = list(dict.fromkeys(tensor.dtype for tensor in given))
    if not kinds:
        return dense
    # One array for each type: a few long collectives instead of many short ones.
    joined = [tf.concat([tf.reshape(tensor, [-1]) for tensor in given if tensor.dtype == kind], 0) for kind in kinds]

    def on_all_ranks(*arrays: Any) -> List[Any]:
        means = [np.empty_like(array) for array in arrays]
        for array, mean in zip(arrays, means):
            comm.all_reduce(array, mean, op=AVG)
        return means

    means = tf.numpy_function(on_all_ranks, joined, kinds)
    parts = {}
    for kind, mean in zip(kinds, means if isinstance(means, (list, tuple)) else [means]):
        sizes = [tf.size(tensor) for tensor in given if tensor.dtype == kind]
        parts[kind] = iter(tf.split(tf.ensure_shape(mean, [None]), tf.stack(sizes), num=len(sizes)))
    results: List[Optional[Any]] = []
    for tensor in dense:
        if tensor is not None:
            mean = tf.reshape(next(parts[tensor.dtype]), tf.shape(tensor))
            mean.set_shape(tensor.shape)
            tensor = mean
        results.append(tensor)
    return results


def broadcast(variables: Sequence[Any], comm: Communicator, root: int = 0) -> None:
    """Assigns rank root's values to the variables of all ranks. Eager only; all ranks pass the same variables."""
    for variable in variables:
        value = np.array(variable.numpy())
        comm.broadcast(value, root)
        if comm.rank != root:
            variable.assign(value)
