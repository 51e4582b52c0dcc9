# SPDX-License-Identifier: Apache-2.0
"""NCCL's plugin writes registered memory over real rails: of the host, and memory that stands for a GPU's."""

import re

from documents import container_of, keeping_failed_pods, with_env
from stage import PATIENCE, ROOT, expect
from railbed.console import wait_for

PROGRAM = ROOT / "build" / "release" / "plugins" / "nccl" / "railhead_nccl_memory_job"
ROUNDS = 6
RATE = "100mbit"


def nccl_memory_is_written_by_nics(stage):
    """Messages from 0 B to 1 MiB between two pods over RoCE (rxe), written straight into the receiver's memory, while
    a rail is lost and comes back: every byte is right."""
    name, last = "nccl-memory", stage.cluster.rails - 1
    documents = keeping_failed_pods(stage.example(name))
    container_of(documents)["command"] = ["/work/job", str(ROUNDS)]
    with_env(documents, RAILHEAD_NCCL_GPU_MEMORY="peermem", RAILHEAD_LOG="info")
    pods = stage.submit_held(documents)
    stage.give_program(pods, PROGRAM)
    with stage.rails_at(RATE):
        stage.release(pods)
        wait_for("the first round", lambda: "round 0" in stage.logs(pods[0]), PATIENCE, interval=1)
        try:
            stage.cluster.network.set_wire(1, last, "down")
            wait_for("the rail is lost", lambda: re.search(rf"rail {last} .*: lost", stage.logs(pods[1])), PATIENCE,
                     interval=1)
        finally:
            stage.cluster.network.set_wire(1, last, "up")
        outcome = stage.wait_for_job(name, 600)
    logs = [stage.logs(pod) for pod in stage.pods(name)]
    ends = [f"rank {rank}: {log.strip()[-600:]}" for rank, log in enumerate(logs)]
    expect(outcome == "Complete", f"the messages are not right: {'; '.join(ends)}")
    expect(all(re.search(r"^\d+ messages, 0 wrong bytes$", log, re.M) for log in logs), f"logs: {'; '.join(ends)}")
    stage.console.line(f"    {re.search(r'[0-9]+ messages', logs[0]).group()} right, one rail lost and back")
