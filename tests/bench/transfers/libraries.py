# SPDX-License-Identifier: Apache-2.0
"""The compared libraries: how each program is built and started."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))

import candidates  # noqa: E402
from candidates import OUT, ROOT  # noqa: E402
from railbed.console import Failure  # noqa: E402
from railbed.process import run  # noqa: E402
from transfer_tables import C_API, LIBMPI, MPICH, OPEN_MPI, WHEEL  # noqa: E402

sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "frameworks")]

RANKS = 2
TRANSPORTS = {"memory": "shm", "tcp": "tcp"}  # as RAILHEAD_TRANSPORT names them
TORCH_MINOR = "2.15"
MPI_PROGRAM, MPICH_PROGRAM, RAILHEAD_PROGRAM = (OUT / f"transfers-{name}" for name in ("mpi", "mpich", "railhead"))
NEEDS = "tools/install-needs.sh bench"


@dataclasses.dataclass(frozen=True)
class Library:
    name: str
    transport: str
    start: object   # function (prefix, arguments) -> standard output of rank 0; the prefix is the condition's
    reports: str    # a regular expression for what rank 0 must report as its library
    rows: tuple = ()  # backends, if the program measures several


def railhead(name, program, transport, folders, reports):
    """Returns a library that the program loads from these folders."""
    path = ":".join(map(str, folders))

    def start(prefix, arguments):
        return candidates.ranks_of_one_job([*prefix, program, *arguments], RANKS, f"transfers-{transport}",
                                           candidates.job(TRANSPORTS[transport]) | {"LD_LIBRARY_PATH": path})
    return Library(name, transport, start, reports)


def capi(name, transport, folder):
    return railhead(name, RAILHEAD_PROGRAM, transport, [folder], rf"^Railhead [0-9.]+ over {TRANSPORTS[transport]}$")


def open_mpi(transport):
    # pml ob1 is the one that uses btl; Open MPI may prefer others on a machine with RDMA devices.
    more = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self") if transport == "tcp" else ()

    def start(prefix, arguments):
        return run([*prefix, "mpirun.openmpi", "--oversubscribe", *more, "-np", RANKS, MPI_PROGRAM, *arguments],
                   env=os.environ | candidates.OPEN_MPI, seconds=candidates.RUN_SECONDS,
                   log=OUT / "transfers-openmpi.log").stdout
    return Library(OPEN_MPI, transport, start, r"^Open MPI v[0-9.]+$")


def mpich():
    def start(prefix, arguments):
        return run([*prefix, "mpirun.mpich", "-launcher", "fork", "-iface", "lo", "-np", RANKS, MPICH_PROGRAM,
                    *arguments], seconds=candidates.RUN_SECONDS, log=OUT / "transfers-mpich.log").stdout
    return Library(MPICH, "memory", start, r"^MPICH Version: [0-9.]+$")


def torch(environment, transport, python, backends):
    """Returns torch's backends, in the same processes. `environment` has the wheel."""
    def start(prefix, arguments):
        argv = [*prefix, python, HERE / "torch_pingpong.py", ",".join(backends), *arguments]
        return candidates.ranks_of_one_job(argv, RANKS, f"transfers-torch-{transport}",
                                           environment | candidates.job(TRANSPORTS[transport]))
    return Library("torch", transport, start, r"^torch 2\.[0-9.]+", tuple(f"torch, {name}" for name in backends))


def has_wheel():
    return any((ROOT / "out" / "wheel").glob("railhead-*.whl"))


def compile_with(compiler, endpoint, program, *more):
    run([compiler, *candidates.COMPILE, HERE / "pingpong.c", HERE / endpoint, "-o", program, *more])


def build(parts, names, release):
    """Compiles what the parts need and returns their libraries, in the order of turns. `names` are the libraries that
    are wanted in memory and over TCP; `release` is the build's folder. MPICH is left out where it is not installed."""
    OUT.mkdir(parents=True, exist_ok=True)
    transports = [transport for transport in TRANSPORTS if transport in parts]
    wanted = set(names if transports else ()) | ({C_API} if "torch" in parts else set())
    runtime, mpi = release / "runtime", release / "mpi"
    for path, users in ((runtime / "librailhead.so.0", {C_API, LIBMPI}), (mpi / "libmpi.so.40", {LIBMPI})):
        if wanted & users and not path.exists():
            raise Failure(f"there is no {path}: run `make build`, or name another build with --build")
    if C_API in wanted:
        compile_with("cc", "endpoint_railhead.c", RAILHEAD_PROGRAM, f"-I{ROOT / 'runtime' / 'include'}", f"-L{runtime}",
                     "-lrailhead")
    if wanted & {LIBMPI, OPEN_MPI}:
        if not shutil.which("mpicc.openmpi"):
            raise Failure(f"Open MPI's compiler wrapper is not installed: run `{NEEDS}`")
        compile_with("mpicc.openmpi", "endpoint_mpi.c", MPI_PROGRAM)
    has_mpich = MPICH in wanted and shutil.which("mpicc.mpich") is not None
    if has_mpich:
        compile_with("mpicc.mpich", "endpoint_mpi.c", MPICH_PROGRAM)

    found = []
    for transport in transports:
        found += [capi(C_API, transport, runtime),
                  railhead(LIBMPI, MPI_PROGRAM, transport, [mpi, runtime], r"served by Railhead [0-9.]+$"),
                  open_mpi(transport), *([mpich()] if has_mpich and transport == "memory" else [])]
    return [library for library in found if library.name in wanted] + (torch_libraries() if "torch" in parts else [])


def torch_libraries():
    """Returns torch's backends over each transport, and the C API with the library of the wheel beside them."""
    if not has_wheel():
        raise Failure("there is no wheel in out/wheel: run `make wheel`")
    from one_torch import Torch
    try:
        installed = Torch(TORCH_MINOR)
    except subprocess.CalledProcessError as error:
        raise Failure(f"there is no torch {TORCH_MINOR}: {error}") from None
    installed.unpack()
    environment = installed.environment()
    folder = pathlib.Path(environment["PYTHONPATH"]) / "railhead" / "lib"
    found = []
    for transport in TRANSPORTS:
        found += [capi(WHEEL, transport, folder),
                  torch(environment, transport, installed.python, ("railhead", "gloo"))]
    return found
