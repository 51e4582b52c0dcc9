# SPDX-License-Identifier: Apache-2.0
"""The device plugin and the kubelets are restarted under a running job."""

import contextlib
import re
import time

from documents import at_ease, until_told, with_sizes
from main_job import parse_log
from plugin_pods import plugin_pods, plugin_pods_ready
from stage import NAMESPACE, PATIENCE, expect
from railbed.console import Failure, wait_for


def restarts_do_not_disturb(stage):
    """The device plugin is deleted, then the kubelets are killed, under a running job."""
    pods = stage.submit_held(at_ease(until_told(
        with_sizes(stage.example("steady"), "1M", "1M", "-n", "1", warmup=0))))
    stage.release(pods)
    stage.wait_until_it_moves("steady")
    why = {labels["rank"]: labels.get("unauthenticated", "")
           for labels, _ in stage.query('railhead_runtime_info{job="steady"}')}
    expect(why == {"0": "", "1": ""}, f"ranks are not authenticated: {why}")
    nodes = [int(pod["spec"]["nodeName"].split("-")[1]) for pod in pods]
    secret = stage.secret_of(pods)

    def processes():
        """Returns the ranks' process ids."""
        return [stage.cluster.on_node(node, "pgrep -x railhead-perf")[1].split() for node in nodes]

    ranks = processes()
    old = {pod["metadata"]["uid"] for pod in plugin_pods(stage)}
    agents = {pod["spec"]["nodeName"] for pod in plugin_pods(stage)}
    begin = time.monotonic()
    stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l",
                          "app.kubernetes.io/component=device-plugin", "--wait=false")
    wait_for("new plugin pods are ready", lambda: plugin_pods_ready(stage) and not old & {
        pod["metadata"]["uid"] for pod in plugin_pods(stage)}, PATIENCE, interval=1)
    wait_for("both kubelets have taken the new plugins' devices",
             lambda: _registered(stage, dict.fromkeys(agents, 0)), PATIENCE, interval=1)
    stage.console.line(f"    rdma/hca is back {time.monotonic() - begin:.1f} s after the plugin's deletion")
    stage.wait_until_it_moves("steady")

    before = _registrations(stage)
    expect(set(before) == agents, f"only the agents of {sorted(before)} answer")
    begin = time.monotonic()
    for node in (1, 2):
        stage.cluster.on_node(node, "pkill -KILL -x kubelet")
    # The API server would still show the allocatable resources from before; the agents know the current state.
    wait_for("both kubelets have begun anew and taken the devices",
             lambda: _registered(stage, before), PATIENCE, interval=1)
    stage.console.line(f"    rdma/hca is back {time.monotonic() - begin:.1f} s after the kubelets were killed")
    stage.wait_for_hcas(PATIENCE)
    stage.wait_until_it_moves("steady")
    expect(processes() == ranks, f"the ranks were the processes {ranks}, and are {processes()}")
    expect(stage.secret_of(pods) == secret, "the job's secret has changed")
    stage.finish(pods)
    expect(stage.wait_for_job("steady") == "Complete", "the running job was disturbed")
    pods = stage.pods("steady")
    expect(all(p["status"]["containerStatuses"][0]["restartCount"] == 0 for p in pods),
           "a container was restarted")
    parsed = parse_log(stage.logs(pods[0]))
    expect(parsed.transport == "verbs", "the job left verbs")
    expect(parsed.verified == "yes" and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    # Both nodes really offer devices to new pods.
    stage.submit(with_sizes(stage.example("after"), "8", "8"))
    expect(stage.wait_for_job("after") == "Complete", "a new job does not run after the restarts")


def _registrations(stage):
    """Returns {node: how often its agent has registered with the kubelet}, without agents that do not respond."""
    counts = {}
    for pod in plugin_pods(stage):
        with contextlib.suppress(Failure, KeyError):
            page = stage.fetch(f"http://{pod['status']['podIP']}:9401/metrics")
            found = re.search(r"^railhead_agent_registrations_total{.*} (\S+)$", page, re.M)
            counts[pod["spec"]["nodeName"]] = float(found[1]) if found else 0
    return counts


def _registered(stage, before):
    """Returns whether every node's agent has registered with its kubelet since then."""
    now = _registrations(stage)
    return all(now.get(node, 0) > count for node, count in before.items())
