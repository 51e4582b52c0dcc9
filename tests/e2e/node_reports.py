# SPDX-License-Identifier: Apache-2.0
"""What the node agents report of their nodes: labels, facts, the condition, and a rail that goes down and up."""

import contextlib
import json
import re
import time

from documents import container_of
from stage import NAMESPACE, PATIENCE, expect
from railbed.console import wait_for


def nodes_say_what_they_have(stage):
    """Nodes have labels for selectors, an annotation for the operator, and a condition for people."""
    for node in range(1, stage.cluster.nodes + 1):
        told = wait_for("the agent has told of its node",
                        lambda: (t := stage.told_of(node))["condition"] and t, PATIENCE)
        rails = stage.cluster.rails
        labels = told["labels"]
        expect(labels.get("railhead.io/rails") == str(rails) and
               labels.get("railhead.io/link-layer") == "Ethernet" and
               labels.get("railhead.io/gpus") == "0" and
               "railhead.io/memlock-bytes" in labels, f"the labels are {labels}")
        facts = json.loads(told["annotations"]["railhead.io/node-facts"])
        expect([rail["device"] for rail in facts["rails"]] == [f"rxe{r}" for r in range(rails)] and
               all(rail["usable"] for rail in facts["rails"]), f"the facts are {facts}")
        expect(told["condition"] == f"True AllRailsUp: all {rails} rails carry data", told["condition"])

    def in_use():
        return stage.told_of(2)["annotations"].get("railhead.io/rails-in-use")

    with _holder(stage, 1):
        wait_for("the agent tells which rail a pod holds", lambda: in_use() == "0", PATIENCE)
    wait_for("no rail is in use any more", lambda: in_use() is None, PATIENCE)
    # An agent's token is valid for its own node only.
    agent = next(p["metadata"]["name"] for p in stage.cluster.get("pods", "-n", NAMESPACE)["items"]
                 if p["spec"]["nodeName"] == "node-1" and "device-plugin" in p["metadata"]["name"])
    token = stage.cluster.kubectl("create", "token", "railhead-device-plugin", "-n", NAMESPACE,
                                  "--bound-object-kind=Pod",
                                  f"--bound-object-name={agent}").stdout.strip()
    for node, allowed in ((1, True), (2, False)):
        done = stage.cluster.kubectl(
            "--kubeconfig=/dev/null", f"--server={stage.cluster.server}",
            f"--certificate-authority={stage.cluster.pki.ca}", f"--token={token}", "label", "node",
            f"node-{node}", "railhead.io/test=1", check=False)
        expect((done.returncode == 0) == allowed, f"node-{node}: {done.stderr}")
    stage.cluster.kubectl("label", "node", "node-1", "railhead.io/test-")


def a_dead_link_is_told_and_recovers(stage):
    """A rail under a pod goes down: node, pod status and metrics report it. Then it recovers by itself."""
    with _holder(stage, stage.cluster.rails):
        try:
            _link_goes_down_and_up(stage)
        finally:
            stage.cluster.on_node(2, f"ip link set eth{stage.cluster.rails} up")


def _link_goes_down_and_up(stage):

    def health():
        """Returns {device: health} from the pod's status."""
        status = stage.cluster.get("pod", "holder")["status"]["containerStatuses"][0]
        return {device["resourceID"].partition("-")[0]: device["health"]
                for resource in status.get("allocatedResourcesStatus", [])
                for device in resource.get("resources", [])}

    def shown(device, healthy):
        agent = next(p for p in stage.cluster.get("pods", "-n", NAMESPACE)["items"]
                     if p["spec"]["nodeName"] == "node-2" and "device-plugin" in p["metadata"]["name"])
        lines = stage.fetch(f"http://{agent['status']['podIP']}:9401/metrics").splitlines()
        return any(re.match(rf'railhead_device_healthy{{.*device="{device}".*pod="holder".*}} {healthy}$',
                            line) for line in lines)

    def offered():
        return stage.cluster.get("node", "node-2")["status"]["allocatable"].get("rdma/hca")

    last = stage.cluster.rails - 1
    device, interface = f"rxe{last}", f"eth{last + 1}"
    begin = time.monotonic()
    stage.cluster.on_node(2, f"ip link set {interface} down")
    wait_for("the pod's status says that its device is unhealthy",
             lambda: health().get(device) == "Unhealthy", PATIENCE)
    told = time.monotonic() - begin
    wait_for("the node offers one device less", lambda: offered() == str(last), PATIENCE)
    stage.console.line(f"    link down: in the pod's status after {told:.1f} s, in the node's after "
                       f"{time.monotonic() - begin:.1f} s (the kubelet reports its node every 10 s)")
    wait_for("the metrics say so", lambda: shown(device, 0), PATIENCE)
    wait_for("the node's condition names the rail",
             lambda: f"rail {last} ({device}): " in stage.told_of(2)["condition"], PATIENCE)
    expect(stage.told_of(2)["condition"].startswith("False"), stage.told_of(2)["condition"])

    def events():
        return [event["message"] for event in stage.cluster.get(
            "events", "--field-selector", "involvedObject.name=node-2,reason=RailDown")["items"]]

    wait_for("an Event of the node names the rail",
             lambda: any(message.startswith(f"rail {last} ({device}): ") for message in events()), PATIENCE)
    expect(health().get("rxe0") == "Healthy", f"the other device is {health().get('rxe0')}")
    begin = time.monotonic()
    stage.cluster.on_node(2, f"ip link set {interface} up")
    wait_for("the device is healthy again", lambda: health().get(device) == "Healthy", PATIENCE)
    stage.console.line(f"    link up: healthy again after {time.monotonic() - begin:.1f} s "
                       "(it has to be well for 10 s, for 2 minutes when it has gone up and down often)")
    wait_for("the metrics say so", lambda: shown(device, 1), PATIENCE)
    wait_for("the node's condition is True again",
             lambda: stage.told_of(2)["condition"].startswith("True"), PATIENCE)


@contextlib.contextmanager
def _holder(stage, hcas):
    """Runs the pod `holder` on node 2 inside the `with`; it holds `hcas` HCAs."""
    container = container_of(stage.example("holder"))
    container.update(command=["sleep", "3600"], env=[])
    container["resources"]["limits"]["rdma/hca"] = hcas
    stage.cluster.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder"},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "node-2"}, "containers": [container],
                 "terminationGracePeriodSeconds": 1}}))
    try:
        wait_for("the pod runs",
                 lambda: stage.cluster.get("pod", "holder")["status"]["phase"] == "Running", PATIENCE, interval=1)
        yield
    finally:
        stage.cluster.kubectl("delete", "pod", "holder", "--wait=true")
        stage.wait_for_hcas(PATIENCE)
