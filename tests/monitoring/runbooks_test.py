# SPDX-License-Identifier: Apache-2.0
"""The runbooks: one for each alert, with existing commands and queries only; and the troubleshooting table.

Commands are compared with the --help of the real programs: the subcommand and each flag must exist."""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import metrics
from rules import ALERTS, RECORDS, ROOT

RUNBOOKS = ROOT / "docs" / "runbooks"
TROUBLES = ROOT / "docs" / "troubleshooting.md"
PROGRAMS = {
    "railhead": ROOT / "build" / "release" / "cli" / "railhead",
    "railhead-perf": ROOT / "build" / "release" / "runtime" / "railhead-perf",
    "kubectl": shutil.which("kubectl"),
    "helm": shutil.which("helm"),
}
# Programs in the pods' images, other than this project's.
PLAIN = {"cat", "env"}
FLAG = re.compile(r"^(--[a-z][a-z-]*|-[a-zA-Z])(?:=.*)?$")


def texts():
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(RUNBOOKS.glob("Railhead*.md"))}


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)


def commands(text):
    """Yields each line of the shell blocks, and each command within a sentence."""
    for block in blocks(text, "sh"):
        yield from block.splitlines()
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    yield from (code for code in re.findall(r"`([^`]+)`", plain)
                if len(code.split()) > 1 and code.split()[0] in PROGRAMS)


def queries(text):
    """Yields each query; a line that begins with an operator belongs to the line before."""
    for block in blocks(text, "promql"):
        yield from re.sub(r"\n(?=[-+*/])", " ", block).splitlines()


@functools.cache
def help_of(program, *words):
    done = subprocess.run([PROGRAMS[program], *words, "--help"], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


@functools.cache
def global_flags():
    return subprocess.run([PROGRAMS["kubectl"], "options"], capture_output=True, text=True, timeout=300, check=False).stdout


class Runbooks(unittest.TestCase):
    def test_there_is_one_for_each_alert_and_the_list_names_it(self):
        self.assertEqual(set(texts()), set(ALERTS))
        listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (\w+) \|", (RUNBOOKS / "README.md").read_text(), re.M)
        self.assertEqual({(name, name, rule["labels"]["severity"]) for name, rule in ALERTS.items()}, set(listed))

    def test_each_says_what_it_means_how_to_find_the_cause_and_the_fix(self):
        for name, text in texts().items():
            with self.subTest(name):
                self.assertEqual(re.findall(r"^#+ .*", text, re.M), [f"# {name}", "## Find the cause", "## Fix"])
                self.assertTrue(list(commands(text)))

    def test_every_command_exists_with_its_flags(self):
        for name, text in texts().items():
            for line in commands(text):
                with self.subTest(name, command=line):
                    self.check(shlex.split(line))

    def check(self, words):
        if words[0] == "env":
            words = [word for word in words[1:] if "=" not in word]
        program, words = words[0], words[1:]
        if program in PLAIN:
            return
        self.assertIn(program, PROGRAMS)
        self.assertTrue(PROGRAMS[program] and os.access(PROGRAMS[program], os.X_OK), f"{program} is not built")
        if "--" in words:
            self.check(words[words.index("--") + 1:])
            words = words[:words.index("--")]
        verbs, known = self.subcommand(program, words)
        code, text = help_of(program, *verbs)
        self.assertEqual(code, 0, text)
        if program == "kubectl":
            text += global_flags()
        for word in words:
            flag = FLAG.match(word)
            if flag:
                self.assertRegex(text, rf"(?m)(^|[\s,]){re.escape(flag[1])}\b", f"{program} {verbs} has no {flag[1]}")
        self.assertTrue(known, f"{program} has no subcommand in {words}")

    @staticmethod
    def subcommand(program, words):
        """Returns the verbs at the beginning of a command line, after global flags with their values."""
        rest = list(words)
        while rest and rest[0].startswith("-") and program in ("kubectl", "helm"):
            rest = rest[2:] if "=" not in rest[0] else rest[1:]
        verbs = []
        while rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            code, text = help_of(program, *verbs)
            if not re.search(rf"(?m)^\s+{re.escape(rest[0])}(,|:)?\s", text):
                break
            verbs.append(rest.pop(0))
        return verbs, bool(verbs) or program == "railhead-perf"

    def test_every_query_is_one_that_prometheus_reads_and_asks_for_what_there_is(self):
        known = metrics.served() | set(RECORDS)
        rules = []
        for name, text in texts().items():
            for query in queries(text):
                with self.subTest(name, query=query):
                    self.assertTrue(metrics.used(query))
                    self.assertLessEqual(metrics.used(query), known)
                rules.append({"record": f"q:{len(rules)}", "expr": query})
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True,
                                  timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_links_lead_somewhere(self):
        for path in (*RUNBOOKS.glob("*.md"), TROUBLES):
            for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
                self.assertTrue((path.parent / link).exists(), f"{path.name}: {link}")


class Troubles(unittest.TestCase):
    """docs/troubleshooting.md: each row names existing checks of the doctor, findings, alerts and commands."""

    def rows(self):
        lines = TROUBLES.read_text(encoding="utf-8").splitlines()
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]

    def test_every_line_leads_somewhere(self):
        rows = self.rows()
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertEqual(len(row), 4, row)
            self.assertTrue(row[3], row)

    def test_the_checks_are_the_doctors(self):
        _, text = help_of("railhead", "doctor")
        checks = set(re.findall(r"^  ([a-z]+) +\S", text.partition("Checks:")[2], re.M))
        self.assertIn("gpudirect", checks)
        named = {check for row in self.rows() for check in re.findall(r"`([a-z]+)`", row[1])}
        self.assertLessEqual(named, checks)
        # Checks of the program itself, and of enabled features.
        self.assertLessEqual(checks - named, {"api", "rights", "install", "leader", "profiles"})

    def test_the_findings_are_the_operators(self):
        source = (ROOT / "operator" / "verdict" / "reasons.cc").read_text(encoding="utf-8")
        for row in self.rows():
            for reason in re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", row[1].replace("GPUs", "")):
                self.assertIn(f'"{reason}"', source)

    def test_the_alerts_are_the_charts(self):
        named = [alert for row in self.rows() for alert in row[2].split(", ") if alert]
        self.assertLessEqual(set(named), set(ALERTS))
        # Alerts without a row in the table; their runbooks describe the fix.
        self.assertLessEqual(set(ALERTS) - set(named), {"RailheadJobFinding", "RailheadNoLeader"})

    def test_the_commands_exist(self):
        for row in self.rows():
            for command in re.findall(r"`([^`]+)`", row[3]):
                words = shlex.split(command)
                if words[0] in PROGRAMS and len(words) > 1:
                    with self.subTest(command):
                        Runbooks("check").check(words)


if __name__ == "__main__":
    unittest.main()
