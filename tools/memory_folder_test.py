# SPDX-License-Identifier: Apache-2.0
"""memory_folder: where it makes a folder, and where it does not."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

from memory_folder import memory_folder


class MemoryFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memory-folder-")
        self.addCleanup(folder.cleanup)
        self.shm = pathlib.Path(folder.name)

    def test_it_is_like_tmp_until_its_cleanup(self):
        folder = memory_folder(self.shm, least_free=0)
        path = pathlib.Path(folder.name)
        self.assertEqual(path.parent, self.shm)
        self.assertEqual(path.stat().st_mode & 0o7777, 0o1777)
        program = path / "program"
        program.write_text("#!/bin/sh\nexit 7\n")
        program.chmod(0o700)
        self.assertEqual(subprocess.run([program], check=False).returncode, 7)
        folder.cleanup()
        self.assertEqual(list(self.shm.iterdir()), [])

    def test_scarce_memory_and_a_missing_file_system_are_no_errors(self):
        for shm, least in ((self.shm, 1 << 30), (self.shm / "none", 0)):
            self.assertIsNone(memory_folder(shm, least_free=least))
        self.assertEqual(list(self.shm.iterdir()), [])

    def test_there_is_none_where_programs_cannot_be_started(self):
        space = mock.Mock(f_bavail=1 << 40, f_frsize=1, f_flag=os.ST_NOEXEC)
        with mock.patch("os.statvfs", return_value=space):
            self.assertIsNone(memory_folder(self.shm, least_free=0))
        self.assertEqual(list(self.shm.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
