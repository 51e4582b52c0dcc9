# SPDX-License-Identifier: Apache-2.0
"""memory_folder: where it makes a folder, and where it does not."""

import pathlib
import subprocess
import tempfile
import unittest

from memory_folder import memory_folder


class MemoryFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memory-folder-")
        self.addCleanup(folder.cleanup)
        self.shm = pathlib.Path(folder.name)

    def test_it_lasts_as_long_as_the_with(self):
        with memory_folder(self.shm, least_free=1) as folder:
            self.assertEqual(folder.parent, self.shm)
            self.assertEqual(folder.stat().st_mode & 0o7777, 0o1777)
            program = folder / "program"
            program.write_text("#!/bin/sh\nexit 7\n")
            program.chmod(0o700)
            self.assertEqual(subprocess.run([program], check=False).returncode, 7)
        self.assertEqual(list(self.shm.iterdir()), [])

    def test_scarce_memory_and_a_missing_file_system_are_no_errors(self):
        for shm, least in ((self.shm, 1 << 60), (self.shm / "none", 1)):
            with memory_folder(shm, least_free=least) as folder:
                self.assertIsNone(folder)
        self.assertEqual(list(self.shm.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
