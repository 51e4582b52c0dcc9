# SPDX-License-Identifier: Apache-2.0
"""Conditions under which transfers are measured: a quiet machine, one with busy cores, and a limit of CPU time.

    with limited(2) as place:
        run([*place.prefix, program])

Each run begins and ends its condition, so that spinning processes have ended when CPU time is attributed
(neighbours.py)."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests" / "testbed"), str(ROOT / "tests" / "bench" / "peers")]

from railbed.process import end  # noqa: E402

PERIOD_US = 100_000
REMOVE_SECONDS = 10
# Ends by itself if the benchmark is killed.
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1 << 20):\n        pass"
# A process joins the control group, then the namespaces in which that group is the only one.
JOIN = 'echo $$ > "$1" && shift && exec nsenter "$@"'


class NotMeasured(Exception):
    """This machine has no such condition, and why."""


@dataclasses.dataclass
class Place:
    prefix: list            # words before the command of each process that is measured
    spinners: list = ()     # pids
    group: pathlib.Path = None
    throttled: tuple = ()   # after the end: periods in which the group was throttled, and all its periods


@dataclasses.dataclass(frozen=True)
class Hierarchy:
    """The folder for new control groups."""
    version: int
    folder: pathlib.Path


def read(path):
    try:
        return pathlib.Path(path).read_text("ascii")
    except OSError:
        return ""


def hierarchy_of(mounts, own_groups, enabled_below):
    """Returns the hierarchy that has the CPU controller. `mounts` and `own_groups` are the texts of /proc/mounts and
    /proc/self/cgroup; enabled_below(folder) is the text of the folder's cgroup.subtree_control."""
    for line in mounts.splitlines():
        _, folder, kind, options, *_ = line.split()
        # In version 2, a group that has processes, such as the own one, can have no groups with controllers.
        if kind == "cgroup2" and "cpu" in enabled_below(folder).split():
            return Hierarchy(2, pathlib.Path(folder))
        if kind != "cgroup" or "cpu" not in options.split(","):
            continue
        for own in own_groups.splitlines():
            _, controllers, path = own.split(":", 2)
            if "cpu" in controllers.split(",") and ".." not in path:
                return Hierarchy(1, pathlib.Path(folder) / path.lstrip("/"))
    raise NotMeasured("this machine has no control groups with a CPU controller")


def throttling_of(stat):
    """Returns the throttled periods and all periods of the text of cpu.stat."""
    fields = dict(line.split() for line in stat.splitlines())
    return int(fields["nr_throttled"]), int(fields["nr_periods"])


@contextlib.contextmanager
def quiet():
    yield Place([])


@contextlib.contextmanager
def busy():
    """One process for each core spins, at the priority of this process."""
    with contextlib.ExitStack() as undo:
        spinners = []
        for _ in range(os.cpu_count()):
            child = subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())], stdin=subprocess.DEVNULL,
                                     start_new_session=True)
            undo.callback(child.wait)
            undo.callback(end, child.pid)
            spinners.append(child.pid)
        yield Place([], spinners)


@contextlib.contextmanager
def limited(cores):
    """A control group whose processes together get the time of so many cores, as those of a container do: it is the
    root of what they see in /sys/fs/cgroup. Raises NotMeasured if this process cannot make one."""
    found = hierarchy_of(read("/proc/mounts"), read("/proc/self/cgroup"),
                         lambda folder: read(f"{folder}/cgroup.subtree_control"))
    quota = round(cores * PERIOD_US)
    with contextlib.ExitStack() as undo:
        try:
            group = pathlib.Path(tempfile.mkdtemp(prefix="railhead-bench-", dir=found.folder))
            undo.callback(_remove, group)
            if found.version == 2:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}", "ascii")
                root, file = "/sys/fs/cgroup", "cpu.max"
            else:
                (group / "cpu.cfs_period_us").write_text(f"{PERIOD_US}", "ascii")
                (group / "cpu.cfs_quota_us").write_text(f"{quota}", "ascii")
                root, file = "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"
        except OSError as error:
            raise NotMeasured(f"control groups cannot be made: {error}") from None
        holder = undo.enter_context(_holder(group, f"mount --bind {group} {root} && cat {root}/{file}", quota))
        namespaces = [f"--{kind}=/proc/{holder}/ns/{name}" for kind, name in (("mount", "mnt"), ("cgroup", "cgroup"))]
        place = Place(["/bin/sh", "-c", JOIN, "join", str(group / "cgroup.procs"), *namespaces, "--"], group=group)
        yield place
        place.throttled = throttling_of(read(group / "cpu.stat"))


@contextlib.contextmanager
def _holder(group, show, quota):
    """Yields the pid of a process that has the namespaces, until the end or until this process is gone."""
    script = f'echo $$ > {group}/cgroup.procs; exec unshare --mount --cgroup sh -ec "{show}; exec cat"'
    with subprocess.Popen(["/bin/sh", "-ec", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        try:
            line = child.stdout.readline()
            if line.split()[:1] != [str(quota)]:
                child.stdin.close()
                raise NotMeasured(f"control groups cannot be used: {line}{child.stderr.read().strip()}")
            yield child.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _remove(group):
    """Removes the group. Processes that were killed leave it a moment later."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


CONDITIONS = {"quiet": quiet, "busy": busy, "limited": limited}
