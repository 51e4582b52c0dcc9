# SPDX-License-Identifier: Apache-2.0
"""Jobs that start together, in the order of the fabric: four nodes in two leaves."""

import contextlib
import json

from documents import container_of, job_of, with_sizes
from main_job import parse_log
from stage import PATIENCE, ROOT, expect
from railbed.console import wait_for
from railbed.machine import Machine

LEAF = "topology.railhead.io/leaf"
LEAVES = {"node-1": "west", "node-2": "east", "node-3": "west", "node-4": "east"}


def a_gang_lands_in_one_leaf(stage):
    """A job starts as a whole in one leaf, its ranks in the fabric's order; one without room waits."""
    step = stage.console.step
    stage.with_options()
    try:
        with contextlib.ExitStack() as stack:
            with step("two more nodes, and labels that say which leaf each is in"):
                stack.enter_context(stage.cluster.more_nodes([Machine(stage.cluster.rails)] * 2))
                for node, leaf in LEAVES.items():
                    stage.cluster.kubectl("label", "node", node, f"{LEAF}={leaf}")
                stage.wait_for_hcas(PATIENCE)
            order = _published(stage)
            try:
                _gangs(stage, order)
            finally:
                stage.cluster.kubectl("delete", "job,pod", "-l", "scene=gangs", "--wait=true",
                                      seconds=PATIENCE)
    finally:
        stage.cluster.kubectl("label", "nodes", "--all", f"{LEAF}-")


def _published(stage):
    """Checks the published fabric; returns the nodes in its order."""
    def told():
        status = stage.cluster.get("ft", "cluster")["status"]
        return status if {leaf["name"]: leaf["nodes"] for leaf in status.get("leaves", [])} == {
            "east": 2, "west": 2} and all(c["status"] == "True" for c in status["conditions"]) else None

    wait_for("the FabricTopology has both leaves", told, PATIENCE, interval=1,
             advice="kubectl describe ft cluster")
    tree = stage.cluster.run_inside([ROOT / "build/release/cli/railhead", "topology", "--kubeconfig",
                                     stage.cluster.kubeconfig]).stdout
    for line in tree.splitlines():
        stage.console.line(f"    {line}")
    expect("leaf east  2 nodes" in tree and "leaf west  2 nodes" in tree, "no such tree")
    label = "railhead.io/topology-node"

    def labelled():
        nodes = stage.cluster.get("nodes")["items"]
        return nodes if all(label in node["metadata"]["labels"] for node in nodes) else None

    nodes = sorted(wait_for("every node has its place as a label", labelled, PATIENCE, interval=1),
                   key=lambda node: [node["metadata"]["labels"][f"railhead.io/topology-{level}"]
                                     for level in ("leaf", "node")])
    return [node["metadata"]["name"] for node in nodes]


def _gangs(stage, order):
    """One leaf has only one free node: a gang goes to the other leaf, and the next gang waits for that one."""
    step = stage.console.step
    stage.cluster.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder", "labels": {"scene": "gangs"}},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "node-1"},
                 "terminationGracePeriodSeconds": 0,
                 "containers": [{"name": "main", "image": "docker.io/railhead/runtime:0.1.0",
                                 "command": ["sleep", "3600"],
                                 "resources": {"limits": {"rdma/hca": stage.cluster.rails}}}]}}))
    wait_for("a pod holds the HCAs of node-1",
             lambda: stage.cluster.get("pod", "holder")["status"]["phase"] == "Running", PATIENCE,
             interval=1)
    with step("a job of two, where only one leaf has two free nodes"):
        first = stage.submit_held(_gang(stage, "first"))
        _expect_places(first, "east", order)
    with step("another one, which has no room yet"):
        stage.submit(_gang(stage, "second"))
        why = wait_for("it is told why", lambda: _waiting(stage, "second"), PATIENCE, interval=1)
        stage.console.line(f"    {why}")
        pods = stage.pods("second")
        expect(len(pods) == 2 and all("nodeName" not in pod["spec"] for pod in pods),
               "a part of the job has a node")
        stage.cluster.kubectl("delete", "pod", "holder", "--wait=true")
        _finish(stage, "second", "west", order)
    with step("the first one's results"):
        stage.release(first)
        _finish(stage, "first", "east", order)


def _gang(stage, name):
    """Returns the example as a gang that prints NCCL's variables."""
    documents = with_sizes(stage.example(name), "8", "64K")
    job_of(documents)["metadata"]["labels"] = {"railhead.io/gang": "true", "scene": "gangs"}
    container = container_of(documents)
    container["command"] = ["/bin/sh", "-c", 'echo "NCCL_IB_HCA is $NCCL_IB_HCA"; exec "$@"', "sh",
                            *container["command"]]
    return documents


def _waiting(stage, job):
    events = stage.cluster.get("events", "--field-selector", "reason=GangWaiting")["items"]
    return next((e["message"] for e in events if e["involvedObject"]["name"].startswith(job)), None)


def _expect_places(pods, leaf, order):
    nodes = [pod["spec"]["nodeName"] for pod in pods]
    expect([LEAVES[node] for node in nodes] == [leaf] * len(nodes), f"it runs on {nodes}")
    expect(nodes == sorted(nodes, key=order.index), f"the ranks run on {nodes}, the fabric is {order}")


def _finish(stage, job, leaf, order):
    expect(stage.wait_for_job(job) == "Complete", f"{job} did not complete")
    pods = stage.pods(job)
    _expect_places(pods, leaf, order)
    rails = ",".join(f"rxe{rail}:1:{rail}" for rail in range(stage.cluster.rails))
    for pod in pods:
        expect(f"NCCL_IB_HCA is ={rails}\n" in stage.logs(pod), "NCCL_IB_HCA does not name the rails")
    parsed = parse_log(stage.logs(pods[0]))
    expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
    expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
