# SPDX-License-Identifier: Apache-2.0
"""Measures the rate of this machine's time-stamp counter, for Linux on emulated CPUs, which use it as their clock.

Linux could measure it itself, against a timer that is emulated too. On a busy machine the emulator may be descheduled
during that, and Linux then takes one second for up to thirty: every timeout seems to expire late, and its CPUs to be
locked up."""

import ctypes
import mmap
import platform
import time

_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # RDTSC; SHL RDX, 32; OR RAX, RDX; RET
_SECONDS = 0.1


def tsc_khz():
    """Returns the counter's rate in kHz; None if there is no counter, or this process may not run code to read it."""
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
        del begin  # the page must stay mapped until here
    return round((last - first) * 1_000_000 / (now - then))


def _look(read):
    """Returns (nanoseconds, ticks) at one moment: the quickest of several readings."""
    looks = [(time.monotonic_ns(), read(), time.monotonic_ns()) for _ in range(100)]
    before, ticks, after = min(looks, key=lambda look: look[2] - look[0])
    return (before + after) // 2, ticks
