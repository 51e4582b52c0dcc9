# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU time of a process, from the kernel."""

import os
import pathlib


def memory(pid):
    """Returns current and peak memory in MiB."""
    fields = dict(
        line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))


def cpu_seconds(pid):
    """Returns user and system time of all threads."""
    after_name = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
