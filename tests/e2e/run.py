# SPDX-License-Identifier: Apache-2.0
"""make e2e: the main job and its faults, on one real cluster.

usage: run.py [SCENE...]     default: all but the long ones; --long: the long ones; KEEP=1 leaves the cluster up
"""

import os
import signal
import sys
import traceback

from aligned_sets import aligned_sets
from alerts import alerts_fire_and_end, no_alert_while_all_is_well
from chart_changes import (chart_refuses_unknown_values, traces_on_node, uninstall_leaves_nothing,
                           upgrade_keeps_the_webhook)
from conformance import every_collective_is_right
from doctor_faults import doctor_names_each_fault
from gangs import a_gang_lands_in_one_leaf
from helm_test import helm_test_passes_skips_and_fails
from interrupted_demo import an_interrupt_is_no_answer, interrupted_demo_leaves_nothing
from iwarp import iwarp_rails
from lost_device import lost_device_falls_back_loudly, required_rdma_fails_fast
from lost_rail import a_lost_rail_is_survived
from main_job import main_job
from memlock import who_holds_an_hca_may_pin_memory
from nccl_memory import nccl_memory_is_written_by_nics
from networks import multus_host_device, multus_ipvlan, multus_macvlan, rdma_exclusive
from node_reports import a_dead_link_is_told_and_recovers, nodes_say_what_they_have
from own_gid import a_pod_takes_its_own_gid
from pending_job import too_many_hcas_stay_pending
from preflight import preflight_tells_what_is_wrong
from restarts import restarts_do_not_disturb
from slow_alerts import slow_parts_raise_alerts
from stage import FOLDER, NAMESPACE, PATIENCE, Stage
from user_values import user_values_win
from railbed.console import Console, Failure, wait_for

ON_THE_CLUSTER = (main_job, nodes_say_what_they_have, user_values_win, lost_device_falls_back_loudly,
                  required_rdma_fails_fast, restarts_do_not_disturb, a_lost_rail_is_survived,
                  every_collective_is_right, nccl_memory_is_written_by_nics, preflight_tells_what_is_wrong, a_pod_takes_its_own_gid,
                  a_dead_link_is_told_and_recovers, too_many_hcas_stay_pending, chart_refuses_unknown_values,
                  upgrade_keeps_the_webhook, uninstall_leaves_nothing)
WITHOUT = (an_interrupt_is_no_answer, interrupted_demo_leaves_nothing)
# With the pods' networks by Multus.
WITH_MULTUS = (multus_macvlan, multus_ipvlan, multus_host_device)
# Test cases of minutes or hours; `make soak` runs them, and then uninstalls the chart.
LONG = (iwarp_rails, who_holds_an_hca_may_pin_memory, aligned_sets, a_gang_lands_in_one_leaf,
        helm_test_passes_skips_and_fails, doctor_names_each_fault, alerts_fire_and_end, slow_parts_raise_alerts,
        no_alert_while_all_is_well, *WITH_MULTUS, rdma_exclusive)


def kernels_trouble(stage):
    """Returns errors that the nodes' kernels have logged since their boot: the last lines, to append to a reason."""
    bad = "BUG|WARNING|Oops|Call Trace|Out of memory|hung|stall"
    told = ""
    for node in range(1, stage.cluster.nodes + 1):
        try:
            log = stage.cluster.on_node(node, f"dmesg | grep -E '{bad}'", check=False)[1]
        except Failure as failure:
            log = str(failure)
        if log.strip():
            told += f"; the kernel of node-{node}: {' | '.join(log.strip().splitlines()[-5:])}"
    return told


def play(console, stage, scene):
    """Returns why the scene failed, or None."""
    console.line(f"=== {scene.__name__}: {scene.__doc__}")
    try:
        with console.step(scene.__name__):
            scene(stage)
        return None
    except Failure as failure:
        console.failed(failure)
        return str(failure) + (kernels_trouble(stage) if stage else "")
    except Exception as failure:  # an exception fails this test case; the others still run
        console.plain(traceback.format_exc())
        return repr(failure)


def main():
    console = Console()
    chosen = sys.argv[1:]
    if chosen == ["--long"]:
        chosen = [scene.__name__ for scene in (*LONG, uninstall_leaves_nothing)]
    known = {scene.__name__ for scene in (*ON_THE_CLUSTER, *WITHOUT, *LONG)}
    if unknown := set(chosen) - known:
        sys.exit(f"run.py: no scene is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = {}
    on_cluster = [s for s in (*LONG, *ON_THE_CLUSTER) if s.__name__ in chosen] if chosen else ON_THE_CLUSTER
    stage = Stage(console, FOLDER)
    if on_cluster:
        stage.down()  # left over from KEEP=1 or a killed run
        try:
            stage.up(cni=not set(WITH_MULTUS).isdisjoint(on_cluster))
            # The administrator owns the namespace: helm does not remove it even if --create-namespace created it.
            stage.cluster.kubectl("create", "namespace", NAMESPACE)
            wait_for("the namespace is furnished", lambda: stage.cluster.kubectl(
                "-n", NAMESPACE, "get", "configmap/kube-root-ca.crt", "serviceaccount/default",
                check=False).returncode == 0, PATIENCE)
            stage.objects_before = stage.objects()
            stage.traces_on_node = lambda node: traces_on_node(stage, node)
            stage.traces_before = [stage.traces_on_node(n) for n in (1, 2)]
            stage.install()
            for scene in on_cluster:
                results[scene.__name__] = play(console, stage, scene)
        except Failure as failure:
            console.failed(failure)
            results["the stage"] = str(failure)
        finally:
            if os.environ.get("KEEP") != "1":
                stage.down()
    for scene in WITHOUT:
        if not chosen or scene.__name__ in chosen:
            results[scene.__name__] = play(console, None, scene)
    for name, why in results.items():
        console.plain(f"passed  {name}" if why is None else f"FAILED  {name}: {why}")
    failed = sum(why is not None for why in results.values())
    console.plain(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
