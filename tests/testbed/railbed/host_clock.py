# SPDX-License-Identifier: Apache-2.0
"""How fast this machine's time-stamp counter runs, for Linux on emulated CPUs, which count by it.

Linux would find out by itself, against a timer that is emulated too. On a busy machine the emulator is put
aside in the middle of that, and Linux takes one second for up to thirty: whatever it waits for seems late, and
its CPUs seem to be locked up."""

import ctypes
import mmap
import platform
import time

_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # RDTSC; SHL RDX, 32; OR RAX, RDX; RET
_SECONDS = 0.1


def tsc_khz():
    """The counter's rate; None where there is no such counter, or none that we may run code to read."""
    if platform.machine() != "x86_64":
        return None
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    with memory as page:
        page.write(_RDTSC)
        begin = ctypes.c_char.from_buffer(page)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(begin))
        then, first = _look(read)
        time.sleep(_SECONDS)
        now, last = _look(read)
        del begin  # the page cannot be closed before
    return round((last - first) * 1_000_000 / (now - then))


def _look(read):
    """(nanoseconds, ticks) at one moment: the look that took the least time, out of some."""
    looks = [(time.monotonic_ns(), read(), time.monotonic_ns()) for _ in range(100)]
    before, ticks, after = min(looks, key=lambda look: look[2] - look[0])
    return (before + after) // 2, ticks
