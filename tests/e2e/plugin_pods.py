# SPDX-License-Identifier: Apache-2.0
"""The pods of the device plugin, which is the node agent."""

from stage import NAMESPACE


def plugin_pods(stage):
    return stage.cluster.get("pods", "-n", NAMESPACE, "-l",
                             "app.kubernetes.io/component=device-plugin")["items"]


def plugin_pods_ready(stage):
    pods = plugin_pods(stage)
    return len(pods) == stage.cluster.nodes and all(
        "deletionTimestamp" not in p["metadata"] and any(
            c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))
        for p in pods)
