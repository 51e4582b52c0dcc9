#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of many ranks on this machine: every collective, each value checked, over TCP and in shared memory.

usage: run.py [--transport tcp|shm] [RANKS]...     without ranks: 65 128 256

All ranks are processes of this machine that meet on its loopback device. Nothing here is about time.
"""

import argparse
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PERF = ROOT / "build" / "release" / "runtime" / "railhead-perf"
COLLECTIVES = ("all_reduce", "all_gather", "all_gatherv", "reduce_scatter", "reduce_scatterv", "broadcast",
               "reduce", "alltoall", "alltoallv", "gather", "scatter", "sendrecv", "barrier")
SIZES = ("-b", "8", "-e", "256K", "-f", "181", "-n", "1", "-w", "0", "--check")
DEADLINE = 300


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(collective, ranks, transport):
    """Returns what rank 0 printed; ends the program unless all ranks ended well."""
    env = dict(os.environ, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
               RAILHEAD_TRANSPORT=transport, RAILHEAD_METRICS_PORT="0")
    arguments = () if collective == "barrier" else SIZES
    with tempfile.TemporaryDirectory() as folder:
        logs = [open(pathlib.Path(folder) / str(rank), "w+", encoding="utf-8") for rank in range(ranks)]
        processes = [subprocess.Popen([PERF, collective, *arguments], env=dict(env, RANK=str(rank)), stdout=log,
                                      stderr=subprocess.STDOUT) for rank, log in enumerate(logs)]
        try:
            deadline = time.monotonic() + DEADLINE
            codes = [process.wait(max(1, deadline - time.monotonic())) for process in processes]
        except subprocess.TimeoutExpired:
            sys.exit(f"error: {collective} of {ranks} ranks over {transport} did not end in {DEADLINE} s")
        finally:
            for process in processes:
                process.kill()
                process.wait()
        said = []
        for log in logs:
            log.seek(0)
            said.append(log.read())
            log.close()
    for rank, code in enumerate(codes):
        if code != 0:
            sys.exit(f"error: {collective} of {ranks} ranks over {transport}: rank {rank} ended with {code}:\n"
                     f"{said[rank][-2000:]}")
    return said[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--transport", choices=("tcp", "shm"), action="append")
    parser.add_argument("ranks", type=int, nargs="*", default=(65, 128, 256))
    options = parser.parse_args()
    for transport in options.transport or ("tcp", "shm"):
        for ranks in options.ranks:
            for collective in COLLECTIVES:
                begin = time.monotonic()
                text = run(collective, ranks, transport)
                # A barrier has no values.
                if collective != "barrier" and not re.search(r"^# verified: yes$", text, re.M):
                    sys.exit(f"error: {collective} of {ranks} ranks over {transport}:\n{text}")
                print(f"{transport}, {ranks} ranks, {collective}: right ({time.monotonic() - begin:.1f} s)",
                      flush=True)


if __name__ == "__main__":
    main()
