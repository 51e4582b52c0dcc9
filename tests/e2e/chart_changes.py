# SPDX-License-Identifier: Apache-2.0
"""The chart on the cluster: a wrong value, an upgrade, and the uninstall, which leaves nothing."""

from documents import with_sizes
from stage import NAMESPACE, PATIENCE, ROOT, expect
from railbed.console import Failure, wait_for


def chart_refuses_unknown_values(stage):
    """A misspelt value is reported, not ignored."""
    answer = stage.cluster.helm("upgrade", "railhead", ROOT / "charts" / "railhead", "--namespace",
                                NAMESPACE, "--set", "operator.replica=3", check=False)
    expect(answer.returncode != 0 and "replica" in answer.stderr, f"helm said: {answer.stderr}")


def upgrade_keeps_the_webhook(stage):
    """helm upgrade does not change the certificates: the next pod is still injected."""
    stage.upgrade("--set", "operator.environment.NCCL_DEBUG=TRACE")
    stage.wait_for_hcas(PATIENCE)
    stage.submit(with_sizes(stage.example("upgraded"), "8", "8"))
    expect(stage.wait_for_job("upgraded") == "Complete", "the job did not complete")
    env = {e["name"]: e.get("value") for e in stage.pods("upgraded")[0]["spec"]["containers"][0]["env"]}
    expect(env.get("NCCL_DEBUG") == "TRACE", f"NCCL_DEBUG is {env.get('NCCL_DEBUG')}")


def uninstall_leaves_nothing(stage):
    """Uninstalling the chart removes everything that came with it, from the cluster and the nodes."""
    # The test deletes the users' objects itself; "kubernetes" is the API server's own service.
    stage.cluster.kubectl("delete", "jobs,pods,services", "--field-selector",
                          "metadata.name!=kubernetes", "--wait=true", seconds=600)
    stage.upgrade("--set", "crds.keep=false")  # otherwise the kinds stay
    stage.cluster.helm("uninstall", "railhead", "--namespace", NAMESPACE, "--wait")

    def gone():
        return stage.objects() <= stage.objects_before and (
            [stage.traces_on_node(n) for n in (1, 2)] == stage.traces_before) and (
            not any(any(stage.told_of(n).values()) for n in (1, 2)))

    try:
        wait_for("all is as before", gone, PATIENCE, interval=2)
    except Failure:
        left = sorted(stage.objects() - stage.objects_before)
        files = [stage.traces_on_node(n) for n in (1, 2)]
        raise Failure(f"left behind: {left}; files on the nodes: {files}, "
                      f"before: {stage.traces_before}; the nodes still say "
                      f"{[stage.told_of(n) for n in (1, 2)]}") from None


def traces_on_node(stage, node):
    """Returns files that the agent could leave on a node, except for its rail map, which stays. Folders of the kubelet
    and of CDI are not its own."""
    return stage.cluster.on_node(
        node, "find /var/lib/kubelet/device-plugins /var/run/cdi /etc/cdi -mindepth 1 ! -name 'kubelet*' "
        "! -path /var/lib/kubelet/device-plugins/railhead ! -name rail-map.json 2>/dev/null; "
        "find /run/railhead /var/lib/railhead 2>/dev/null; true")[1]
