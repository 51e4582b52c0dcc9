# SPDX-License-Identifier: Apache-2.0
"""What all scenes use."""

import pathlib
import sys
import time

from job import PATIENCE

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from railbed.console import Failure  # noqa: E402

OUT = ROOT / "out" / "rails"
SIZE = 2 << 20


def expect(condition, what, job):
    if not condition:
        raise Failure(what, log=job.logs[0])


def wait_until(condition, what, job, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        job.check_alive()
        expect(time.monotonic() < deadline, f"{what}: not within {seconds} s", job)
        time.sleep(0.1)


def used_again(job, rail):
    """Waits until the rail has carried more data than when this began."""
    before = job.operations()[-1].sent[rail]
    wait_until(lambda: job.operations()[-1].sent[rail] > before + SIZE // 8,
               f"rail {rail} carries data again", job)
