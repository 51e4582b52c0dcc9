# SPDX-License-Identifier: Apache-2.0
"""The compared libraries: how each program is built and started on this machine."""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.process import end, run  # noqa: E402

RELEASE = ROOT / "build" / "release" / "runtime"
OUT = ROOT / "out" / "peers"
HOME_CACHE = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
CACHE = pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(HOME_CACHE) / "railhead")
# Where tools/install-needs.sh has installed it: the name is a hash of its contents.
REQUIREMENTS = hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest()[:16]
GLOO_PYTHON = CACHE / f"bench-venv-{REQUIREMENTS}" / "bin" / "python"
RUN_SECONDS = 600
COMPILE = ("-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror")

# Loopback only, and settings for a root user and a machine without ssh. Everything else is as Debian ships it.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_plm_rsh_agent": "/bin/false"}


# As loop.c names them.
COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
               "gather", "scatter", "send_receive", "barrier")
# Windows make a difference only for these.
IN_WINDOWS = COLLECTIVES[:8]


@dataclasses.dataclass(frozen=True)
class Candidate:
    name: str
    start: object  # function (ranks, arguments) -> standard output of rank 0
    types: tuple = ("fp32",)
    collectives: tuple = COLLECTIVES


def build():
    """Compiles the loop for each library; the Python one needs no compilation."""
    OUT.mkdir(parents=True, exist_ok=True)
    loop = HERE / "loop.c"
    for compiler, program in (("mpicc.openmpi", "openmpi"), ("mpicc.mpich", "mpich")):
        run([compiler, *COMPILE, loop, HERE / "library_mpi.c", "-o", OUT / program])
    run(["cc", *COMPILE, f"-I{ROOT / 'runtime' / 'include'}", loop, HERE / "library_railhead.c",
         "-o", OUT / "railhead", f"-L{RELEASE}", f"-Wl,-rpath,{RELEASE}", "-lrailhead"])


def memory_bandwidth(threads):
    """Returns the bytes that this number of threads reads and writes per second, beyond the caches."""
    return float(run([RELEASE / "railhead_memory_bench", threads], seconds=RUN_SECONDS).stdout)


def open_mpi(ranks, arguments):
    return run(["mpirun.openmpi", "--oversubscribe", "-np", ranks, OUT / "openmpi", *arguments],
               env=os.environ | OPEN_MPI, seconds=RUN_SECONDS, log=OUT / "openmpi.log").stdout


def mpich(ranks, arguments):
    return run(["mpirun.mpich", "-launcher", "fork", "-iface", "lo", "-np", ranks, OUT / "mpich",
                *arguments], seconds=RUN_SECONDS, log=OUT / "mpich.log").stdout


def job(transport):
    """Returns the variables of one job of Railhead over a transport."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RAILHEAD_METRICS_PORT": "0",
            "RAILHEAD_TRANSPORT": transport, "RAILHEAD_SOCKET_IFNAME": "lo"}


def railhead(transport, **more):
    def start(ranks, arguments):
        return ranks_of_one_job([OUT / "railhead", *arguments], ranks, f"railhead-{transport}", job(transport) | more)
    return start


def gloo(ranks, arguments):
    with tempfile.TemporaryDirectory() as folder:
        return ranks_of_one_job(
            [GLOO_PYTHON, HERE / "gloo_loop.py", *arguments], ranks, "gloo",
            {"MEETING": f"{folder}/meeting", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})


def ranks_of_one_job(argv, ranks, name, env):
    """Starts a process for each rank, as a launcher would; returns rank 0's output."""
    env = os.environ | env | {"WORLD_SIZE": str(ranks)}
    log = OUT / f"{name}.log"
    with contextlib.ExitStack() as children, open(log, "a", encoding="utf-8") as out:
        for rank in range(1, ranks):
            child = subprocess.Popen([str(a) for a in argv], env=env | {"RANK": str(rank)},
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                     start_new_session=True)
            children.callback(end, child.pid)
        return run(argv, env=env | {"RANK": "0"}, seconds=RUN_SECONDS, log=log).stdout


HALVES = ("fp32", "fp16", "bf16")
CANDIDATES = (
    Candidate("Railhead shm", railhead("shm"), HALVES),
    Candidate("Railhead windows", railhead("shm", BENCH_WINDOWS="1"), HALVES, IN_WINDOWS),
    Candidate("Railhead TCP", railhead("tcp")),
    Candidate("Open MPI", open_mpi),
    Candidate("MPICH", mpich),
    Candidate("gloo", gloo, HALVES),
)
