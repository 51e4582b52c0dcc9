#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""RCCL, of Debian's package, runs collectives through the network plugin's table of version 6, with emulated GPUs.

usage: rccl.py [--cuts COUNT] [SCENE]...     default: all scenes

Every element is checked. See rccl/README.md.
"""

import argparse
import pathlib
import platform
import random
import re
import shutil
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "nccl" / "stock"), str(ROOT / "tests" / "rails"), str(ROOT / "tests")]

from cases import CACHE, locked  # noqa: E402
from network import Network  # noqa: E402
from railbed.console import Console, Failure  # noqa: E402
from railbed.process import run  # noqa: E402

from job import ABORTED, CALLS, HERE as STOCK, PLUGIN, Job, compile_all, link  # noqa: E402

HERE = ROOT / "tests" / "nccl" / "rccl"
OUT = ROOT / "out" / "rccl"
PROGRAM, LIBRARIES = OUT / "rank", OUT / "lib"
SUITE, VERSION = "trixie", "5.4.3"
PACKAGES = ("librccl1", "libc6", "libstdc++6", "libgcc-s1")
FOLDER = "usr/lib/x86_64-linux-gnu"
RATES = (200, 200)  # Mbit/s
ABORT_SECONDS = 20


def package():
    """Returns the folder of RCCL and the C library that it needs: Debian's packages, unpacked, without GPU runtimes."""
    root = CACHE / f"rccl-{SUITE}-{VERSION}"
    with locked("rccl"):
        if not root.exists():
            draft = root.with_name(root.name + "-draft")
            shutil.rmtree(draft, ignore_errors=True)
            unpack = (f'cd "$1" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download {" ".join(PACKAGES)} > /dev/null && '
                      'dpkg-deb -f librccl1_*.deb Version > version && '
                      'for file in *.deb; do dpkg-deb -x "$file" . && rm "$file"; done')
            run(["mmdebstrap", "--variant=custom", f"--extract-hook={unpack}", SUITE, draft], seconds=1800)
            found = (draft / "version").read_text("ascii").strip()
            if not found.startswith(f"{VERSION}-"):
                shutil.rmtree(draft)
                raise Failure(f"Debian's RCCL is {found}, not {VERSION}",
                              advice="compare what it lays out for its kernels with tests/nccl/rccl/kernel.cc, and set VERSION")
            draft.rename(root)
    return root / FOLDER


def build():
    """Compiles the runtime that RCCL is linked to, and the program of the ranks."""
    shutil.rmtree(LIBRARIES, ignore_errors=True)
    LIBRARIES.mkdir(parents=True)
    runtime = [HERE / "hip.cc", HERE / "kernel.cc",
               *(STOCK / "cuda" / f"{name}.cc" for name in ("memory", "stream", "event", "device", "log")),
               *(STOCK / "kernels" / f"{name}.cc" for name in
                 ("primitives", "simple", "lines", "ring", "tree", "arithmetic", "functions", "layout"))]
    rank = [*sorted((STOCK / "rank").glob("*.cc")), HERE / "load.cc"]
    made = compile_all([*runtime, *rank, HERE / "smi.cc"], OUT / "objects")
    hip = LIBRARIES / "libamdhip64.so.5"
    link(hip, [made[source] for source in runtime], "-shared", f"-Wl,-soname,{hip.name}",
         f"-Wl,--version-script={HERE / 'hip.map'}")
    link(LIBRARIES / "librocm_smi64.so.1", [made[HERE / "smi.cc"]], "-shared")
    link(PROGRAM, [*(made[source] for source in rank), made[STOCK / "cuda" / "log.cc"], hip])
    # RCCL looks for librccl-net-NAME.so.
    (LIBRARIES / "librccl-net-railhead.so").symlink_to(PLUGIN)


class RcclJob(Job):
    """This RCCL does not wait for the network when a communicator is destroyed: a rank must not do so before all ranks
    have got their data."""

    def finish(self):
        self.wait_until(lambda: self.text().count("\nidle\n") == len(self.logs), "the last call")
        self.release()
        super().finish()


class Rccl:
    def __init__(self, folder, console, cuts):
        self._folder, self.console, self.cuts = folder, console, cuts

    def job(self, name, ranks, **chosen):
        self.console.note(name)
        program = [self._folder / "ld-linux-x86-64.so.2", "--library-path", f"{LIBRARIES}:{self._folder}", PROGRAM]
        # More channels are not emulated.
        return RcclJob(OUT / name, self._folder / "librccl.so.1", ranks, program=program, hold=True, NCCL_NET_PLUGIN="railhead",
                       NCCL_MIN_NCHANNELS="1", NCCL_MAX_NCHANNELS="1", **chosen)


def collectives(rccl):
    """All calls, among 2, 3 and 8 ranks."""
    for ranks, sizes in ((2, (4, 1000, 4 << 20)), (3, (4, 1000, 1 << 20)), (8, (1000, 1 << 17))):
        with rccl.job(f"ranks-{ranks}", ranks, sizes=sizes):
            pass


def types(rccl):
    for element in ("bf16", "i32"):
        with rccl.job(f"type-{element}", 3, element=element, sizes=(4, 1000, 1 << 18)):
            pass


def protocols(rccl):
    """Rings and trees in each protocol that RCCL has for this GPU."""
    for algorithm, calls in (("Ring", CALLS), ("Tree", ("allreduce", "avg", "max"))):
        for protocol in ("LL", "Simple"):
            with rccl.job(f"{algorithm}-{protocol}", 3, calls=calls, sizes=(4, 1000, 1 << 19), NCCL_ALGO=algorithm,
                          NCCL_PROTO=protocol) as job:
                pass
            used = f"runs all-reduce {algorithm.lower()} {protocol}\n"
            job.expect(used in job.text(0), f"the log has no '{used.strip()}'")


def killed(rccl):
    """A rank is killed in a collective: the others get the remote error, and can abort."""
    for ranks in (2, 3):
        with rccl.job(f"killed-{ranks}", ranks, calls=("allreduce",), sizes=(4 << 20,), rounds=None, checked=False) as job:
            job.wait_until(lambda: job.rounds() >= 2, "two rounds")
            job.kill(ranks - 1)
            begin = time.monotonic()
            for rank in range(ranks - 1):
                job.wait_for_text(rank, "asynchronous error ", ABORT_SECONDS)
                job.expect_exit(rank, ABORTED, ABORT_SECONDS)
            rccl.console.line(f"    {ranks} ranks: error and abort within {time.monotonic() - begin:.1f} s")


def cut_rails(rccl):
    """Rails are cut and repaired in mid-collective, also both at once."""
    draw = random.Random(11)
    with Network(RATES) as network, rccl.job("cut-rails", 3, calls=("allreduce", "alltoall"), sizes=(1 << 18, 1 << 20),
                                             rounds=None, network=network) as job:
        job.wait_until(lambda: job.rounds() >= 2, "two rounds")
        cuts = 0
        while cuts < rccl.cuts:
            rails = draw.sample(range(len(RATES)), draw.choice((1, 1, 2)))
            repairs = [getattr(network, draw.choice(("swallow", "reset", "unplug", "narrow")))(rail) for rail in rails]
            time.sleep(draw.uniform(0.5, 1.5))
            for repair in repairs:
                repair()
            rounds = job.rounds()
            job.wait_until(lambda: job.rounds() > rounds, "a round after the repair")
            cuts += len(rails)
        job.stop()
    lost, back = (len(re.findall(rf"rail \d \(.*: {what}", job.text())) for what in (r"lost \(", "is back"))
    job.expect(lost > 0 and back > 0, f"{lost} losses, {back} returns")
    rccl.console.line(f"    {cuts} cuts in {job.rounds()} rounds: {lost} losses, {back} returns")


SCENES = (collectives, types, protocols, killed, cut_rails)


def main():
    known = {scene.__name__: scene for scene in SCENES}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=4, help="how often rails are cut (default: 4)")
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(known))
    chosen = parser.parse_args()
    if unknown := set(chosen.scenes) - set(known):
        sys.exit(f"rccl.py: no scene is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    console = Console()
    if platform.machine() != "x86_64":
        console.line("RCCL is tested on x86-64 only")
        return 0
    failed = 0
    try:
        with console.step("compile"):
            build()
        with console.step("Debian's package"):
            folder = package()
    except Failure as failure:
        console.failed(failure)
        return 1
    for scene in [known[name] for name in chosen.scenes] or SCENES:
        try:
            with console.step(scene.__name__):
                scene(Rccl(folder, console, chosen.cuts))
        except Failure as failure:
            console.failed(failure)
            failed += 1
    console.plain(f"{len(chosen.scenes) or len(SCENES)} scenes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
