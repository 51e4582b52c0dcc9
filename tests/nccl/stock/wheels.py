# SPDX-License-Identifier: Apache-2.0
"""libnccl.so.2 of NVIDIA's wheels on PyPI, one version at a time in the cache.

To add a version, see README.md: its layout must be known first.
"""

import contextlib
import pathlib
import platform
import shutil
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "testbed")]

from cases import CACHE, locked  # noqa: E402
from railbed.console import Failure  # noqa: E402
from railbed.process import run  # noqa: E402

PACKAGE = "nvidia-nccl-cu12"
# The version and the sha256 of its wheel for x86-64.
WHEELS = {
    "2.26.5": "ea5ed3e053c735f16809bee7111deac62ac35b10128a8c102960a0462ce16cbe",
    "2.28.9": "485776daa8447da5da39681af455aa3b2c2586ddcf4af8772495e7c532c7e5ab",
    "2.30.7": "8ce1b8213f61f2bfac132e6df890af6450b77cbd140c6ce4e98cb0c2d8e678c9",
    "2.32.3": "bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c",
}
DEFAULT = "2.30.7"
MEMBER = "nvidia/nccl/lib/libnccl.so.2"
DOWNLOAD_SECONDS = 1800


def check(version):
    if version not in WHEELS:
        raise Failure(f"NCCL {version} is not pinned; these are: {', '.join(WHEELS)}",
                      advice=f"if its layout is known (tests/nccl/stock/README.md), add the version and the wheel's sha256 to "
                             f"WHEELS in tests/nccl/stock/wheels.py: python3 -m pip download --no-deps {PACKAGE}=={version} "
                             f"&& sha256sum *.whl")
    if platform.machine() != "x86_64":
        raise Failure("only x86-64 is supported: calls of the CUDA runtime are redirected by jumps of that machine")


def _download(version, folder):
    """Unpacks the library of the wheel into the folder."""
    draft = folder.with_name(folder.name + "-draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        pinned = draft / "requirements.txt"
        pinned.write_text(f"{PACKAGE}=={version} --hash=sha256:{WHEELS[version]}\n", "ascii")
        # pip's temporary files are as large as the wheel: on the disk of the cache.
        run(["env", f"TMPDIR={draft}", "/usr/bin/python3", "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
             "--only-binary", ":all:", "--require-hashes", "--dest", draft, "-r", pinned], seconds=DOWNLOAD_SECONDS)
        [wheel] = draft.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(MEMBER, draft)
        wheel.unlink()
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextlib.contextmanager
def library(version):
    """The path of the library, which no other test uses meanwhile. Only the default version stays in the cache: each has
    400 MB."""
    check(version)
    folder = CACHE / f"nccl-{version}-{WHEELS[version][:16]}"
    with locked("nccl"):
        for old in CACHE.glob("nccl-*-*"):
            if old != folder and not old.name.startswith(f"nccl-{DEFAULT}-{WHEELS[DEFAULT][:16]}"):
                shutil.rmtree(old)
        if not folder.exists():
            _download(version, folder)
        try:
            yield folder / MEMBER
        finally:
            if version != DEFAULT:
                shutil.rmtree(folder)
