# SPDX-License-Identifier: Apache-2.0
"""`railhead` as a plugin of the real kubectl, and what its completion does in a real bash. No cluster."""

import os
import shlex
import subprocess
import unittest

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
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
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


if __name__ == "__main__":
    unittest.main()
