# SPDX-License-Identifier: Apache-2.0
"""A job that no node has room for."""

from documents import container_of
from stage import PATIENCE, expect
from railbed.console import wait_for


def too_many_hcas_stay_pending(stage):
    """More HCAs than any node has: the job stays Pending, with the scheduler's own reason."""
    documents = stage.example("greedy")
    limits = container_of(documents)["resources"]["limits"]
    limits["rdma/hca"] = stage.cluster.rails + 1
    stage.submit(documents)
    try:
        stays_pending(stage)
    finally:
        # A later test case adds nodes that are large enough.
        stage.cluster.kubectl("delete", "job", "greedy", "--cascade=foreground")


def stays_pending(stage):
    def reason():
        for pod in stage.pods("greedy"):
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return condition["message"]
        return None

    message = wait_for("the scheduler gives its reason", reason, PATIENCE)
    stage.console.line(f"    {message}")
    expect("Insufficient rdma/hca" in message, f"the reason is: {message}")
    expect(all(p["status"]["phase"] == "Pending" for p in stage.pods("greedy")), "not Pending")
