# SPDX-License-Identifier: Apache-2.0
"""python -m railhead: prints the installed versions, and the settings and devices that this process would use.

usage: python -m railhead        prints a table
       python -m railhead env    prints shell commands that make unchanged MPI programs, and JAX and MLX, use
                                 Railhead: eval "$(python -m railhead env)"
       python -m railhead env nccl
                                 the same for programs that use NCCL: their messages between nodes use Railhead's
                                 rails. RAILHEAD_FALLBACK=fail: NCCL ends if it cannot load the plugin
"""

import glob
import importlib.util
import os
import platform
import shlex
import sys

from . import _library, torch_backend


def _rows():
    yield "railhead", _library.version()
    yield "library", _library.path()
    yield "python", f"{platform.python_version()} on {platform.machine()}, {' '.join(platform.libc_ver())}"
    job = [f"{name}={os.environ[name]}" for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
           if name in os.environ]
    yield "job", " ".join(job) or "RANK, WORLD_SIZE and MASTER_ADDR are not set"
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("RAILHEAD_"))
    yield "settings", " ".join(settings) or "no RAILHEAD_ variable is set"
    rails = os.environ.get("RAILHEAD_RAILS_FILE", "/run/railhead/rails.json")
    yield "rails", rails if os.path.exists(rails) else f"no {rails}: this pod has no rdma/hca"
    devices = sorted(os.path.basename(path) for path in glob.glob("/dev/infiniband/uverbs*"))
    yield "RDMA devices", " ".join(devices) or "none in /dev/infiniband"
    if importlib.util.find_spec("torch") is None:
        yield "torch", "not installed"
    else:
        yield "torch", torch_backend.describe()


def nccl_environment():
    """Returns the variables by which NCCL finds the network plugin of this package."""
    library = os.path.join(os.path.dirname(_library.path()), "nccl-net", "libnccl-net-railhead.so")
    # NCCL before 2.28 does not look for a profiler in the network plugin's file.
    variables = {"NCCL_NET_PLUGIN": library, "NCCL_PROFILER_PLUGIN": os.environ.get("NCCL_PROFILER_PLUGIN", library)}
    if os.environ.get("RAILHEAD_FALLBACK") == "fail":
        variables["NCCL_NET"] = "Railhead"
    return variables


def environment():
    """Returns the variables by which MPI programs find the libmpi.so.40 of this package."""
    library = os.path.join(os.path.dirname(_library.path()), "railhead-mpi", "libmpi.so.40")
    folders = [os.path.dirname(library), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    return {
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(folders)),  # programs linked with Open MPI
        "MPITRAMPOLINE_LIB": library,  # JAX, and others that use MPItrampoline
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "mpi",
        "MLX_MPI_LIBNAME": library,
        "MPI4PY_MPIABI": "openmpi",
    }


def main() -> int:
    kinds = {("env",): environment, ("env", "nccl"): nccl_environment}
    if variables := kinds.get(tuple(sys.argv[1:])):
        for name, value in variables().items():
            print(f"export {name}={shlex.quote(value)}")
        return 0
    if sys.argv[1:]:
        print(__doc__.strip(), file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        for name, text in _rows():
            print(f"{name + ':':14}{text}")
    except OSError as error:
        print(f"error: {_library.path()} cannot be loaded: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
