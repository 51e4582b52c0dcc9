# SPDX-License-Identifier: Apache-2.0
"""The image of the measuring pods: Debian with Open MPI and UCX, and the loop for both libraries."""

import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("testbed", "bench/peers", "rails", "e2e")]

import candidates  # noqa: E402
import job  # noqa: E402
from railbed.cluster import cache  # noqa: E402
from railbed.image import layer_of, write_image  # noqa: E402
from railbed.process import run  # noqa: E402

NAME = "docker.io/railhead/bench:local"
# The library needs the packages of the runtime image.
PACKAGES = ("openmpi-bin", "socat", *(line for line in (ROOT / "images/runtime/packages.txt").read_text().split("\n")
                                      if line and not line.startswith("#")))
# Replaces ssh for mpirun: the command goes to a shell that each pod serves on this port. Only for a testbed in a
# private network.
PORT = 2222
AGENT = f"""#!/bin/sh
host=$1
shift
as_root="OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
# The daemon closes its output, which socat takes for its end: that is the shell's, not the daemon's.
echo "env $as_root $* > /dev/null 2>&1" | exec socat -t 86400 - "TCP:$host:{PORT}"
"""
SERVER = f"exec socat TCP-LISTEN:{PORT},fork,reuseaddr EXEC:/bin/sh"


def make(folder):
    """Builds the image in `folder`; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    candidates.build()
    job.build(folder)
    library = next(candidates.RELEASE.glob("librailhead.so.?"))
    programs = {"bench/openmpi": candidates.OUT / "openmpi", "bench/probe": folder / "probe",
                "bench/railhead": candidates.OUT / "railhead", f"bench/{library.name}": library}
    files = {path: source.read_bytes() for path, source in programs.items()}
    files["bench/agent"] = AGENT.encode()
    return write_image(folder / "bench.tar", NAME, [_debian(), layer_of(files)])


def _debian():
    """Returns Debian's root with PACKAGES, made once."""
    key = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:16]
    root = cache() / f"bench-debian-{key}.tar"
    if not root.exists():
        part = root.with_suffix(".part")
        run(["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", "--include=" + ",".join(PACKAGES),
             "--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/doc/*",
             "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
             "bookworm", part], seconds=1200)
        part.rename(root)
    return root
