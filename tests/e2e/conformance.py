# SPDX-License-Identifier: Apache-2.0
"""Every collective, type, operator, algorithm and boundary over real rails, between two pods."""

import re

from documents import container_of, keeping_failed_pods, pod_of, with_env
from stage import ROOT, expect

PROGRAM = ROOT / "build" / "release" / "runtime" / "railhead_conformance_job"
# Maximum bytes of a call in all ranks' buffers together: several times the bytes in flight on a link.
MOST_BYTES = 1 << 20
# The matrix is many calls, not many bytes: the emulated CPUs are the limit here, not the rails.
RATE = "100mbit"


def conformance(stage, name, environment=None, **pod_spec):
    """Runs the matrix as a job like the example's, with more variables."""
    documents = keeping_failed_pods(stage.example(name))
    pod_of(documents).update(pod_spec)
    container_of(documents)["command"] = ["/work/job", str(MOST_BYTES)]
    with_env(documents, **(environment or {}))
    pods = stage.submit_held(documents)
    stage.give_program(pods, PROGRAM)
    with stage.rails_at(RATE):
        stage.release(pods)
        outcome = stage.wait_for_job(name, 900)
    logs = [stage.logs(pod) for pod in stage.pods(name)]
    ends = [f"rank {rank}: {log.strip()[-600:]}" for rank, log in enumerate(logs)]
    expect(outcome == "Complete", f"the matrix is not right: {'; '.join(ends)}")
    worlds = [re.findall(r"^(\d+) calls, (.*): right (\d+)$", log, re.M) for log in logs]
    expect(len(worlds[0]) > 1 and worlds[0] == worlds[1], f"ranks differ: {worlds}")
    calls = sum(int(count) for count, *_ in worlds[0])
    stage.console.line(f"    {calls} calls in {len(worlds[0])} worlds: right on both ranks")


def every_collective_is_right(stage):
    """The conformance matrix over RoCE (rxe), between two pods, with three queue pairs per connection; the other test
    cases use one."""
    conformance(stage, "conforming", {"RAILHEAD_IB_QPS_PER_RAIL": "3"})
