#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks documents and includes:

- Files that Markdown texts name exist, and so do the unit tests that the threat model names.
- Folders include only what ARCHITECTURE.md permits, and those of one component do not include each other.
- Comments of headers are plain English.

usage: tools/docs.py

Links are relative to their document. A name in backticks that looks like a source file ("draft.h", "rails/peer.h")
must be the end of a path in the repository. Comments in headers of the folders in PLAIN must not match a pattern of
HABITS. A folder's row in the table of components ("| `cli/` | contents | `base` |") lists the folders and files that
it may include besides its own. A name in backticks such as "TcpTest.AFullWire" is a test; a name that ends in "*", or
a suite alone, stands for all its tests. Folders of one component, its own among them, must not include each other,
directly or over others; CIRCLES lists those that still do. Prints a line for each violation, and then exits with 1.
"""

import pathlib
import re
import subprocess
import sys

import house

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`([\w./-]+\.(?:h|cc|py|sh|cmake|proto))`")
COMPONENT = re.compile(r"\| `([\w-]+)/` \|.*\|(.*\S.*)\|$", re.MULTILINE)
NAMED_TEST = re.compile(r"`([A-Z]\w+Tests?)(?:\.(\w+)\*?)?`")
DEFINED_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P)\((\w+),\s*(\w+)\)", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([\w-]+/[^"]+)"', re.MULTILINE)
PLAIN = re.compile(r"(kube|fabric|device-plugin|runtime/(base|bootstrap|collectives|comm|config|device|metrics|net|perf|preflight|"
                   r"rails|recorder|reduce|shm|transfers|transport|tuner)|placement|jobs|operator|cli)/(?!.*testing/).*\.h$")
HABITS = (
    (re.compile(r"^//+ *(Who|Whoever|Where|Of) "), "name the subject first"),
    (re.compile(r"\b(is|are|was|were) told\b"), "programs report, log or request"),
    (re.compile(r"\b[Ss]o many\b"), "name the number"),
    (re.compile(r"\b([Nn]obody|[Ss]omebody|[Ww]hoever)\b"), "name the actor"),
    (re.compile(r"(?<![Tt]here )\b(is|are) no (?!longer\b)[a-z]"), 'write "is not a ..."'),
    (re.compile(r"\bturn(s|ed)? (\w+ )?away\b|\b[Ss]trangers?\b"), "a connection is rejected"),
)

# Wires of transport/ get their connections from connect/, which waits for them as links do (link_waits.h).
CIRCLES = {("runtime/transport", "runtime/transport/connect")}


def listed(*patterns):
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).exists()]


def habits(name):
    """Returns a line for each comment of a header that matches HABITS."""
    for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1):
        comment = line[line.find("//"):].strip() if "//" in line else ""
        for habit, advice in HABITS:
            found = habit.search(comment)
            if found:
                yield f'{name}:{number}: "{found.group(0).strip("/ ")}" in a comment: {advice}'


def directions():
    """Returns a line for each include that the table of components in ARCHITECTURE.md does not permit."""
    folders = dict(COMPONENT.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8")))
    for folder, listing in folders.items():
        permitted = (folder + "/", *(name if name.endswith(".h") else name + "/" for name in re.findall(r"`(.+?)`", listing)))
        for name in listed(f"{folder}/*.h", f"{folder}/*.cc"):
            for included in INCLUDE.findall((ROOT / name).read_text("utf-8")):
                if included.split("/")[0] in folders and not included.startswith(permitted):
                    yield f"{name}: {included} is not among what {folder}/ depends on in ARCHITECTURE.md"


def circles(root=ROOT, known=frozenset(CIRCLES)):
    """Returns a line for each circle of folders, and for each known one that does not exist any longer."""
    edges = house.arrows(root, house.production(root))
    found = set(house.circles(edges))
    for circle in sorted(found - known):
        yield f"{', '.join(circle)}: folders include each other: {'; '.join(house.inside(circle, edges))}"
    for circle in sorted(known - found):
        yield f"tools/docs.py: {', '.join(circle)}: no longer include each other; remove them from CIRCLES"


def tests():
    """Returns a line for each unit test that THREAT_MODEL.md names and that does not exist."""
    defined = {}
    for name in listed("*_test.cc"):
        for suite, test in DEFINED_TEST.findall((ROOT / name).read_text("utf-8")):
            defined.setdefault(suite, []).append(test)
    for suite, test in NAMED_TEST.findall((ROOT / "THREAT_MODEL.md").read_text("utf-8")):
        if not any(name.startswith(test) for name in defined.get(suite, [])):
            yield f"THREAT_MODEL.md: there is no test {suite}.{test or '*'}"


def main():
    ends = set()  # all ends of all paths
    for name in listed():
        parts = name.split("/")
        ends.update("/".join(parts[begin:]) for begin in range(len(parts)))
    wrong, texts = [*directions(), *circles(), *tests()], listed("*.md")
    for name in texts:
        path = ROOT / name
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            missing = [target for target in LINK.findall(line)
                       if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists()]
            missing += [source for source in SOURCE.findall(line) if source.lstrip("./") not in ends]
            wrong += [f"{name}:{number}: {target} does not exist" for target in missing]
    for name in filter(PLAIN.match, listed("*.h")):
        wrong += habits(name)
    print("\n".join(wrong) if wrong else f"docs: {len(texts)} texts name files that exist")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
