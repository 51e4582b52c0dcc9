# SPDX-License-Identifier: Apache-2.0
"""What users write in their jobs stays; Railhead adds the rest."""

from documents import with_env, with_sizes
from stage import expect


def user_values_win(stage):
    """The user's values stay; the others are injected, once, into the container that requests RDMA."""
    documents = with_sizes(stage.example("mine"), "8", "8")
    with_env(documents, MASTER_PORT="31234", NCCL_DEBUG="INFO")
    stage.submit(documents)
    expect(stage.wait_for_job("mine") == "Complete", "the job did not complete")
    for rank, pod in enumerate(stage.pods("mine")):
        env = [e for e in pod["spec"]["containers"][0]["env"]]
        names = [e["name"] for e in env]
        expect(len(names) == len(set(names)), f"a name twice in {names}")
        values = {e["name"]: e.get("value") for e in env}
        for name, value in (("RANK", str(rank)), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "mine-0.mine"),
                            ("MASTER_PORT", "31234"), ("NCCL_DEBUG", "INFO"),
                            ("RAILHEAD_JOB", "mine")):
            expect(values.get(name) == value, f"rank {rank}: {name} is {values.get(name)}, not {value}")
        kept = pod["metadata"]["annotations"]["railhead.io/kept-environment"].split(",")
        expect(sorted(kept) == ["MASTER_PORT", "NCCL_DEBUG"], f"kept-environment says {kept}")
    # A pod that requests no rdma/* is not changed.
    stage.cluster.kubectl("run", "plain", "--image=docker.io/railhead/runtime:0.1.0",
                          "--restart=Never", "--command", "--", "/bin/true")
    plain = stage.cluster.get("pod", "plain")
    expect("env" not in plain["spec"]["containers"][0], "a pod without rdma/* got an environment")
    stage.cluster.kubectl("delete", "pod", "plain", "--wait=false")
