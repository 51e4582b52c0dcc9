# SPDX-License-Identifier: Apache-2.0
"""Ranks of a test with the stock NCCL on the emulated GPUs of cuda/ and kernels/: the program of rank/, or torch."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402
from railbed.process import run  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OUT = ROOT / "out" / "nccl-stock"
PLUGIN = ROOT / "build" / "release" / "plugins" / "nccl" / "libnccl-net-railhead.so"
PROGRAM = OUT / "rank"
EMULATION = OUT / "libemulated-gpu.so"
OTHER_PROFILER = OUT / "libother-profiler.so"
GPU_MEMORY_PLUGIN = OUT / "libnccl-net-gpu-memory.so"
TORCH = "2.15"  # needs NCCL 2.30 or newer
PATIENCE = 240
CALLS = ("allreduce", "avg", "max", "min", "prod", "allgather", "reducescatter", "broadcast", "reduce", "sendrecv",
         "alltoall", "many")
ABORTED = 3  # exit code of a rank that has aborted its communicator after an asynchronous error


def compile_all(sources, folder):
    """Returns {source: its object file in the folder}."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler = [*(["ccache"] if shutil.which("ccache") else []), "g++", "-std=c++20", "-O2", "-g1", "-fPIC", "-Wall",
                "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread", "-I", ROOT]

    def compiled(source):
        result = folder / f"{source.parent.name}-{source.stem}.o"
        run([*compiler, "-c", source, "-o", result])
        return result

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(sources, pool.map(compiled, sources)))


def link(result, objects, *options):
    run(["g++", "-pthread", *options, *objects, "-ldl", "-o", result])


def build():
    """Compiles the program of the ranks, the emulation as a library for torch, and the plugins of the tests."""
    made = compile_all([*sorted(HERE.rglob("*.cc")), ROOT / "plugins" / "nccl" / "testing" / "other_profiler.cc"],
                       OUT / "objects")

    def of(*folders):
        return [made[source] for source in made if source.parent.name in folders]

    emulation = of("stock", "cuda", "kernels")
    # NCCL finds functions of the driver and NVML in the program by their names.
    link(PROGRAM, [*emulation, *of("rank")], "-rdynamic")
    link(EMULATION, [*emulation, *of("torch")], "-shared")
    link(GPU_MEMORY_PLUGIN, of("net"), "-shared")
    link(OTHER_PROFILER, of("testing"), "-shared")


class Ranks:
    """Processes of a job with NCCL, command(rank). At the end of the block all must have ended well, if `checked`.
    `own(rank)` are variables of one rank.

    Each `gpus` ranks are a host. Their network is loopback, or those of the Network's nodes in turn, with its rails.
    `env`: variables of the ranks; None removes one that is set otherwise."""

    def __init__(self, folder, ranks, command, gpus=1, network=None, checked=True, net="Railhead", own=lambda _: {}, **env):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._stop = folder / "stop"
        self.logs = [folder / f"rank{rank}.log" for rank in range(ranks)]
        self._checked = checked
        self._wanted = []  # lines of every rank's output
        common = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "RAILHEAD_"))}
        common |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,P2P,SHM",
                   "NCCL_SOCKET_IFNAME": "control" if network else "lo",
                   "RAILHEAD_SOCKET_IFNAME": ",".join(network.interfaces()) if network else "lo",
                   "NCCL_PAT_ENABLE": "0", "NCCL_ALLGATHERV_ENABLE": "0"}  # not emulated
        if net is not None:
            common["NCCL_NET"] = net
        if net == "Railhead":
            common["NCCL_NET_PLUGIN"] = str(PLUGIN)
        if gpus == 1:
            common |= {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        self._net = net
        self.children = []
        for rank, log in enumerate(self.logs):
            host = rank // gpus
            words = [str(word) for word in command(rank)]
            variables = {**common, "NCCL_HOSTID": f"railhead-host-{host}", **env, **own(rank)}
            if network:
                words = network.inside("ab"[host % 2], *words)
            with open(log, "wb") as out:
                self.children.append(subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                    env={name: value for name, value in variables.items() if value is not None}))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and self._checked:
                self.finish()
        finally:
            for child in self.children:
                if child.poll() is None:
                    child.kill()
                child.wait()

    def text(self, rank=None):
        """The log of a rank, or of all."""
        logs = self.logs if rank is None else [self.logs[rank]]
        return "".join(log.read_text("utf-8", "replace") for log in logs)

    def finish(self):
        deadline = time.monotonic() + PATIENCE
        while any(child.poll() is None for child in self.children):
            for rank, child in enumerate(self.children):
                self.expect(child.poll() in (None, 0), f"rank {rank}: exit {child.returncode}", rank)
            self.expect(time.monotonic() < deadline, f"no end within {PATIENCE} s")
            time.sleep(0.05)
        for rank, child in enumerate(self.children):
            lines = self.text(rank).splitlines()
            missing = [line for line in (*self._wanted, "end") if line not in lines]
            self.expect(child.returncode == 0 and not missing, f"rank {rank}: exit {child.returncode}, without: {missing}", rank)
            self.expect(any(f"Using network {self._net}" in line for line in lines), f"not the network {self._net}", rank)

    def wait_for_end(self):
        """Waits until all ranks have ended, with whatever result."""
        deadline = time.monotonic() + PATIENCE
        while any(child.poll() is None for child in self.children):
            self.expect(time.monotonic() < deadline, f"no end within {PATIENCE} s")
            time.sleep(0.05)

    def signal(self, rank, number):
        self.children[rank].send_signal(number)

    def kill(self, rank):
        self.signal(rank, signal.SIGKILL)

    def wait_for_text(self, rank, text, seconds):
        """Waits for the text in the log of a rank, which may end meanwhile."""
        deadline = time.monotonic() + seconds
        while text not in self.text(rank):
            self.expect(time.monotonic() < deadline, f"rank {rank}: no '{text.strip()}' within {seconds} s", rank)
            time.sleep(0.02)

    def expect_exit(self, rank, code, seconds):
        try:
            found = self.children[rank].wait(seconds)
        except subprocess.TimeoutExpired:
            found = None
        self.expect(found == code, f"rank {rank}: exit {found} within {seconds} s, not {code}", rank)

    def stop(self):
        """Ends ranks that go on until then."""
        self._stop.touch()

    def count(self, word):
        """Lines that begin with the word, of the rank that has fewest."""
        return min(self.text(rank).count(f"\n{word} ") for rank in range(len(self.logs)))

    def expect(self, condition, what, rank=0):
        if not condition:
            raise Failure(what, log=self.logs[rank])

    def wait_until(self, condition, what, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not condition():
            for rank, child in enumerate(self.children):
                self.expect(child.poll() is None, f"rank {rank} has ended before: {what}", rank)
            self.expect(time.monotonic() < deadline, f"{what}: not within {seconds} s")
            time.sleep(0.02)


class Job(Ranks):
    """Ranks that make `calls` of NCCL, each with each of `sizes` (bytes), in a number of rounds, or in rounds until
    stop(). With `hold`, ranks keep their communicator at the end until release(). `program` starts a rank."""

    def __init__(self, folder, library, ranks, calls=CALLS, sizes=(4, 1000, 1 << 20), element="f32", rounds=2, gpus=1,
                 hold=False, program=(PROGRAM,), **chosen):
        self._hold = folder / "release"

        def command(rank):
            return [*program, library, folder / "id", rank, ranks, rank % gpus, ",".join(calls), ",".join(map(str, sizes)),
                    element, folder / "stop" if rounds is None else rounds, *([self._hold] if hold else [])]
        super().__init__(folder, ranks, command, gpus=gpus, **chosen)
        self._wanted = [f"{call} {size} {element}: right" for call in calls for size in sizes] if rounds else []

    def release(self):
        self._hold.touch()

    def rounds(self):
        """Rounds that every rank has ended."""
        return self.count("round")


class TorchJob(Ranks):
    """Ranks of torch/ranks.py: its collectives; or `steps` of training, with `endless` at least as many, until stop()."""

    def __init__(self, folder, library, ranks, network, steps=None, endless=False, **chosen):
        venv = run([ROOT / "tools" / "torch-venv.sh", TORCH], seconds=3600).stdout.split()[-1]
        work = ["train", steps, *([folder / "stop"] if endless else [])] if steps else ["collectives"]

        def command(_rank):
            return ["env", f"LD_PRELOAD={EMULATION}", f"{venv}/bin/python", HERE / "torch" / "ranks.py", library, *work]
        super().__init__(
            folder, ranks, command, network=network, own=lambda rank: {"RANK": str(rank)}, WORLD_SIZE=str(ranks),
            MASTER_ADDR=network.address("a"), MASTER_PORT="29500", GLOO_SOCKET_IFNAME="control", OMP_NUM_THREADS="1",
            **chosen)
        self._wanted = [f"step {number + 1}" for number in range(steps or 0)]

    def steps(self):
        """Steps that every rank has ended."""
        return self.count("step")
