#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that files which Markdown texts name exist.

usage: tools/docs.py

Links are relative to their text. A name in backticks that looks like a source file ("draft.h",
"rails/peer.h") must be the end of a path in the repository. Exits with 1 and a line for each that is not.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`([\w./-]+\.(?:h|cc|py|sh|cmake|proto))`")


def listed(*patterns):
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).exists()]


def main():
    ends = set()  # all ends of all paths
    for name in listed():
        parts = name.split("/")
        ends.update("/".join(parts[begin:]) for begin in range(len(parts)))
    wrong, texts = [], listed("*.md")
    for name in texts:
        path = ROOT / name
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            missing = [target for target in LINK.findall(line)
                       if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists()]
            missing += [source for source in SOURCE.findall(line) if source.lstrip("./") not in ends]
            wrong += [f"{name}:{number}: {target} does not exist" for target in missing]
    print("\n".join(wrong) if wrong else f"docs: {len(texts)} texts name files that exist")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
