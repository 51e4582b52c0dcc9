#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel on a machine with an NVIDIA GPU, which all ranks share: every kind of memory, torch's CUDA tensors,
streams, failures; and times beside gloo's.

usage: tests/gpu/run.py [CASE]...     with a python3 that has torch with CUDA and NumPy; out/wheel must have a wheel
                                      with a backend for that torch (make wheel TORCH=...). `bench` must be named.
"""

import os
import pathlib
import re
import shutil
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import expect, side_by_side  # noqa: E402

HERE = ROOT / "tests" / "gpu"
FRAMEWORKS = ROOT / "tests" / "frameworks"
OUT = ROOT / "out" / "gpu-test"
SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
KEPT = ("LD_LIBRARY_PATH", "CUDA", "NVIDIA")


def prepare():
    shutil.rmtree(OUT, ignore_errors=True)
    [wheel] = (ROOT / "out" / "wheel").glob("railhead-*.whl")
    zipfile.ZipFile(wheel).extractall(OUT / "site")


def ranks(count, *command, **how):
    environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    path = os.pathsep.join(filter(None, [str(OUT / "site"), os.environ.get("PYTHONPATH")]))
    return cases.run_ranks(count, sys.executable, "-X", "faulthandler", *command, **{
        **environment, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "MASTER_PORT": "29500",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "HOME": str(OUT), **how})


def last_line(count, *command, **how):
    return ranks(count, *command, **how).strip().splitlines()[-1]


def in_worlds(*command, worlds):
    """Prints the last line of each world of (ranks, transport)."""
    def line(count, transport):
        return last_line(count, *command, RAILHEAD_TRANSPORT=transport)
    print(*side_by_side(*((line, *world) for world in worlds)), sep="\n")


def case_memory():
    in_worlds(HERE / "memory.py", worlds=((2, "shm"), (3, "shm"), (3, "tcp")))


def case_conformance():
    in_worlds(FRAMEWORKS / "conformance.py", "cuda", worlds=((2, "auto"), (4, "auto"), (3, "tcp")))


def case_transfers():
    in_worlds(FRAMEWORKS / "transfers.py", "cuda", worlds=((2, "auto"), (4, "auto"), (3, "tcp")))


def case_streams():
    in_worlds(HERE / "streams.py", worlds=((2, "auto"), (3, "auto")))


def case_training():
    """Losses are gloo's, all of it on the GPU."""
    def losses(backend, how):
        text = ranks(2, FRAMEWORKS / "train.py", backend, how, "cuda")
        [line] = re.findall(r"^losses (.*)$", text, re.M)
        return [float(word) for word in line.split()]

    hows = ("ddp", "zero", "fsdp")
    found = side_by_side(*((losses, backend, how) for how in hows for backend in ("railhead", "gloo")))
    for how, ours, gloos in zip(hows, found[::2], found[1::2]):
        pairs = list(zip(ours, gloos, strict=True))
        expect(len(pairs) >= 4 and all(abs(one - two) < 1e-4 for one, two in pairs), f"{how}: {ours}, gloo's {gloos}")
        print(f"{how}: {len(pairs)} losses as gloo's, {pairs[0][0]:.6f} to {pairs[-1][0]:.6f}")


def case_failures():
    def check(count, what, *words):
        text = ranks(count, FRAMEWORKS / "failures.py", what, "cuda", may_fail=True)
        for word in words:
            expect(re.search(word, text), f"{what}: no '{word}' in: {text}")

    side_by_side(
        (check, 3, "killed", r"rank 0: DistBackendError: railhead: ALLREDUCE .*rank 1",
         r"rank 2: DistBackendError: .*rank 1"),
        (check, 2, "fault", r"rank 1: DistBackendError: .*the work before it on its device failed",
         r"rank 0: DistBackendError: .*rank 1"),
        (check, 2, "mismatch", r"rank 0: DistBackendError: .*rank", r"rank 1: DistBackendError: .*rank"),
        (check, 2, "abort", r"rank 0: DistBackendError: .*this rank has aborted the process group",
         r"rank 1: DistBackendError: .*rank 0: .*rhCommRevoke"))


def case_bench():
    """A table for docs/gpu.md: microseconds of an all-reduce, on the GPU and beside it, ours and gloo's."""
    def seconds(count, backend, device):
        text = ranks(count, HERE / "bench.py", backend, device, *map(str, SIZES), seconds=300)
        return {int(size): float(time) for size, time in re.findall(r"^(\d+) (\d\.\d+)$", text, re.M)}

    print("| ranks | device | size | railhead, us | gloo, us | gloo / railhead |\n|---|---|---|---|---|---|")
    for count in (2, 4, 8):
        for device in ("cuda", "cpu"):
            ours, gloos = seconds(count, "railhead", device), seconds(count, "gloo", device)
            for size in SIZES:
                print(f"| {count} | {device} | {size} | {ours[size] * 1e6:.1f} | {gloos[size] * 1e6:.1f} | "
                      f"{gloos[size] / ours[size]:.2f} |", flush=True)


if __name__ == "__main__":
    table = cases.cases_of(globals())
    sys.exit(cases.main(table, sys.argv[1:], prepare, [name for name in table if name != "bench"]))
