#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs unchanged MPI programs with the libmpi.so.40 of the wheel: mpi4py, JAX and MLX.

usage: tests/mpi/run.py [CASE]...      run `make wheel` first
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import expect, run, side_by_side  # noqa: E402

HERE = ROOT / "tests" / "mpi"
OUT = ROOT / "out" / "mpi-test"
LIBRARY = OUT / "site" / "railhead" / "lib" / "railhead-mpi" / "libmpi.so.40"


def unpack():
    cases.unpack_wheel(OUT)


def python():
    return cases.kept_python("mpi", HERE / "requirements.txt", "--no-compile")


def told():
    """Returns the variables that `python -m railhead env` prints."""
    text = run("/usr/bin/python3", "-B", "-m", "railhead", "env", env={"PYTHONPATH": str(OUT / "site")})
    return dict(re.fullmatch(r"export (\w+)=(.+)", line).groups() for line in text.splitlines())


def ranks(*command, count=2, transport="shm", **how):
    return cases.run_ranks(count, python(), "-B", *command, **{
        "RAILHEAD_TRANSPORT": transport, "RAILHEAD_TIMEOUT_SECONDS": "600", "HOME": str(OUT), "OMP_NUM_THREADS": "1", **told(), **how})


def case_object():
    """Checks the symbols that the library imports and exports."""
    text = subprocess.run(["readelf", "-dVW", LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    known = {"librailhead.so.0", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
    expect(needed <= known, f"needs {needed - known}")
    expect("[libmpi.so.40]" in text and "[$ORIGIN/..]" in text, text)
    versions = {tuple(map(int, word.split("."))) for word in re.findall(r"Name: GLIBC_([0-9.]+)", text)}
    expect(versions and max(versions) <= (2, 28), f"glibc {sorted(versions)}")
    text = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {line.split()[-1] for line in text.splitlines()}
    odd = {name for name in names if not re.match(r"MPIX?(ABI)?_|ompi_|OMPI_C_|mpiabi_version_|mpiwrapper_", name)}
    expect(not odd, f"exports {sorted(odd)[:10]}")
    # Both interfaces have the same functions.
    both = ({name[4:] for name in names if name.startswith("MPI_")} - {"Pcontrol"})
    lacking = {name for name in both if f"MPIABI_{name}" not in names}
    expect(len(both) > 350 and not lacking, f"MPItrampoline's interface lacks {sorted(lacking)}")


def case_calls():
    """mpi4py: every supported function, with known results."""
    def check(count, transport):
        text = ranks(HERE / "calls.py", count=count, transport=transport)
        found = re.findall(r"^rank (\d) of \d: (\d+) results are right, by Open MPI .* Railhead 0\.", text, re.M)
        expect(len(found) == count and all(int(checked) > 1000 for _, checked in found), text)
        return min(int(checked) for _, checked in found)

    for how in ((2, "shm"), (3, "shm"), (3, "tcp")):
        print(f"{how[0]} ranks over {how[1]}: {check(*how)} results are right on each")
    # A program started without a launcher is a job of one rank.
    text = run("unshare", "--net", python(), "-B", HERE / "calls.py", "movement", "errors",
               env={"PATH": "/usr/bin:/bin", **told()})
    expect("rank 0 of 1" in text, text)


def case_failures():
    """Programs that do not check results end with the reason."""
    begin = ("import mpi4py, numpy as np; from mpi4py import MPI; W = MPI.COMM_WORLD; r = W.Get_rank(); "
             "W.Set_errhandler(MPI.ERRORS_ARE_FATAL); ")

    def dies(code, *words, count=2):
        text = ranks("-c", begin + code, count=count, may_fail=True)
        for word in words:
            expect(re.search(word, text), f"{code}: no '{word}' in: {text}")
        expect("went on" not in text, text)

    side_by_side(
        (dies, "W.Bcast(np.zeros(1), 7); print('went on')", r"railhead: rank 0: MPI_Bcast: the root is 7; it may be 0 to 1"),
        (dies, "W.Allreduce(np.zeros(3 + r), np.zeros(3 + r)); print('went on')",
         r"railhead: rank 0: MPI_Allreduce: .*rank 1", r"railhead: rank 1: MPI_Allreduce: "),
        (dies, "import os\nif r == 1: os._exit(3)\nW.Barrier(); print('went on')",
         r"railhead: rank 0: MPI_Barrier: .*rank 1"),
        (dies, "W.Abort(4) if r == 1 else W.Barrier(); print('went on')", r"rank 1: MPI_Abort: the program ends the job",
         r"rank 0: MPI_Barrier: .*rank 1"),
        (dies, "W.Scan(np.zeros(1), np.zeros(1)); print('went on')", r"MPI_Scan: Railhead's MPI library does not have it"))


def _losses(text, count):
    [line] = set(re.findall(r"^losses (.*)$", text, re.M))
    checked = re.findall(r"^rank \d: (\d+) collectives are right$", text, re.M)
    expect(len(checked) == count and int(checked[0]) > 25, text)
    return [float(word) for word in line.split()]


def case_jax():
    """A user's script over gloo, JAX's default, and over the library has the same losses."""
    def losses(count, **variables):
        return _losses(ranks(HERE / "jax_steps.py", count=count, MASTER_PORT="29500", **variables), count)

    for count, transport in ((2, "shm"), (3, "tcp")):
        found = losses(count, transport=transport)
        known = losses(count, JAX_CPU_COLLECTIVES_IMPLEMENTATION="gloo")
        expect(len(found) == len(known) and all(abs(a - b) < 1e-5 for a, b in zip(found, known)), f"{found}, gloo's {known}")
        print(f"{count} ranks over {transport}: {len(found)} losses as gloo's, {found[0]:.6f} to {found[-1]:.6f}")


def case_mlx():
    """The losses fall, and equal those of one process with all the data (mlx_steps.py compares them)."""
    for count, transport in ((2, "shm"), (3, "tcp")):
        found = _losses(ranks(HERE / "mlx_steps.py", count=count, transport=transport), count)
        expect(len(found) == 8 and found[-1] < 0.3 * found[0], f"{found}")
        print(f"{count} ranks over {transport}: losses {found[0]:.6f} to {found[-1]:.6f}")


PROFILE = {
    "apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile", "metadata": {"name": "frameworks"},
    "spec": {"fabric": "TCP", "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "train"}},
             "inject": {"runtime": {"image": "railhead/inject", "frameworks": ["torch", "jax", "mlx", "mpi"]}}}}
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker", "namespace": "train"},
    "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"rdma/hca": "1"}}}]}}
# A pod's container: the copied libraries are at the volume's mount.
IN_POD = """
mount -t tmpfs tmpfs /opt
mkdir /opt/railhead
mount --bind "$COPIED" /opt/railhead
exec "$@"
"""


def case_injected():
    """The injection of a RailProfile, as the operator writes it: the image's program copies, and the scripts run."""
    image, volume, profile, pod = OUT / "image", OUT / "volume", OUT / "profile.json", OUT / "pod.json"
    [wheel] = (ROOT / "out" / "wheel").glob("railhead-*.whl")
    run(ROOT / "images" / "inject" / "stage.sh", wheel, image)
    profile.write_text(json.dumps(PROFILE), "utf-8")
    pod.write_text(json.dumps(POD), "utf-8")
    text = run(ROOT / "build" / "release" / "operator" / "railhead-operator", "mutate", "-f", pod, "--profiles", profile)
    spec = json.loads(text[text.index("{"):])["spec"]
    [copy] = spec["initContainers"]
    [container] = spec["containers"]
    volume.mkdir()
    (image / "opt" / "railhead").mkdir(parents=True)
    for _ in range(2):  # an init container may run again
        run("unshare", "--mount", "sh", "-ec", 'mount --bind "$1" "$2/opt/railhead"; shift; exec chroot "$@"', "sh", volume,
            image, *copy["command"])
    variables = {one["name"]: one["value"] for one in container["env"] if not one["name"].startswith(("RAILHEAD_", "NCCL_"))}
    expect({"PYTHONPATH", "LD_LIBRARY_PATH", "MPITRAMPOLINE_LIB", "MLX_MPI_LIBNAME"} <= set(variables), f"{variables}")
    for script, words in (("calls.py", ("movement",)), ("jax_steps.py", ()), ("mlx_steps.py", ())):
        text = cases.run_ranks(2, "unshare", "--mount", "sh", "-ec", IN_POD, "pod", python(), "-B", HERE / script, *words,
                               COPIED=str(volume), HOME=str(OUT), MPI4PY_MPIABI="openmpi", **variables)
        expect(len(re.findall(r"^rank \d.* are right", text, re.M)) == 2, text)
        print(f"{script}: 2 ranks with what was injected")
    text = cases.run_ranks(1, "unshare", "--mount", "sh", "-ec", IN_POD, "pod", python(), "-c",
                           "from importlib.metadata import entry_points; import railhead; "
                           "print(entry_points(group='torch.backends')['railhead'].load(), railhead.__file__)",
                           COPIED=str(volume), HOME=str(OUT), **variables)
    expect("function register" in text and "/opt/railhead/runtime/python/railhead" in text, text)


if __name__ == "__main__":
    sys.exit(cases.main(cases.cases_of(globals()), sys.argv[1:], unpack))
