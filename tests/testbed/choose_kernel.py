#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Chooses the kernel of the nodes from what a Debian archive holds.

usage: apt-cache madison $(apt-cache pkgnames linux-) | tests/testbed/choose_kernel.py amd64

An archive changes package by package: for hours or days, it may hold a kernel's image in one version and its headers
or its source in another. Prints one line: the newest kernel for which everything that a module needs can be fetched,
its version, and the packages with which modules are built. If no kernel has all of it, the line ends after the newest
kernel's version, and stderr says what is missing.
"""

import functools
import re
import subprocess
import sys


@functools.cmp_to_key
def by_version(a, b):
    """Debian's order, in which 6.1.0~rc1 comes before 6.1.0."""
    if a == b:
        return 0
    return -1 if subprocess.run(["dpkg", "--compare-versions", a, "lt", b], check=False).returncode == 0 else 1


def available(madison):
    """Returns {package: versions} of lines such as `linux-kbuild-6.1 | 6.1.192-3 | http://... Packages`."""
    found = {}
    for line in madison.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) == 3 and words[2].endswith(" Packages"):
            found.setdefault(words[0], set()).add(words[1])
    return found


def build_packages(found, kernel, version):
    """Returns (`name=version` of what builds modules for this kernel, names of what the archive lacks for it)."""
    series = re.match(r"\d+\.\d+", kernel)[0]
    flavour = kernel.rsplit("-", 1)[0]
    packages, missing = [], []
    # Declarations and code must be those of the kernel. Programs of the build only compile them.
    for name in (f"linux-headers-{kernel}", f"linux-headers-{flavour}-common", f"linux-source-{series}"):
        (packages if version in found.get(name, ()) else missing).append(f"{name}={version}")
    programs = f"linux-kbuild-{series}"
    versions = found.get(programs, set())
    if not versions:
        missing.append(programs)
    else:
        same = version if version in versions else max(versions, key=by_version)
        packages.append(f"{programs}={same}")
    return packages, missing


def choose(found, architecture):
    """Returns (kernel, version, packages, missing), or None if there is no image."""
    # Kernels of other series, from backports, have names such as 6.12.117+deb12-amd64.
    image = re.compile(rf"linux-image-(\d+\.\d+\.\d+-\d+-{re.escape(architecture)})")
    kernels = [(version, match[1]) for name, versions in found.items() if (match := image.fullmatch(name))
               for version in versions]
    kernels.sort(key=lambda kernel: (by_version(kernel[0]), kernel[1]), reverse=True)
    for version, kernel in kernels:
        packages, missing = build_packages(found, kernel, version)
        if not missing:
            return kernel, version, packages, []
    if not kernels:
        return None
    version, kernel = kernels[0]
    return kernel, version, [], build_packages(found, kernel, version)[1]


def main():
    chosen = choose(available(sys.stdin.read()), sys.argv[1])
    if chosen is None:
        return f"error: the archive has no linux-image-VERSION-{sys.argv[1]}: see that apt-get update works"
    kernel, version, packages, missing = chosen
    if missing:
        print(f"the archive has no {', '.join(missing)}, with which modules for {kernel} would be built",
              file=sys.stderr)
    print(kernel, version, *packages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
