# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the C++ of this checkout, one process for each core, only on changed files.

Tests are not checked, only compiled with warnings: GoogleTest's macros make them slow to check, and noisy.

usage: tools/tidy.py BUILD_DIR CLANG_TIDY [--write-stamps]
       BUILD_DIR holds a configured, non-unity CMake build whose generated headers exist

A file's stamp is a hash of everything that its findings depend on: the configuration, clang-tidy's version, the
file's preprocessor definitions and the code of each header of this repository that it includes, directly or not.
Comments do not count, except those that clang-tidy reads (NOLINT, namespaces); nor does where in its component a file
is, so that a moved one is not checked again: no check that is enabled depends on paths or include guards, and findings
in headers only on the component (HeaderFilterRegex). Stamps of clean files are in two places: tools/tidy-clean.txt, which is part of the checkout, so that a new machine checks only files affected by a
change; and the cache. Only --write-stamps writes tools/tidy-clean.txt.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAMPS = ROOT / "tools" / "tidy-clean.txt"
HEADER = """\
# Files without findings of clang-tidy: a hash of their content, headers and configuration, and the
# path. tools/tidy.py reads it; `make lint-stamps` writes it. After a merge conflict run that.
"""
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
# A string, which may contain text like a comment; or a comment to the end of the line, with its line if it is alone.
STRING_OR_COMMENT = re.compile(rb'"(?:\\.|[^"\\\n])*"|^[ \t]*//(?![^\n]*(?:NOLINT|namespace))[^\n]*\n|'
                               rb'[ \t]*//(?![^\n]*(?:NOLINT|namespace))[^\n]*|/\*(?:(?!NOLINT)(?s:.))*?\*/',
                               re.MULTILINE)
# What depends on where a file is: its guard, and how others include it.
OF_PLACE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"[^"\n]*"[ \t]*\n|^#(?:ifndef|define) RAILHEAD_\w+_H_[ \t]*\n',
                      re.MULTILINE)
GENERATED = re.compile(r"(\.grpc)?\.pb\.h$")
PROGRESS_SECONDS = 10
# The analyzer's limit on program states for each function is 225,000 by default. With a tenth, the slowest file takes
# 12 CPU seconds in place of 53, most files hardly less.
ANALYZER = tuple(f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"))


class Sources:
    """The repository's files: their hashes, and the files that each includes."""

    def __init__(self):
        self._seen = {}

    def _read(self, path):
        """Returns (hash, [included files of this repository]) of a file."""
        if path not in self._seen:
            data = path.read_bytes()
            included = [self._find(path, name)
                        for name in INCLUDE.findall(data.decode("utf-8", "replace"))]
            code = STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][:1] == b'"' else b"", data)
            code = OF_PLACE.sub(b"", code)
            self._seen[path] = hashlib.sha256(code).hexdigest(), [p for p in included if p]
        return self._seen[path]

    @staticmethod
    def _find(path, name):
        # For a generated header, use the file from which it is generated.
        name = GENERATED.sub(".proto", name)
        for folder in (ROOT, path.parent, ROOT / "runtime" / "include"):
            if (folder / name).is_file():
                return (folder / name).resolve()
        return None  # a system header

    def closure(self, path):
        """Returns {path: hash} of a file and all files that it includes."""
        found, waiting = {}, [path]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found[path], included = self._read(path)
                waiting += included
        return found


def version():
    """The pinned version of clang-tidy."""
    text = (ROOT / "tools" / "requirements-lint.txt").read_text("ascii")
    return re.search(r"^clang-tidy==\S+$", text, re.MULTILINE)[0]


def stamp(entry, sources):
    """Returns the hash of everything that a file's findings depend on."""
    definitions = sorted(w.replace(str(ROOT), "") for w in entry["command"].split()
                         if w.startswith("-D"))
    parts = [version(), (ROOT / ".clang-tidy").read_text("utf-8"), *definitions]
    closure = sources.closure(pathlib.Path(entry["file"]))
    parts += sorted(f"{path.relative_to(ROOT).parts[0]} {digest}" for path, digest in closure.items())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def entries(build):
    """Returns the compile commands to check: one for each file of this repository that is not a test."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text("utf-8")):
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(build) or not source.is_relative_to(ROOT):
            continue  # generated
        parts = source.relative_to(ROOT).parts
        if source.name.endswith("_test.cc") or "testing" in parts or parts[0] == "tests":
            continue
        # A file that belongs to several programs is checked as part of the first.
        found.setdefault(source.relative_to(ROOT).as_posix(), entry)
    return found


def committed():
    """{path: stamp} of tools/tidy-clean.txt."""
    if not STAMPS.exists():
        return {}
    lines = [line.split() for line in STAMPS.read_text("utf-8").splitlines()]
    return {words[1]: words[0] for words in lines if len(words) == 2}


def check(work, clang_tidy, commands, cache):
    """Runs clang-tidy over [(path, stamp)]; returns the paths with findings, which it prints."""
    begin = spoken = time.monotonic()

    def tidy(item):
        done = subprocess.run([clang_tidy, "--quiet", *ANALYZER, "-p", commands, ROOT / item[0]], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode == 0:
            (cache / item[1]).touch()
        return item[0], done

    bad = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            running = [pool.submit(tidy, item) for item in work]
            for count, future in enumerate(concurrent.futures.as_completed(running), 1):
                name, done = future.result()
                if done.returncode != 0:
                    bad.append(name)
                    print(done.stdout, done.stderr, sep="\n", flush=True)
                now = time.monotonic()
                if now - spoken > PROGRESS_SECONDS or count == len(work):
                    spoken = now
                    left = (now - begin) / count * (len(work) - count)
                    print(f"clang-tidy [{count}/{len(work)}] {now - begin:.0f} s, about {left:.0f} s left",
                          flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # running checks finish and are recorded
            raise
    return bad


def main():
    words = [word for word in sys.argv[1:] if word != "--write-stamps"]
    write_stamps = len(words) < len(sys.argv) - 1
    build, clang_tidy = pathlib.Path(words[0]).resolve(), words[1]
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(base) / "railhead") / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    files = entries(build)
    sources = Sources()
    stamps = {name: stamp(entry, sources) for name, entry in files.items()}
    known = committed()
    work = [(name, value) for name, value in sorted(stamps.items())
            if known.get(name) != value and not (cache / value).exists()]
    commands = build / "tidy"
    commands.mkdir(exist_ok=True)
    (commands / "compile_commands.json").write_text(json.dumps(list(files.values())))
    bad = check(work, clang_tidy, commands, cache)
    clean = {name: value for name, value in stamps.items() if name not in bad}
    print(f"clang-tidy: {len(files)} files, {len(work)} checked, {len(bad)} with findings")
    if write_stamps:
        lines = [f"{value} {name}\n" for name, value in sorted(clean.items())]
        STAMPS.write_text(HEADER + "".join(lines), "utf-8")
        print(f"{STAMPS.relative_to(ROOT)}: {len(lines)} stamps; commit it with your change")
    else:
        stale = sum(known.get(name) != value for name, value in clean.items())
        if stale:
            print(f"{stale} clean files have no stamp in {STAMPS.relative_to(ROOT)}: run "
                  "`make lint-stamps` and commit it, so that other machines need not check them")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
