# SPDX-License-Identifier: Apache-2.0
"""The rails as iWARP devices (siw) instead of RoCE ones (rxe)."""

import contextlib
import json

from conformance import conformance
from documents import pod_of, with_sizes
from main_job import parse_log
from plugin_pods import plugin_pods_ready
from stage import NAMESPACE, PATIENCE, expect
from railbed.console import Failure, wait_for


def iwarp_rails(stage):
    """The same rails as iWARP (siw): discovered, allocated to pods, and an all-reduce over verbs."""
    with _iwarp(stage):
        documents = with_sizes(stage.example("iwarp"), "8", "1M", "-n", "3")
        # iWARP's connection manager accepts only addresses of the pod's own network.
        pod_of(documents).update(
            hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
        stage.submit(documents)
        outcome = stage.wait_for_job("iwarp")
        logs = [stage.logs(pod) for pod in stage.pods("iwarp")]
        expect(outcome == "Complete", f"the job did not complete: {logs[0].strip()[-600:]}")
        parsed = parse_log(logs[0])
        expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
        expect(parsed.degraded == "no", f"degraded: {parsed.degraded}")
        expect(parsed.verified == "yes" and all(row.wrong == 0 for row in parsed.rows),
               "wrong results")
        expect(sorted(device for device, _, _ in parsed.rails.values()) ==
               [f"siw{rail}" for rail in range(stage.cluster.rails)], f"rails: {parsed.rails}")
        expect(all(sent > 0 and received > 0 for _, sent, received in parsed.rails.values()),
               f"a rail carried nothing: {parsed.rails}")
        last = parsed.rows[-1]
        stage.console.line(f"    {last.size} bytes: {last.busbw / 1e6:.2f} MB/s over "
                           f"{len(parsed.rails)} rails; 8 bytes: {parsed.rows[0].time_us:.0f} us")
        conformance(stage, "conforming-iwarp", hostNetwork=True,
                    dnsPolicy="ClusterFirstWithHostNet")


@contextlib.contextmanager
def _iwarp(stage):
    """Makes the rails iWARP (siw) inside the `with`; the nodes report it. Restores them afterwards."""
    def offers(kind):
        facts = [json.loads(stage.told_of(node)["annotations"].get("railhead.io/node-facts", "{}"))
                 for node in range(1, stage.cluster.nodes + 1)]
        return all([(rail["device"], rail["usable"]) for rail in node.get("rails", [])] ==
                   [(f"{kind}{rail}", True) for rail in range(stage.cluster.rails)]
                   for node in facts)

    def agents_find(kind):
        # A running agent would keep the rails of devices that have vanished.
        stage.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l",
                              "app.kubernetes.io/component=device-plugin")
        wait_for("the agents are back", lambda: plugin_pods_ready(stage), PATIENCE)
        wait_for(f"the nodes say that their rails are {kind}", lambda: offers(kind), PATIENCE)
        stage.wait_for_hcas(PATIENCE)

    try:
        with stage.cluster.rails_as("siw"):
            agents_find("siw")
            yield
    except Exception:
        # Cleans up for later test cases; the original failure is the one to report.
        with contextlib.suppress(Failure):
            agents_find("rxe")
        raise
    agents_find("rxe")
