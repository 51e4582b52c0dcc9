#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packs `railhead` for users' machines: the program, the libraries that it needs except those of the C library, and
their licences. The same program gives an identical archive.

usage: tools/cli_archive.py OUT_DIR     after a release build; prints the archive's path. Needs binutils and dpkg
"""

import gzip
import io
import pathlib
import platform
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "cli" / "railhead"
# Libraries of the system's C library. They must have the loader's version, so the archive does not contain them.
GLIBC = re.compile(r"(libc|libm|libresolv|libpthread|libdl|librt)\.so\.|ld-linux|linux-vdso")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def version():
    return re.search(r"project\(railhead VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def libraries(program):
    """Returns {name: path} of the libraries that go into the archive."""
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", program), re.M))
    return {name: pathlib.Path(path).resolve() for name, path in found.items() if not GLIBC.match(name)}


def licences(paths):
    """Returns {package: path of its copyright file} for the packages that own these files."""
    owners = output("dpkg", "-S", *(f"*/{path.name}" for path in paths))
    packages = {line.split(":")[0] for line in owners.splitlines()
                if pathlib.Path(line.rpartition(": ")[2]).resolve() in paths}
    return {package: pathlib.Path(f"/usr/share/doc/{package}/copyright") for package in packages}


def glibc(paths):
    """Returns the oldest version of glibc that has all symbols these files require."""
    asked = re.findall(r"\(GLIBC_([\d.]+)\)", output("objdump", "-T", *paths))
    return max((tuple(map(int, text.split("."))) for text in asked), default=(0,))


def pack(out):
    found = libraries(PROGRAM)
    files = {"railhead": PROGRAM, "LICENSE": ROOT / "LICENSE"}
    files |= {f"lib/{name}": path for name, path in found.items()}
    files |= {f"licenses/{package}": path for package, path in licences(set(found.values())).items()}
    oldest = ".".join(map(str, glibc([PROGRAM, *found.values()])))
    contents = {name: path.read_bytes() for name, path in files.items()}
    contents["NEEDS"] = f"glibc {oldest}\n".encode()
    stem = f"railhead-cli-{version()}-linux-{ARCHITECTURES[platform.machine()]}"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{stem}.tar.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped, \
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(contents):
            entry = tarfile.TarInfo(name)
            entry.size = len(contents[name])
            entry.mode = 0o755 if name == "railhead" or name.startswith("lib/") else 0o644
            archive.addfile(entry, io.BytesIO(contents[name]))
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if not PROGRAM.exists():
        sys.exit(f"tools/cli_archive.py: {PROGRAM} is missing: run make build")
    print(pack(pathlib.Path(sys.argv[1])))
