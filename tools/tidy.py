# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the C++ of this checkout, one for each core, and only where something changed.

Tests are left to the compiler's warnings: GoogleTest's macros make them slow to check, and noisy.

usage: tools/tidy.py BUILD_DIR CLANG_TIDY     BUILD_DIR holds a finished Ninja build

A file that passed is remembered in the cache by a hash of its command, of the configuration and of
everything of ours that it includes (Ninja knows that from the compiler).
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def dependencies(build):
    """{object file: [files it was made of]}, from Ninja's log."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, text=True,
                          capture_output=True).stdout
    found, current = {}, []
    for line in text.splitlines():
        if line and not line[0].isspace() and ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
        elif line.startswith(" "):
            current.append(line.strip())
    return found


def key(entry, files, build):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update((ROOT / "tools" / "requirements-lint.txt").read_bytes())
    digest.update(entry["command"].replace(str(build), "").replace(str(ROOT), "").encode())
    for name in sorted(files):
        path = (build / name).resolve()
        if path.is_relative_to(ROOT) and path.exists():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def main():
    build, clang_tidy = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(base) / "railhead") / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    deps = dependencies(build)
    # A file that several programs are made of (tests/fuzz/replay_main.cc) is checked as part of one:
    # clang-tidy would check it once for each, and we would ask it to for each.
    entries = {entry["file"]: entry
               for entry in reversed(json.loads((build / "compile_commands.json").read_text()))}
    commands = build / "tidy"
    commands.mkdir(exist_ok=True)
    (commands / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    work = []
    for entry in entries.values():
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(build) or not source.is_relative_to(ROOT):
            continue  # generated
        if source.name.endswith("_test.cc") or "testing" in source.parts:
            continue
        words = entry["command"].split()
        made = words[words.index("-o") + 1]
        stamp = cache / key(entry, deps.get(made, []), build)
        if not stamp.exists():
            work.append((source, stamp))
    begin = spoken = time.monotonic()

    def tidy(item):
        source, stamp = item
        done = subprocess.run([clang_tidy, "--quiet", "-p", commands, source], text=True,
                              capture_output=True)
        if done.returncode == 0:
            stamp.touch()
        return source, done

    bad = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for i, (source, done) in enumerate(pool.map(tidy, work), 1):
            if done.returncode != 0:
                bad.append(source)
                print(done.stdout, done.stderr, sep="\n", flush=True)
            if time.monotonic() - spoken > 10:
                spoken = time.monotonic()
                print(f"    clang-tidy: {i} of {len(work)} ({spoken - begin:.0f} s)", flush=True)
    print(f"clang-tidy: {len(work)} files checked, {len(bad)} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
