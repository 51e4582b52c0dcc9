# SPDX-License-Identifier: Apache-2.0
"""docs with small repositories: circles of folders."""

import pathlib
import subprocess
import tempfile
import unittest

import docs


class Circles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railhead-docs-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True, timeout=60)

    def found(self, includes=None, known=frozenset()):
        """Returns the lines for headers, each of which includes one other."""
        for name, included in (includes or {}).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{included}"\n')
        return list(docs.circles(self.root, known))

    def test_arrows_one_way_are_no_circle(self):
        self.assertEqual(self.found({"kube/http/a.h": "kube/auth/b.h", "kube/auth/b.h": "kube/json.h"}), [])

    def test_a_planted_circle_is_found(self):
        lines = self.found({"kube/http/a.h": "kube/auth/b.h", "kube/auth/b.h": "kube/cache/c.h",
                           "kube/cache/c.h": "kube/http/a.h"})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("kube/auth, kube/cache, kube/http: folders include each other", lines[0])
        self.assertIn("kube/cache -> kube/http: 1 file, kube/cache/c.h", lines[0])

    def test_a_circle_over_the_root_is_found(self):
        self.assertEqual(len(self.found({"cli/main.h": "cli/doctor/a.h", "cli/doctor/a.h": "cli/words.h"})), 1)

    def test_a_known_circle_is_permitted_while_it_exists(self):
        known = frozenset({("cli", "cli/doctor")})
        self.assertEqual(self.found({"cli/main.h": "cli/doctor/a.h", "cli/doctor/a.h": "cli/words.h"}, known), [])
        (self.root / "cli/doctor/a.h").write_text("")
        self.assertRegex("".join(self.found(known=known)), r"^tools/docs\.py: cli, cli/doctor: no longer")

    def test_one_folder_more_in_a_known_circle_is_found(self):
        known = frozenset({("cli", "cli/doctor")})
        lines = self.found({"cli/main.h": "cli/doctor/a.h", "cli/doctor/a.h": "cli/text/b.h", "cli/text/b.h": "cli/c.h"}, known)
        self.assertTrue(any(line.startswith("cli, cli/doctor, cli/text: ") for line in lines), lines)

    def test_this_repository_has_only_known_circles(self):
        self.assertEqual(list(docs.circles()), [])


if __name__ == "__main__":
    unittest.main()
