# SPDX-License-Identifier: Apache-2.0
"""The example's documents, and changes to them."""


def job_of(documents):
    return next(d for d in documents if d["kind"] == "Job")


def pod_of(documents):
    """Returns the specification of the job's pods."""
    return job_of(documents)["spec"]["template"]["spec"]


def container_of(documents):
    return pod_of(documents)["containers"][0]


def keeping_failed_pods(documents):
    """Lets each index of the job fail separately. Otherwise a failed job ends its running pods, with their logs."""
    spec = job_of(documents)["spec"]
    del spec["backoffLimit"]
    spec["backoffLimitPerIndex"] = 0
    return documents


def without_rdma_on_rank_1(documents):
    """Removes the device nodes from rank 1, before its command begins."""
    container = container_of(documents)
    take = 'if [ "$RANK" = 1 ]; then rm /dev/infiniband/uverbs*; fi && exec "$@"'
    container["command"] = ["/bin/sh", "-c", take, "sh"] + container["command"]
    # As root: only root may remove a device node from its own container.
    pod_of(documents)["securityContext"] = {}
    container["securityContext"] = {}
    return documents


def with_sizes(documents, begin, end, *more, warmup=5):
    container_of(documents)["command"] = ["railhead-perf", "all_reduce", "-b", begin, "-e", end,
                                          "-f", "4", "-w", str(warmup), "--check", *more]
    return documents


def until_told(documents):
    """Repeats the example's all-reduce until stage.Stage.finish()."""
    container_of(documents)["command"] += ["--until", "/work/end"]
    return documents


def at_ease(documents):
    """Limits the ranks to a third of a CPU, if a test case only needs a running job. The emulated nodes need the
    rest."""
    container_of(documents)["resources"]["requests"]["cpu"] = "300m"
    container_of(documents)["resources"]["limits"]["cpu"] = "300m"
    return documents


def with_env(documents, **values):
    container_of(documents).setdefault("env", []).extend(
        {"name": name, "value": value} for name, value in values.items())
    return documents
