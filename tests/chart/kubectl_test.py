# SPDX-License-Identifier: Apache-2.0
"""`railhead` as a plugin of the real kubectl, its completion in a real bash, and its archive with krew's manifest.
Needs no cluster."""

import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import tarfile
import tempfile
import unittest

import yaml

from helm import ROOT

PROGRAMS = ROOT / "build" / "release" / "cli"
SCRIPT = """
source <(railhead completion bash)
COMP_WORDS=({words}); COMP_CWORD={last}
_railhead_complete 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def run(*command):
    environment = os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "KUBECONFIG": "/dev/null"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=environment
    )


class Kubectl(unittest.TestCase):
    def test_it_is_a_plugin(self):
        self.assertIn("kubectl-railhead", run("kubectl", "plugin", "list").stdout)
        done = run("kubectl", "railhead", "doctor", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kubectl railhead doctor", done.stdout)
        self.assertEqual(
            run("kubectl", "railhead", "--version").stdout, run("railhead", "--version").stdout
        )

    def test_kubectls_flags_are_taken(self):
        for command in ("doctor", "why", "topology"):
            text = run("kubectl", "railhead", command, "--help").stdout
            for flag in ("--kubeconfig", "--context"):
                self.assertIn(flag, text, command)

    def test_kubectl_completes_it(self):
        done = run("kubectl", "__complete", "railhead", "doctor", "-o", "")
        self.assertEqual(done.stdout.splitlines()[:2], ["text", "json"], done)

    def test_bash_completes_it(self):
        for words, expected in (
            (["railhead", "do"], ["doctor"]),
            (["railhead", "doctor", "--output", "=", "j"], ["json"]),
            (["railhead", "doctor", "--cont"], ["--context"]),
            (["kubectl-railhead", "completion", ""], ["bash", "zsh", "fish"]),
        ):
            script = SCRIPT.format(words=" ".join(map(shlex.quote, words)), last=len(words) - 1)
            done = run("bash", "-c", script)
            self.assertEqual(done.stdout.splitlines(), expected, done.stderr)

    def test_what_is_misspelt_is_told_with_the_nearest(self):
        done = run("kubectl", "railhead", "docter")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did you mean doctor?", done.stderr)
        done = run("kubectl", "railhead", "doctor", "--contxt", "a")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean --context?", done.stderr)


# krew's documentation of the manifest: field to (type, whether it is required).
PLUGIN = {"apiVersion": (str, True), "kind": (str, True), "metadata": (dict, True), "spec": (dict, True)}
SPEC = {"version": (str, True), "homepage": (str, False), "shortDescription": (str, True), "description": (str, True),
        "caveats": (str, False), "platforms": (list, True)}
PLATFORM = {"selector": (dict, True), "uri": (str, True), "sha256": (str, True), "bin": (str, True), "files": (list, False)}


class Krew(unittest.TestCase):
    """The archive as krew installs it: all files in one folder, and a link to `bin` in PATH."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="railhead-krew-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        tools = ROOT / "tools"
        cls.archive = pathlib.Path(cls.printed(tools / "cli_archive.py", cls.root / "out").strip())
        cls.manifest = yaml.safe_load(cls.printed(
            tools / "krew_manifest.py", "--uri", "https://example.com/releases", "--homepage", "https://example.com",
            cls.archive))

    @staticmethod
    def printed(*command):
        return subprocess.run(list(map(str, ("/usr/bin/python3", *command))), capture_output=True, text=True, timeout=600,
                              check=True).stdout

    def fits(self, value, schema):
        self.assertEqual(set(value) - set(schema), set())
        for field, (kind, required) in schema.items():
            if required or field in value:
                self.assertIsInstance(value.get(field), kind, field)
                self.assertTrue(value[field], field)

    def test_the_manifest_is_as_krew_documents_it(self):
        self.fits(self.manifest, PLUGIN)
        self.fits(self.manifest["spec"], SPEC)
        self.assertEqual(self.manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2")
        self.assertEqual(self.manifest["kind"], "Plugin")
        self.assertEqual(self.manifest["metadata"], {"name": "railhead"})
        spec = self.manifest["spec"]
        self.assertRegex(spec["version"], r"^v\d+\.\d+\.\d+$")
        self.assertNotIn("\n", spec["shortDescription"])
        self.assertLessEqual(len(spec["shortDescription"]), 50)
        (platform,) = spec["platforms"]
        self.fits(platform, PLATFORM)
        self.assertEqual(set(platform["selector"]), {"matchLabels"})
        self.assertEqual(platform["selector"]["matchLabels"]["os"], "linux")
        self.assertIn(platform["selector"]["matchLabels"]["arch"], ("amd64", "arm64"))
        self.assertEqual(platform["uri"], f"https://example.com/releases/{self.archive.name}")
        self.assertEqual(platform["sha256"], hashlib.sha256(self.archive.read_bytes()).hexdigest())

    def test_what_it_installs_is_kubectls_plugin(self):
        store, path = self.root / "store", self.root / "bin"
        path.mkdir()
        with tarfile.open(self.archive) as archive:
            archive.extractall(store)
        (path / "kubectl-railhead").symlink_to(store / self.manifest["spec"]["platforms"][0]["bin"])
        done = subprocess.run(["kubectl", "railhead", "--version"], capture_output=True, text=True, timeout=600, check=False,
                              env=os.environ | {"PATH": f"{path}:{os.environ['PATH']}", "KUBECONFIG": "/dev/null"})
        self.assertEqual((f"v{done.stdout.strip()}", done.stderr), (self.manifest["spec"]["version"], ""))
        # It uses its own libraries, except for those of the C library.
        told = subprocess.run(["ldd", store / "railhead"], capture_output=True, text=True, timeout=600, check=True).stdout
        elsewhere = [name for name, where in re.findall(r"^\s*(\S+) => (\S+)", told, re.M)
                     if not where.startswith(f"{store}/lib/")]
        self.assertLessEqual(set(elsewhere), {"libc.so.6", "libm.so.6", "libresolv.so.2"})
        self.assertTrue((store / "LICENSE").exists())
        self.assertTrue(list((store / "licenses").iterdir()))

    def test_the_same_program_gives_the_same_archive(self):
        with tarfile.open(self.archive) as archive:
            entries = archive.getmembers()
        self.assertEqual({(entry.mtime, entry.uid, entry.gid) for entry in entries}, {(0, 0, 0)})
        self.assertEqual([entry.name for entry in entries], sorted(entry.name for entry in entries))
        self.assertEqual(self.archive.read_bytes()[4:8], b"\0\0\0\0")  # gzip's time stamp

    def test_what_is_not_an_archive_of_ours_is_refused(self):
        other = self.root / "other.tar.gz"
        other.touch()
        for words, why in (
            (["--uri", "https://x", other], "other.tar.gz is not named as an archive"),
            (["--uri", "ftp://x", self.archive], "ftp://x does not begin with https://"),
        ):
            done = subprocess.run(
                list(map(str, ["/usr/bin/python3", ROOT / "tools" / "krew_manifest.py", "--homepage", "https://x", *words])),
                capture_output=True, text=True, timeout=600, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
