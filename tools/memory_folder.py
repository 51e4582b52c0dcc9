# SPDX-License-Identifier: Apache-2.0
"""Folders in memory for the temporary files of tests.

Tests create some ten thousand small files. On a disk whose file system is slow to create files, this has taken a third
of the CPU time of the unit tests; in memory it takes a hundredth of that.
"""

import contextlib
import os
import pathlib
import tempfile

from check_machine import available_memory

SHM = pathlib.Path("/dev/shm")
LEAST_FREE = 8  # GiB, in the file system and in memory; tests keep less than 2 GiB of files


def memory_folder(shm=SHM, least_free=LEAST_FREE):
    """Returns a new folder in memory with the rights of /tmp, as a tempfile.TemporaryDirectory; None where memory is
    scarce, or programs in such a folder cannot be started, as in many containers. Its path is short, since paths of
    sockets are limited to 107 bytes."""
    with contextlib.suppress(OSError):
        space = os.statvfs(shm)
        free = min(space.f_bavail * space.f_frsize / 2**30, available_memory())
        if free >= least_free and not space.f_flag & os.ST_NOEXEC:
            folder = tempfile.TemporaryDirectory(prefix="r-", dir=shm, ignore_cleanup_errors=True)
            os.chmod(folder.name, 0o1777)
            return folder
    return None
