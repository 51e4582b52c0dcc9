# SPDX-License-Identifier: Apache-2.0
"""house with small repositories: what counts as production, which folders form a circle, and the rooms of walks."""

import contextlib
import io
import json
import pathlib
import subprocess
import tempfile
import unittest

import house


class House(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railhead-house-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True, timeout=60)

    def files(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run_house(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = house.main(words, root=self.root)
        return code, out.getvalue(), err.getvalue()

    def measured(self):
        code, out, err = self.run_house("-o", "json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_only_production_counts(self):
        self.files({"kube/a.h": "1\n2\n", "kube/a.cc": "1\n", "kube/a_test.cc": "1\n", "kube/a_fuzz.cc": "1\n",
                    "kube/a_bench.cc": "1\n", "kube/testing/fake.h": "1\n", "kube/fake_a.cc": "1\n",
                    "kube/a_for_test.h": "1\n", "kube/README.md": "1\n", "tests/kube/main.py": "1\n",
                    "cli/latest.py": "1\n2\n3\n4\n"})
        self.assertEqual(self.measured()["lines"],
                         {"cli": {"files": 1, "lines": 4}, "kube": {"files": 2, "lines": 3}})

    def test_folders_that_include_each_other_are_a_circle(self):
        self.files({"kube/http/a.h": '#include "kube/auth/b.h"\n', "kube/auth/b.cc": '#include "kube/cache/c.h"\n',
                    "kube/cache/c.h": '#include "kube/http/a.h"\n', "kube/main.cc": '#include "kube/http/a.h"\n',
                    "kube/http/d.h": '#include "kube/http/a.h"\n#include "base/e.h"\n',
                    "base/e.h": '#include "kube/http/a.h"\n'})
        found = self.measured()
        self.assertEqual([circle["folders"] for circle in found["circles"]], [["kube/auth", "kube/cache", "kube/http"]])
        self.assertIn("kube/cache -> kube/http: 1 file, kube/cache/c.h", found["circles"][0]["arrows"])
        self.assertEqual(found["arrows"], {"kube": 4})

    def test_the_root_of_a_component_is_a_folder(self):
        self.files({"cli/main.cc": '#include "cli/doctor/a.h"\n', "cli/doctor/a.cc": '#include "cli/words.h"\n'})
        self.assertEqual([circle["folders"] for circle in self.measured()["circles"]], [["cli", "cli/doctor"]])

    def test_tests_may_include_upwards(self):
        self.files({"kube/http/a.h": '#include "kube/json.h"\n', "kube/json_test.cc": '#include "kube/http/a.h"\n'})
        self.assertEqual(self.measured()["circles"], [])

    def test_a_header_and_its_source_are_one_room(self):
        self.files({"kube/a.h": "", "kube/a.cc": "", "kube/b.h": "",
                    "tools/walks/there.txt": "# The way.\nkube/a.cc\n\nkube/b.h  # a header alone\nkube/a.h\n"})
        self.assertEqual(self.measured()["walks"], {"there": ["kube/a", "kube/b"]})
        self.assertRegex(self.run_house()[1], r"there +2\n")

    def test_a_listed_file_that_does_not_exist_is_an_error(self):
        self.files({"kube/a.h": "", "tools/walks/there.txt": "kube/a.h\nkube/b.h\n"})
        code, out, err = self.run_house()
        self.assertEqual((code, out), (1, ""))
        self.assertIn("there.txt:2: kube/b.h does not exist", err)

    def test_names_of_headers_that_exist_twice(self):
        self.files({"kube/log.h": "", "runtime/log.h": "", "cli/log.cc": "", "cli/why.h": ""})
        self.assertEqual(self.measured()["twice"], {"log.h": ["kube/log.h", "runtime/log.h"]})

    def test_every_list_of_this_repository_names_files_that_exist(self):
        walks = sorted((house.ROOT / "tools" / "walks").glob("*.txt"))
        self.assertGreaterEqual(len(walks), 5)
        for path in walks:
            with self.subTest(path.name):
                self.assertGreater(len(house.rooms(house.ROOT, path)), 10)


if __name__ == "__main__":
    unittest.main()
