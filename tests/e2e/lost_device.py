# SPDX-License-Identifier: Apache-2.0
"""Jobs of which one rank lacks its device: they fall back to TCP, or fail if they require RDMA."""

import re
import time

from documents import at_ease, keeping_failed_pods, until_told, with_env, with_sizes, without_rdma_on_rank_1
from main_job import parse_log
from stage import PATIENCE, expect
from railbed.console import wait_for


def lost_device_falls_back_loudly(stage):
    """One rank lacks its device: all ranks finish over TCP, and all report why."""
    pods = stage.submit_held(at_ease(until_told(without_rdma_on_rank_1(
        with_sizes(stage.example("lost"), "8", "1M", "-n", "1", warmup=0)))))
    stage.release(pods)

    def degraded():
        """Returns {rank: why it is degraded}, as Prometheus has scraped it from the running pods."""
        told = stage.query('max_over_time(railhead_degraded{job="lost"}[10m])')
        return {labels["rank"]: labels["reason"] for labels, value in told if value == 1}

    wait_for("railhead_degraded is 1 on both ranks", lambda: sorted(degraded()) == ["0", "1"], PATIENCE,
             interval=1)
    stage.finish(pods)
    expect(stage.wait_for_job("lost") == "Complete", "the job did not complete over TCP")
    for rank, pod in enumerate(stage.pods("lost")):
        text = stage.logs(pod)
        expect(re.search(r"rank 1\b.*uverbs", text), f"rank {rank} does not say what rank 1 lacks")
    parsed = parse_log(stage.logs(stage.pods("lost")[0]))
    expect(parsed.transport == "tcp", f"transport is {parsed.transport}")
    expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    reasons = degraded()
    expect(sorted(reasons) == ["0", "1"], f"railhead_degraded is 1 on ranks {sorted(reasons)}")
    expect(all("rank 1" in reason for reason in reasons.values()), f"reasons: {reasons}")


def required_rdma_fails_fast(stage):
    """The same with RAILHEAD_REQUIRE_RDMA=1: every rank fails before it waits, naming rank and cause."""
    documents = keeping_failed_pods(without_rdma_on_rank_1(stage.example("strict")))
    # A rank that waited for something would wait longer than the test takes.
    with_env(documents, RAILHEAD_REQUIRE_RDMA="1", RAILHEAD_TIMEOUT_SECONDS="3600")
    stage.submit(documents)
    expect(stage.wait_for_job("strict") == "Failed", "the job did not fail")
    begins, ends = [], []
    for rank, pod in enumerate(stage.pods("strict")):
        text = stage.logs(pod)
        expect(re.search(r"rank 1\b.*uverbs", text), f"rank {rank} does not name rank 1 and the cause")
        state = pod["status"]["containerStatuses"][0]["state"].get("terminated")
        expect(state and state["exitCode"] != 0, f"rank {rank} did not fail")
        expect("# railhead-perf" not in text, f"rank {rank} has begun to measure")
        begins.append(_time(state["startedAt"]))
        ends.append(_time(state["finishedAt"]))
    # Timestamps are whole seconds.
    stage.console.line(f"    all ranks had failed {max(ends) - max(begins)} s after the last one began")


def _time(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
