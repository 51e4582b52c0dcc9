# SPDX-License-Identifier: Apache-2.0
"""A version of torch together with the wheel, for tests and benchmarks."""

import contextlib
import pathlib
import re
import subprocess

import cases
from cases import ROOT, expect

OUT = ROOT / "out" / "frameworks-test"


def check_object(library, loader):
    """Checks the libraries and symbols that the compiled part of the backend needs. `loader` is the machine's."""
    text = cases.run("readelf", "-dVW", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    known = {"libtorch_cpu.so", "libc10.so", "librailhead.so.0", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6",
             "libm.so.6", "libpthread.so.0", "libdl.so.2", loader}
    expect(needed <= known, f"needs {needed - known}")
    for family, newest in (("GLIBC", (2, 28)), ("GLIBCXX", (3, 4, 25)), ("CXXABI", (1, 3, 11))):
        versions = {tuple(map(int, word.split("."))) for word in re.findall(rf"Name: {family}_([0-9.]+)", text)}
        expect(versions and max(versions) <= newest, f"{family}: {sorted(versions)}")


class Torch:
    """A version of torch in its environment, with the unpacked wheel on PYTHONPATH."""

    def __init__(self, minor):
        self.minor = minor
        done = subprocess.run([ROOT / "tools" / "torch-venv.sh", minor], stdout=subprocess.PIPE, text=True, check=True)
        self.python = pathlib.Path(done.stdout.strip()) / "bin" / "python"

    def unpack(self):
        cases.unpack_wheel(OUT)

    def environment(self, **more):
        return {"PYTHONPATH": str(OUT / "site"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                "MASTER_PORT": "29500", "HOME": str(OUT), **more}

    def run(self, *command, ranks=2, **how):
        return cases.run_ranks(ranks, self.python, *command, **self.environment(**how))

    @contextlib.contextmanager
    def on_nodes(self, network, folder, *command, **more):
        """Runs the command as two ranks, one on each node of the network, over its rails. Yields the processes and
        their output files, and ends both processes at the end."""
        with contextlib.ExitStack() as undo:
            children, outputs = [], []
            for rank, node in enumerate(("a", "b")):
                path = folder / f"rank{rank}"
                outputs.append(path)
                environment = self.environment(
                    RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR=network.address("a"), RAILHEAD_TRANSPORT="tcp",
                    RAILHEAD_METRICS_PORT="0", RAILHEAD_SOCKET_IFNAME=",".join(network.interfaces()), **more)
                children.append(subprocess.Popen(
                    network.inside(node, self.python, *command), env=environment, stdin=subprocess.DEVNULL,
                    stdout=undo.enter_context(open(path, "w", encoding="utf-8")), stderr=subprocess.STDOUT))
                undo.callback(children[-1].wait)
                undo.callback(children[-1].kill)
            yield children, outputs
