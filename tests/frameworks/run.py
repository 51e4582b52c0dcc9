#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel's torch backend in a real torch, and compares it with gloo.

usage: tests/frameworks/run.py [--torch MINOR] [CASE]...      MINOR: 2.15 by default. Run `make wheel` first. The case
                                                              torch-suite runs only if named.

This torch has no CUDA (tools/torch-venv.sh). The wheel is unpacked into a folder on PYTHONPATH, as in a pod whose
image does not contain it.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "rails"))

import cases  # noqa: E402
from cases import expect, side_by_side  # noqa: E402
from network import Network  # noqa: E402
from one_torch import OUT, Torch, check_object  # noqa: E402

HERE = ROOT / "tests" / "frameworks"


def case_registration(torch):
    """The entry point alone registers the backend; a script that does not use it is not affected."""
    def serves(name, said, **more):
        text = torch.run(HERE / "registration.py", said, ranks=1, **more)
        expect(re.search(rf"^{name} .* 1\.0$", text, re.M), f"{said} {more}: {text}")

    side_by_side((serves, "railhead", "railhead"), (serves, "railhead", "cpu:railhead"), (serves, "gloo", "gloo"))
    if torch.minor != "2.9":  # 2.9 does not allow a plugin to replace gloo
        serves("railhead", "gloo", RAILHEAD_TORCH_REPLACE="gloo")
    plain = ("-c", "import torch; print(torch.ones(2).sum().item(), 'librailhead' in open('/proc/self/maps').read())")
    text = torch.run(*plain, ranks=1)
    expect(text == "2.0 False\n", text)
    text = torch.run(*plain, ranks=1, RAILHEAD_TORCH_REPLACE="mpi")
    expect(text.endswith("2.0 False\n") and "may be 'gloo' or empty" in text, text)


def case_unknown_version(torch):
    """The wheel has no backend for this version of torch."""
    check_object(OUT / "site" / "railhead" / "lib" / f"railhead-torch-{torch.minor}.so", "ld-linux-x86-64.so.2")


def main():
    words = sys.argv[1:]
    minor = "2.15"
    if words[:1] == ["--torch"]:
        minor, words = words[1], words[2:]
    torch = Torch(minor)
    table = {name: lambda case=case: case(torch) for name, case in cases.cases_of(globals()).items()}
    return cases.main(table, words, torch.unpack, [name for name in table if name != "torch-suite"])


if __name__ == "__main__":
    sys.exit(main())
