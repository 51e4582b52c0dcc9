#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with TensorFlow, Keras and MXNet over the wheel; compares the results of several ranks with those of one.

usage: tests/training/run.py [CASE]...      run `make wheel` first
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import expect  # noqa: E402

HERE = ROOT / "tests" / "training"
OUT = ROOT / "out" / "training"
SETUPS = ((2, "shm"), (3, "tcp"))


def unpack():
    cases.unpack_wheel(OUT)


def python(name):
    return cases.kept_python(f"training-{name}", HERE / f"requirements-{name}.txt")


def program(count, name, *command, **variables):
    return cases.run_ranks(count, python(name), "-B", *command, HOME=str(OUT), PYTHONPATH=str(OUT / "site"),
                           OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="2",
                           CUDA_VISIBLE_DEVICES="", seconds=600, **variables)


def ranks(count, transport, name, script):
    text = program(count, name, HERE / script, RAILHEAD_TRANSPORT=transport)
    expect(len(re.findall(r"^rank \d+ is done$", text, re.MULTILINE)) == count, text[-3000:])
    return text


def lines(text, word):
    """Returns the numbers after the word, for each rank."""
    return [[float(number) for number in found.split()] for found in re.findall(rf"^{word} (.+)$", text, re.MULTILINE)]


def alike(one, several, word, count):
    """All ranks have the results of one process, except for rounding."""
    [known] = lines(one, word)
    found = lines(several, word)
    expect(len(found) == count, f"{word} of {len(found)} ranks\n{several[-3000:]}")
    for numbers in found:
        near = len(numbers) == len(known) and all(abs(a - b) <= 2e-3 * max(1, abs(b)) for a, b in zip(numbers, known))
        expect(near, f"{word}: {numbers}, and {known} by one process")
    expect(known[0] != known[-1] or word != "loss", f"{word} stands still: {known}")


def case_keras():
    """A callback makes fit() train one model on all ranks."""
    one = ranks(1, "shm", "keras", "keras_steps.py")
    for count, transport in SETUPS:
        several = ranks(count, transport, "keras", "keras_steps.py")
        for word in ("loss", "mae", "val_loss", "weights", "more"):
            alike(one, several, word, count)
        print(f"  {count} ranks over {transport}: losses, metrics and weights as those of one process", flush=True)


def case_keras_refusals():
    """Errors in scripts are reported with the fix."""
    # Simulates KERAS_BACKEND=jax without that library.
    other = "import keras; keras.backend.backend = lambda: 'jax'; import railhead.keras"
    text = program(1, "keras", "-c", other, may_fail=True)
    expect("railhead.keras is for Keras on TensorFlow, and Keras runs on jax: set KERAS_BACKEND=tensorflow" in text, text)
    text = program(1, "keras", HERE / "keras_refusals.py", RAILHEAD_TRANSPORT="shm")
    expect("both were refused" in text, text)


def case_tensorflow():
    """Means of gradients, for custom training loops."""
    for count, transport in ((2, "shm"), (4, "tcp")):
        ranks(count, transport, "keras", "tensorflow_steps.py")


def case_mxnet():
    """The store "railhead", used by Gluon's Trainer."""
    one = ranks(1, "shm", "mxnet", "mxnet_steps.py")
    for count, transport in SETUPS:
        alike(one, ranks(count, transport, "mxnet", "mxnet_steps.py"), "loss", count)


if __name__ == "__main__":
    sys.exit(cases.main(cases.cases_of(globals()), sys.argv[1:], unpack))
