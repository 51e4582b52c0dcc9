# SPDX-License-Identifier: Apache-2.0
"""The chart's memory limit for the operator, for tests that run it as a process."""

import contextlib
import pathlib
import re
import uuid

import yaml

from helm import CHART

from control_plane import wait_until


def operator_memory():
    """Returns the operator's memory limit by the chart's default values, in MiB."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    return int(re.fullmatch(r"(\d+)Mi", values["operator"]["resources"]["limits"]["memory"])[1])


def resident(pid, what="VmRSS"):
    """Returns the process's memory in MiB."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.search(rf"^{what}:\s+(\d+) kB", text, re.MULTILINE)[1]) / 1024


@contextlib.contextmanager
def within_memory(replica):
    """The kernel kills the replica if it exceeds the chart's memory limit. The replica ends with the context."""
    root = pathlib.Path("/sys/fs/cgroup")
    old = (root / "memory").is_dir()
    # A process's number is that of its own namespace: other runs have the same.
    group = root / ("memory" if old else "") / f"railhead-operator-{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
        limit = group / ("memory.limit_in_bytes" if old else "memory.max")
        limit.write_text(str(operator_memory() << 20))
        (group / "cgroup.procs").write_text(str(replica.pid))
    except OSError as error:
        raise AssertionError(f"cannot limit memory with {group}: {error}; run this as root where control groups can be "
                             "made") from error
    try:
        yield group
    finally:
        replica.end()
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
        group.rmdir()
