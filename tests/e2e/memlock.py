# SPDX-License-Identifier: Apache-2.0
"""Pinned memory of pods that do not run as root: RDMA pins all memory that a NIC reads or writes."""

import json

from stage import NAMESPACE, PATIENCE, expect
from railbed.console import wait_for

NODE = 1


def who_holds_an_hca_may_pin_memory(stage):
    """With devicePlugin.memlock, pods with an HCA may pin memory without limit, also after a restart of the container
    runtime; other pods keep its limit."""
    usual = _limit(stage, "pins-little", hcas=1)
    expect(usual != "unlimited", "the node has no limit of locked memory that could be raised")
    stage.with_options()
    expect(_limit(stage, "pins", hcas=1) == "unlimited", "the limit of a pod with an HCA was not raised")
    expect(_limit(stage, "pins-nothing", hcas=0) == usual, "the limit of a pod without an HCA changed")
    stage.cluster.on_node(NODE, "pkill -x containerd")
    wait_for("the container runtime is back and asks the plugin", lambda: _registrations(stage) == 2,
             PATIENCE, interval=1)
    expect(_limit(stage, "pins-again", hcas=1) == "unlimited", "not raised after the runtime's restart")


def _registrations(stage):
    """Returns how often the runtime of NODE has accepted the plugin."""
    pod, = stage.cluster.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=memlock",
                             "--field-selector", f"spec.nodeName=node-{NODE}")["items"]
    log = stage.cluster.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"], check=False).stdout
    return log.count("registered with ")


def _limit(stage, name, hcas):
    """Returns the output of `ulimit -l` in an unprivileged pod on NODE: KiB, or "unlimited"."""
    stage.cluster.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": f"node-{NODE}"},
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
            "containers": [{
                "name": "main", "image": "docker.io/railhead/runtime:0.1.0",
                "command": ["/bin/sh", "-c", "ulimit -l"],
                "resources": {"limits": {"rdma/hca": hcas}} if hcas else {}}]}}))
    wait_for(f"pod {name} is over", lambda: stage.cluster.get("pod", name)["status"]["phase"] == "Succeeded",
             PATIENCE, interval=1)
    return stage.cluster.kubectl("logs", name).stdout.strip()
