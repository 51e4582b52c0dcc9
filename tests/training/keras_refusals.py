# SPDX-License-Identifier: Apache-2.0
"""Models that railhead.keras cannot train yet, and the messages for them."""

import keras
import numpy as np
import railhead
import railhead.keras


def refusal(model):
    try:
        model.fit(np.zeros((4, 2)), np.zeros((4, 1)), verbose=0, callbacks=[railhead.keras.DataParallel(comm)])
    except ValueError as error:
        return str(error)
    raise AssertionError("it was not refused")


with railhead.init() as comm:
    lazy = keras.Sequential([keras.layers.Dense(1)])
    lazy.compile("sgd", "mse")
    said = refusal(lazy)
    assert "begin it with keras.Input(...)" in said, said
    whole = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    said = refusal(whole)
    assert "compile" in said, said
print("both were refused")
