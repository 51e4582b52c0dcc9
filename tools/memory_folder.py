# SPDX-License-Identifier: Apache-2.0
"""Folders in memory for the temporary files of tests.

Tests create some ten thousand small files. On a disk whose file system is slow to create files, this has taken a third
of the CPU time of the unit tests; in memory it takes a hundredth of that.
"""

import contextlib
import os
import pathlib
import secrets
import shutil
import stat

SHM = pathlib.Path("/dev/shm")
LEAST_FREE = 8 << 30  # bytes, in the file system and in memory; tests keep less than 2 GiB of files


def _available_memory():
    """Returns the bytes that programs can still get without swapping, or 0 if the kernel does not say."""
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _runs_programs(folder):
    """Returns whether programs in the folder can be started: containers often have /dev/shm without that right."""
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(stat.S_IRWXU)
    try:
        return os.access(program, os.X_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC
    finally:
        program.unlink()


def _make(shm):
    """Makes a folder with the rights of /tmp. Its path is short, since paths of sockets are limited to 107 bytes."""
    while True:
        folder = shm / f"rh-{secrets.token_hex(3)}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)
            return folder


@contextlib.contextmanager
def memory_folder(shm=SHM, least_free=LEAST_FREE):
    """Makes a new folder in memory for the `with`, and deletes it with all files. Yields its path, or None where the
    memory is scarce or programs in such a folder cannot be started."""
    folder = None
    with contextlib.suppress(OSError):
        space = os.statvfs(shm)
        if min(space.f_bavail * space.f_frsize, _available_memory()) >= least_free:
            folder = _make(shm)
            if not _runs_programs(folder):
                folder.rmdir()
                folder = None
    try:
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
