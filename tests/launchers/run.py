#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real launchers start programs on the C API and on libmpi.so.40: torchrun, Open MPI's mpirun, and shells.

usage: tests/launchers/run.py [CASE]...      build the preset `release` first

Every job adds a number of its own over its ranks, so the sum shows with which ranks each has met.
"""

import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import expect, run, side_by_side  # noqa: E402

HERE = ROOT / "tests" / "launchers"
BUILD = ROOT / "build" / "release"
OUT = ROOT / "out" / "launchers-test"
API, MPI = OUT / "sum", OUT / "mpi_sum"
PROGRAMS = (API, MPI)
SECONDS = 300  # many times what a job takes
# No port is given by the kernel to others, and tests/launchers alone uses these.
ALONE = ("unshare", "--net", "sh", "-ec", 'ip link set lo up; exec "$@"', "sh")


def compile_programs():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    warnings = ("-Wall", "-Wextra", "-Werror", "-O1")
    run("cc", *warnings, "-I", ROOT / "runtime" / "include", HERE / "sum.c", "-o", API, BUILD / "runtime" / "librailhead.so",
        f"-Wl,-rpath,{BUILD / 'runtime'}")
    run("cc", *warnings, "-DUSE_MPI", HERE / "sum.c", "-o", MPI, BUILD / "mpi" / "libmpi.so.40",
        f"-Wl,-rpath,{BUILD / 'mpi'}:{BUILD / 'runtime'}", f"-Wl,-rpath-link,{BUILD / 'runtime'}")


def environment(**variables):
    """Returns this environment without variables that describe a job, and with these."""
    own = {name: value for name, value in os.environ.items()
           if not re.match(r"RAILHEAD_|MASTER_|RANK$|WORLD_SIZE$|LOCAL_|OMPI_|PMI|SLURM_|FLUX_|TORCH", name)}
    return {**own, "RAILHEAD_METRICS_PORT": "0", "RAILHEAD_START_TIMEOUT_SECONDS": "60", "OMP_NUM_THREADS": "1",
            **variables}


def expect_sum(text, ranks, number):
    found = sorted(re.findall(r"rank (\d+) of (\d+): sum (\S+)$", text, re.M))
    expected = sorted((str(rank), str(ranks), f"{ranks * number:g}") for rank in range(ranks))
    expect(found == expected, f"{found}, not {expected}: {text[-4000:]}")


def torchrun():
    return [run(ROOT / "tools" / "torch-venv.sh", "2.15", seconds=3600).strip() + "/bin/torchrun", "--no-python"]


def mpirun(ranks):
    return ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


def case_torchrun():
    """One node: --standalone, the static rendezvous, c10d's, and c10d's without the agent's store."""
    def job(number, program, ranks, *options, **variables):
        text = run(*ALONE, *torchrun(), "--nproc-per-node", ranks, *options, program, number, seconds=SECONDS,
                   env=environment(**variables))
        expect_sum(text, ranks, number)

    endpoint = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:29511")
    side_by_side(*((job, 3, program, ranks, *options)
                   for program in PROGRAMS for ranks in (2, 4) for options in (("--standalone",), ())))
    side_by_side((job, 5, API, 2, *endpoint), (job, 6, MPI, 3, *endpoint), (job, 7, MPI, 1, "--standalone"))
    # Old agents with c10d, and this variable, leave MASTER_PORT to rank 0.
    run(*ALONE, "env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", *torchrun(), "--nproc-per-node", 2, *endpoint, API, 8,
        seconds=SECONDS, env=environment())


def case_torchrun_nodes():
    """Two agents, as on two nodes, whose ranks meet in the store of one."""
    def job(number, program, *options):
        command = shlex.join(map(str, [*torchrun(), "--nnodes", "2", "--nproc-per-node", "2", *options]))
        tail = shlex.join(map(str, [program, number]))
        script = f"{command} --node-rank 1 {tail} & {command} --node-rank 0 {tail}; wait $!"
        expect_sum(run(*ALONE, "sh", "-ec", script, seconds=SECONDS, env=environment()), 4, number)

    side_by_side((job, 2, API, "--master-addr", "localhost", "--master-port", "29512"),
                 (job, 3, MPI, "--master-addr", "127.0.0.1", "--master-port", "29512"),
                 (job, 4, API, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:29513", "--rdzv-id", "a b"))


def case_torchrun_restart():
    """Rank 1 ends in its first life; the restarted ranks meet each other, not what is left of the first life."""
    def job(number, program, where, *options):
        text = run(*ALONE, *torchrun(), "--nproc-per-node", 3, "--max-restarts", 2, *options, program, number, where,
                   seconds=SECONDS, env=environment(RAILHEAD_START_TIMEOUT_SECONDS="120"))
        expect_sum(text, 3, number)

    side_by_side(*((job, 4, program, where, *options) for program in PROGRAMS for where in ("before", "after")
                   for options in (("--standalone",), ())))

    def nodes(where):
        """The agent of the failed rank counts a restart, the other one does not."""
        life = OUT / f"first-life-{where}"
        life.touch()
        command = shlex.join(map(str, [
            *torchrun(), "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "2", "--rdzv-backend", "c10d",
            "--rdzv-endpoint", "localhost:29514", API, 5, where]))
        text = run(*ALONE, "sh", "-ec", f"{command} & {command}; wait $!", seconds=SECONDS,
                   env=environment(FIRST_LIFE=str(life), RAILHEAD_START_TIMEOUT_SECONDS="120"))
        expect(not life.exists(), "rank 1 did not end in its first life")
        expect_sum(text, 2, 5)

    side_by_side((nodes, "before"), (nodes, "after"))


def case_torchrun_jobs():
    """Two jobs on one host at the same time."""
    def both(number):
        script = " & ".join(shlex.join(map(str, [*torchrun(), "--standalone", "--nproc-per-node", "2", program,
                                                 number + offset])) for offset, program in enumerate(PROGRAMS))
        text = run(*ALONE, "sh", "-ec", f"{script} & wait", seconds=SECONDS, env=environment())
        sums = sorted(re.findall(r"of 2: sum (\S+)$", text, re.M), key=float)
        expect(sums == [f"{2 * (number + offset)}" for offset in (0, 0, 1, 1)], f"{sums}: {text}")

    side_by_side(*((both, number) for number in (10, 20)))


def case_mpirun():
    """On one host, without MASTER_ADDR; jobs side by side in one network namespace."""
    jobs = [(number, program, ranks) for number, (program, ranks) in enumerate(
        ((API, 2), (MPI, 2), (MPI, 3), (API, 4), (MPI, 1), (MPI, 2), (API, 2), (MPI, 4)), 1)]

    def job(number, program, ranks, *options):
        expect_sum(run(*mpirun(ranks), *options, program, number, seconds=SECONDS, env=environment()), ranks, number)

    side_by_side(*((job, *one) for one in jobs * 2))
    # The variables of a batch script of Slurm, of the pod, and a MASTER_PORT alone.
    side_by_side((job, 3, MPI, 2, "-x", "SLURM_JOB_ID=7", "-x", "SLURM_NTASKS=16", "-x", "SLURM_PROCID=0"),
                 (job, 4, API, 2, "-x", "RANK=0", "-x", "WORLD_SIZE=1"), (job, 5, API, 2, "-x", "MASTER_PORT=29515"),
                 (job, 6, MPI, 2, "-x", "MASTER_PORT=29515"))
    # As on two hosts: the error names the variable and the fix.
    text = subprocess.run([*mpirun(2), "env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", str(API), "1"], env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False).stdout
    expect("MASTER_ADDR is not set on a rank of OMPI_COMM_WORLD_RANK=1" in text and "mpirun -x MASTER_ADDR=HOST" in text, text)


class Shell:
    """A shell that starts the ranks of a job, each after a pause of its own; one process for each rank, or a shell of
    its own with it."""

    def __init__(self, number, ranks, port, choice, **variables):
        lines = []
        for rank in range(ranks):
            words = f"sleep 0.0{choice.randrange(10)}; exec {API} {number}"
            if choice.randrange(2):
                words = f"sleep 0.0{choice.randrange(10)}; sh -c '{API} {number}; exit $?'"
            lines.append(f"( export RANK={rank} WORLD_SIZE={ranks}; {words} ) &")
        choice.shuffle(lines)
        script = f"sleep 0.{choice.randrange(20):02}; " + "\n".join(lines) + "\nwait"
        self.number, self.ranks = number, ranks
        self.process = subprocess.Popen(
            ["sh", "-c", script], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=environment(MASTER_ADDR="localhost", MASTER_PORT=str(port), RAILHEAD_START_TIMEOUT_SECONDS="8", **variables))

    def result(self):
        """Returns True if the job has ended well, False if it has failed with a reason."""
        text, _ = self.process.communicate(timeout=SECONDS)
        sums = re.findall(r"sum (\S+)$", text, re.M)
        expect(all(one == f"{self.number * self.ranks:g}" for one in sums), f"ranks of two jobs have met: {text}")
        if len(sums) == self.ranks:
            return True
        expect(not sums, f"a part of the job ended well: {text}")
        expect(re.search(r"(process \d+ \(sum\)|another process) listens there|are not known to be of one job|has WORLD_SIZE=", text),
               f"no reason: {text}")
        return False


def case_shells():
    """Jobs without a name or a launcher, at one port, in random interleavings: each is right, or fails with the reason."""
    choice = random.Random(int(os.environ.get("RAILHEAD_SEED", "20268")))

    def round_of(port, **variables):
        shells = [Shell(number, choice.choice((2, 2, 3)), port, choice, **variables)
                  for number in (3, 5, 7)[:choice.choice((2, 2, 3))]]
        return [shell.result() for shell in shells]

    results = [result for port in range(11200, 11212) for result in round_of(port)]
    expect(True in results and False in results, f"no variety: {results}")
    print(f"{results.count(True)} of {len(results)} jobs ended well, the others with a reason")


def case_terminals():
    """Ranks that different processes have started are of one job if it has a name."""
    def started(name, port):
        ranks = [subprocess.Popen(
            ["sh", "-c", f"{API} 4; exit $?"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, env=environment(
                RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port),
                RAILHEAD_START_TIMEOUT_SECONDS="8", **name)) for rank in range(2)]
        return "".join(rank.communicate(timeout=SECONDS)[0] for rank in ranks)

    expect_sum(started({"RAILHEAD_JOB": "mine"}, 11220), 2, 4)
    # This process has started both.
    expect_sum(started({}, 11221), 2, 4)


if __name__ == "__main__":
    sys.exit(cases.main(cases.cases_of(globals()), sys.argv[1:], compile_programs))
