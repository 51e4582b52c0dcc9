# SPDX-License-Identifier: Apache-2.0
"""The choice of the nodes' kernel: by text, with random archives, and with mmdebstrap at an archive on this machine."""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from choose_kernel import available, choose  # noqa: E402

KERNEL = "6.1.0-56-amd64"
# bookworm-security on 2026-11-29: the image and the headers of one version, the build's programs of the next one.
SPLIT = {
    f"linux-image-{KERNEL}": ["6.1.192-2"],
    f"linux-headers-{KERNEL}": ["6.1.192-2"],
    "linux-headers-6.1.0-56-common": ["6.1.192-2"],
    "linux-kbuild-6.1": ["6.1.192-3"],
    "linux-source-6.1": ["6.1.190-1", "6.1.192-2", "6.1.192-3"],
    f"linux-image-{KERNEL}-dbg": ["6.1.192-2"],
    "linux-image-6.12.117+deb12-amd64": ["6.12.117-1~deb12u1"],
}


def without(archive, *names):
    return {name: versions for name, versions in archive.items() if name not in names}


def lines(archive):
    return "".join(f"{name} | {version} | http://debian.test bookworm/main amd64 Packages\n"
                   for name, versions in archive.items() for version in versions)


class Choice(unittest.TestCase):
    def chosen(self, archive):
        return choose(available(lines(archive)), "amd64")

    def test_programs_of_the_build_may_have_another_version(self):
        kernel, version, packages, missing = self.chosen(SPLIT)
        self.assertEqual((kernel, version, missing), (KERNEL, "6.1.192-2", []))
        self.assertIn("linux-kbuild-6.1=6.1.192-3", packages)
        self.assertIn("linux-source-6.1=6.1.192-2", packages)

    def test_an_older_kernel_that_has_all_is_better_than_the_newest(self):
        newer = {"linux-image-6.1.0-57-amd64": ["6.1.200-1"], "linux-headers-6.1.0-57-amd64": ["6.1.200-1"]}
        self.assertEqual(self.chosen(SPLIT | newer)[0], KERNEL)
        newer |= {"linux-headers-6.1.0-57-common": ["6.1.200-1"],
                  "linux-source-6.1": [*SPLIT["linux-source-6.1"], "6.1.200-1"]}
        self.assertEqual(self.chosen(SPLIT | newer)[0], "6.1.0-57-amd64")

    def test_a_kernel_without_the_rest_is_taken_and_says_what_is_missing(self):
        for name in list(SPLIT)[1:5]:
            with self.subTest(name):
                kernel, _, packages, missing = self.chosen(without(SPLIT, name))
                self.assertEqual((kernel, packages), (KERNEL, []))
                self.assertEqual(len(missing), 1)
                self.assertTrue(missing[0].startswith(name), missing)

    def test_an_archive_without_kernels(self):
        self.assertIsNone(self.chosen(without(SPLIT, f"linux-image-{KERNEL}")))
        self.assertIsNone(choose(available("linux | 6.1.192-2 | http://debian.test bookworm/main Sources\n"), "amd64"))

    def test_random_archives(self):
        """Whatever the archive holds: the choice is in it, belongs together, and is the newest that does."""
        for seed in range(300):
            draw = random.Random(seed)
            versions = [f"6.1.{patch}-{build}" for patch in (9, 10, 100) for build in (1, 2)]
            archive = {}
            for number in (8, 9, 10):
                for name in (f"linux-image-6.1.0-{number}-amd64", f"linux-headers-6.1.0-{number}-amd64",
                             f"linux-headers-6.1.0-{number}-common"):
                    archive[name] = draw.sample(versions, draw.randint(0, 4))
            for name in ("linux-source-6.1", "linux-kbuild-6.1"):
                archive[name] = draw.sample(versions, draw.randint(0, 6))

            def has_all(number, version, archive=archive):
                return (archive["linux-kbuild-6.1"] and version in archive["linux-source-6.1"] and all(
                    version in archive[name] for name in (f"linux-headers-6.1.0-{number}-amd64",
                                                          f"linux-headers-6.1.0-{number}-common")))

            def age(kernel):
                return [int(digits) for digits in re.findall(r"\d+", kernel[1])]

            images = [(number, version) for number in (8, 9, 10) for version in archive[f"linux-image-6.1.0-{number}-amd64"]]
            whole = [image for image in images if has_all(*image)]
            chosen = self.chosen(archive)
            with self.subTest(seed=seed, archive=archive):
                if not images:
                    self.assertIsNone(chosen)
                    continue
                kernel, version, packages, missing = chosen
                number = int(kernel.split("-")[1])
                self.assertIn((number, version), images)
                self.assertEqual(bool(missing), not whole)
                self.assertEqual(age((number, version)), max(age(image) for image in whole or images))
                for package in packages:
                    name, its = package.split("=")
                    self.assertIn(its, archive[name])


class Archive(unittest.TestCase):
    """mmdebstrap and fetch-kernel.sh with an archive of small packages on this disk."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railhead-archive-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def package(self, name, version, files):
        root = self.folder / "package"
        (root / "DEBIAN").mkdir(parents=True)
        (root / "DEBIAN" / "control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: nobody <nobody@debian.test>\n"
            f"Description: {name} for a test\n", "utf-8")
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text)
        subprocess.run(["dpkg-deb", "--build", root, self.folder / "archive" / f"{name}_{version}.deb"], check=True,
                       capture_output=True)
        subprocess.run(["rm", "-rf", root], check=True)

    def archive(self, content):
        (self.folder / "archive").mkdir()
        source = self.folder / "linux-source-6.1"
        for path in ("drivers/infiniband/sw/siw/siw.c", "include/uapi/rdma/siw-abi.h", "kernel/fork.c"):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(path, "utf-8")
        packed = subprocess.run(["tar", "-C", self.folder, "-cJf", "-", source.name], check=True,
                                capture_output=True).stdout
        for name, versions in content.items():
            for version in versions:
                note = {f"usr/share/{name}": version.encode()}
                if name == "linux-source-6.1":
                    note["usr/src/linux-source-6.1.tar.xz"] = packed
                self.package(name, version, note)
        listed = subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=self.folder / "archive", check=True,
                                capture_output=True).stdout
        (self.folder / "archive" / "Packages").write_bytes(listed)

    def fetch(self, content):
        """Returns (mmdebstrap's exit code, its output, the folder OUT, the root)."""
        self.archive(content)
        out, root = self.folder / "out", self.folder / "root"
        done = subprocess.run(
            ["mmdebstrap", "--variant=custom", "--mode=chrootless",
             f"--customize-hook='{HERE / 'fetch-kernel.sh'}' \"$1\" '{out}'", "bookworm", root,
             f"deb [trusted=yes] copy:{self.folder / 'archive'} ./"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180,
            env=os.environ | {"TMPDIR": str(self.folder)}, check=False)
        return done.returncode, done.stdout, out, root

    def test_image_and_headers_of_one_version_and_programs_of_another(self):
        code, text, out, root = self.fetch(SPLIT)
        self.assertEqual(code, 0, text)
        self.assertEqual((out / "kernel").read_text(), f"{KERNEL} 6.1.192-2\n")
        self.assertFalse((out / "missing").exists(), text)
        self.assertEqual((root / "usr/share" / f"linux-image-{KERNEL}").read_text(), "6.1.192-2")
        self.assertEqual((out / "headers/usr/share/linux-kbuild-6.1").read_text(), "6.1.192-3")
        self.assertEqual((out / "headers/usr/share" / f"linux-headers-{KERNEL}").read_text(), "6.1.192-2")
        self.assertEqual([str(path.relative_to(out / "source")) for path in sorted((out / "source").rglob("*.*"))],
                         ["drivers/infiniband/sw/siw/siw.c", "include/uapi/rdma/siw-abi.h"])

    def test_without_source_there_are_nodes_without_modules(self):
        code, text, out, root = self.fetch(without(SPLIT, "linux-source-6.1"))
        self.assertEqual(code, 0, text)
        self.assertTrue((root / "usr/share" / f"linux-image-{KERNEL}").exists(), text)
        built = subprocess.run([HERE / "build-module.sh", "siw", out], capture_output=True, text=True, check=False)
        self.assertEqual(built.returncode, 1)
        self.assertIn("the archive has no linux-source-6.1=6.1.192-2", built.stderr)

    def test_without_a_kernel_it_fails(self):
        code, text, _, _ = self.fetch(without(SPLIT, f"linux-image-{KERNEL}"))
        self.assertNotEqual(code, 0)
        self.assertIn("the archive has no linux-image-VERSION-amd64", text)


if __name__ == "__main__":
    unittest.main()
