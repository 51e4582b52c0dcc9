# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: averages of gradients over the ranks of a job, for training loops of your own.

    comm = railhead.init()

    @tf.function
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_of(model(inputs), targets)
        gradients = railhead.tensorflow.average(tape.gradient(loss, model.trainable_variables), comm)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    railhead.tensorflow.broadcast(model.variables, comm)     # all ranks begin alike

Models of Keras need one line: railhead.keras.DataParallel.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from .communicator import AVG, Communicator


def average(tensors: Sequence[Optional[Any]], comm: Communicator) -> List[Optional[Any]]:
    """The mean over all ranks of each tensor; None, which is a gradient that a variable has not, stays None.

    All ranks give as many tensors, of the same shapes and floating-point types, and None at the same places.
    tf.IndexedSlices become dense. Works eagerly and in tf.function, not in what XLA compiles (jit_compile=True).
    An error of a rank is raised on all of them, within a graph as a tf.errors.OpError that has its text. One call
    of a communicator at a time: in a graph, order calls by tf.control_dependencies.
    """
    dense = [None if tensor is None else tf.convert_to_tensor(tensor) for tensor in tensors]
    if comm.size == 1:
        return dense
    given = [tensor for tensor in dense if tensor is not None]
    kinds = list(dict.fromkeys(tensor.dtype for tensor in given))
    if not kinds:
        return dense
    # One array for each type: few long collectives in place of many short ones.
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
    """The values of rank root replace those of all others. Eagerly; all ranks have the same variables, in one order."""
    for variable in variables:
        value = np.array(variable.numpy())
        comm.broadcast(value, root)
        if comm.rank != root:
            variable.assign(value)
