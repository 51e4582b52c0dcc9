#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the repository is divided: size, folders that include each other, and rooms that a reader enters.

A room is a header with its .cc. Prints:

- Production lines and files of each top-level folder: C, C++, CUDA, Go and Python without tests, fuzz tests,
  benchmarks, fakes and generated files.
- Circles: folders of one top-level folder that include each other, directly or over others. Its own root counts as a
  folder.
- Walks: rooms on the way of one piece of data through the code. Each tools/walks/NAME.txt lists a file of each room,
  in the order of the walk.
- Names of headers that exist twice.

A listed file that does not exist is an error: a move updates the lists. Exits with 1 on an error.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("*.cc", "*.h", "*.c", "*.cpp", "*.hpp", "*.cu", "*.go", "*.py")
NOT_PRODUCTION = re.compile(r"(^|/)(tests?|testing|testdata|bench|fuzz)/|(^|/)(fake|test)_|_(test|fuzz|bench|for_test)\.")
INCLUDE = re.compile(r'^\s*#\s*include "([\w-]+/[^"]+)"', re.MULTILINE)


def production(root):
    """Returns the names of the production files."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *SOURCES], cwd=root,
                          capture_output=True, text=True, check=True)
    return sorted(name for name in set(done.stdout.splitlines())
                  if not NOT_PRODUCTION.search(name) and (root / name).exists())


def lines(root, names):
    """Returns {top-level folder: {"files": number, "lines": number}}, the largest folder first."""
    sizes = collections.defaultdict(lambda: {"files": 0, "lines": 0})
    for name in names:
        size = sizes[name.split("/")[0]]
        size["files"] += 1
        size["lines"] += (root / name).read_bytes().count(b"\n")
    return dict(sorted(sizes.items(), key=lambda one: -one[1]["lines"]))


def arrows(root, names):
    """Returns {(folder, folder that it includes): files that do} among the folders of each top-level folder."""
    found = collections.defaultdict(list)
    for name in names:
        folder, top = str(pathlib.PurePosixPath(name).parent), name.split("/")[0]
        for included in INCLUDE.findall((root / name).read_text("utf-8")):
            other = str(pathlib.PurePosixPath(included).parent)
            if included.split("/")[0] == top and other != folder:
                found[folder, other].append(name)
    return {edge: list(dict.fromkeys(files)) for edge, files in found.items()}


def circles(edges):
    """Returns the sets of folders that reach each other, each as a sorted list."""
    after = collections.defaultdict(set)
    for folder, other in edges:
        after[folder].add(other)

    def reached(folder):
        seen, waiting = set(), [folder]
        while waiting:
            new = after[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {folder: reached(folder) for folder in list(after)}
    return sorted({tuple(sorted(other for other in reach[folder] if folder in reach.get(other, ())))
                   for folder in reach if folder in reach[folder]})


def inside(circle, edges):
    """Returns a text for each arrow of a circle, those of the fewest files first: they are the ones to turn."""
    found = [(len(files), edge, files[0]) for edge, files in edges.items() if set(edge) <= set(circle)]
    return [f"{folder} -> {other}: {count} file{'s' * (count != 1)}, {'as ' * (count != 1)}{name}"
            for count, (folder, other), name in sorted(found)]


def rooms(root, listing):
    """Returns the rooms that a list names, in order. Raises FileNotFoundError for a file that does not exist."""
    found = []
    for number, line in enumerate(listing.read_text("utf-8").splitlines(), 1):
        name = line.split("#")[0].strip()
        if not name:
            continue
        if not (root / name).is_file():
            raise FileNotFoundError(f"{listing}:{number}: {name} does not exist; update the list if it has moved")
        found.append(name.rsplit(".", 1)[0])
    return list(dict.fromkeys(found))


def twice(names):
    """Returns {name of a header: its paths} for names that exist more than once."""
    paths = collections.defaultdict(list)
    for name in names:
        if name.endswith((".h", ".hpp")):
            paths[name.rsplit("/", 1)[-1]].append(name)
    return {name: found for name, found in sorted(paths.items()) if len(found) > 1}


def measure(root, walks):
    names = production(root)
    edges = arrows(root, names)
    return {
        "lines": lines(root, names),
        "arrows": dict(sorted(collections.Counter(folder.split("/")[0] for folder, _ in edges).items())),
        "circles": [{"folders": list(circle), "arrows": inside(circle, edges)} for circle in circles(edges)],
        "walks": {path.stem: rooms(root, path) for path in sorted(walks.glob("*.txt"))},
        "twice": twice(names),
    }


def text(found):
    """Returns the figures for people."""
    total = {key: sum(size[key] for size in found["lines"].values()) for key in ("files", "lines")}
    out = [f"production: {total['lines']} lines in {total['files']} files"]
    out += [f"  {folder:<14} {size['lines']:>7} lines {size['files']:>5} files {found['arrows'].get(folder, 0):>4} arrows"
            for folder, size in found["lines"].items()]
    out.append(f"circles of folders: {len(found['circles'])}")
    for circle in found["circles"]:
        out += ["  " + ", ".join(circle["folders"]), *("    " + arrow for arrow in circle["arrows"])]
    out.append("rooms of a walk:")
    out += [f"  {name:<28} {len(walk):>3}" for name, walk in found["walks"].items()]
    out.append(f"names of headers that exist twice: {len(found['twice'])}")
    out += [f"  {name}: {', '.join(paths)}" for name, paths in found["twice"].items()]
    return "\n".join(out)


def main(words=None, root=ROOT, walks=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format (default: text)")
    format_of = {"text": text, "json": lambda found: json.dumps(found, indent=2)}[parser.parse_args(words).output]
    try:
        print(format_of(measure(root, walks or root / "tools" / "walks")))
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
