# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on TensorFlow: a callback for data-parallel training over the ranks of a job.

    comm = railhead.init()
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    model.fit(my_part_of_the_data, callbacks=[railhead.keras.DataParallel(comm)])
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import keras
import numpy as np

from .communicator import AVG, Communicator

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        f"railhead.keras is for Keras on TensorFlow, and Keras runs on {keras.backend.backend()}: set "
        "KERAS_BACKEND=tensorflow, or use what that library has (docs/frameworks.md)")

from . import tensorflow  # noqa: E402  pylint: disable=wrong-import-position


class DataParallel(keras.callbacks.Callback):
    """Makes fit() train one model on all ranks, each with its part of the data.

    - Before the first step, all ranks get rank 0's weights and optimizer state.
    - Each step applies the mean of all ranks' gradients.
    - At the end of an epoch the logs, including those of the validation, become means over the ranks. Put this
      callback first: then others, such as ModelCheckpoint, make the same decisions on all ranks.

    All ranks must run the same number of steps: give each the same number of batches, or set steps_per_epoch.
    Optimizer classes and saved files do not change, and after fit() the model trains without Railhead again.
    Moving averages of layers such as BatchNormalization are not averaged. XLA (jit_compile) is off during this
    fit(), because code that it compiles cannot call Python.
    """

    def __init__(self, comm: Communicator) -> None:
        super().__init__()
        self._comm = comm
        self._jit: Any = None

    def set_model(self, model: Any) -> None:
        """Called by fit() before it creates the function of a step."""
        super().set_model(model)
        if getattr(model, "optimizer", None) is None:
            raise ValueError("the model has no optimizer: call model.compile(...) before fit()")
        optimizer, comm = model.optimizer, self._comm
        apply = type(optimizer).apply

        def apply_means(gradients: Any, trainable_variables: Any = None) -> Any:
            return apply(optimizer, tensorflow.average(list(gradients), comm), trainable_variables)

        optimizer.apply = apply_means
        self._jit, model.jit_compile = model.jit_compile, False
        model.train_function = None  # a function from before does not average

    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        optimizer = self.model.optimizer
        if not self.model.built:
            raise ValueError("the model has no weights yet, and all ranks begin with rank 0's: begin it with "
                             "keras.Input(...), or call it on a batch before fit()")
        if not optimizer.built:
            optimizer.build(self.model.trainable_variables)
        tensorflow.broadcast(self.model.weights, self._comm)
        tensorflow.broadcast(optimizer.variables, self._comm)

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        names = sorted(name for name, value in (logs or {}).items() if np.ndim(value) == 0)
        if not names:
            return
        values = np.array([float(logs[name]) for name in names])
        self._comm.all_reduce(values, op=AVG)
        logs.update(zip(names, values.tolist()))

    def on_train_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        del self.model.optimizer.apply
        self.model.jit_compile = self._jit
        self.model.train_function = None
