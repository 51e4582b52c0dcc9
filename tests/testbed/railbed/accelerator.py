# SPDX-License-Identifier: Apache-2.0
"""Measures whether KVM is worth using here. /dev/kvm may exist without working, and without the CPU's virtualization
extensions (KVM-PVM) it can be far slower than QEMU's own emulation."""

import functools
import math
import os
import pathlib
import subprocess
import tempfile

from .console import Failure

_DONE = 99  # isa-debug-exit ends QEMU with 2 * 0x31 + 1
# Counts down from 2^28 and writes 0x31 to the port of isa-debug-exit: ECX = 2^28; ECX -= 1 until 0;
# AL = 0x31; DX = 0xf4; OUT; HLT.
_GUEST = bytes.fromhex("66b9 00000010 6649 75fc b031 baf400 ee f4").ljust(510, b"\0") + b"\x55\xaa"


@functools.cache
def use_kvm():
    """Runs one tiny guest emulated and under KVM. Returns (whether KVM took less CPU time, why)."""
    if not os.access("/dev/kvm", os.W_OK):
        return False, "/dev/kvm is missing or not writable"
    with tempfile.TemporaryDirectory() as folder:
        disk = pathlib.Path(folder) / "guest.img"
        disk.write_bytes(_GUEST)
        code, emulated, words = _run(disk, "tcg", 60)
        if code != _DONE:
            raise Failure(f"QEMU cannot run a guest of one sector: exit code {code} {words}",
                          advice="see that qemu-system-x86_64 starts here, and that a CPU is free")
        code, seconds, words = _run(disk, "kvm", math.ceil(emulated))
    if code != _DONE:
        return False, (f"with KVM a guest gave up after {seconds:.1f} s of CPU time {words}which takes "
                       f"{emulated:.1f} s emulated")
    return seconds < emulated, f"a guest takes {seconds:.2f} s of CPU time with KVM, {emulated:.2f} without"


def _run(disk, accelerator, cpu_seconds):
    """Runs the guest with a limit on CPU time; returns QEMU's exit code, its CPU time and its output. Callers compare
    CPU time only, since wall time depends on other load."""
    child = subprocess.Popen(
        ["prlimit", f"--cpu={cpu_seconds}", "qemu-system-x86_64", "-accel", accelerator, "-m", "16",
         "-nodefaults", "-display", "none", "-no-reboot",
         "-drive", f"file={disk},format=raw,if=ide,snapshot=on",
         "-device", "isa-debug-exit,iobase=0xf4,iosize=1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    before = os.times()
    try:
        words = child.communicate(timeout=120)[1]
    except subprocess.TimeoutExpired:
        child.kill()
        words = child.communicate()[1]
    after = os.times()
    used = (after.children_user + after.children_system - before.children_user -
            before.children_system)
    lines = [line for line in words.strip().splitlines() if "warning:" not in line]
    return child.returncode, used, f"({lines[-1]}) " if lines else ""
