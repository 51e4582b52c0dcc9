# SPDX-License-Identifier: Apache-2.0
"""`helm test` on real nodes: it passes, is skipped if there are no rails, and fails with a dead rail."""

import contextlib
import re

from stage import NAMESPACE, expect
from railbed.console import wait_for


def helm_test_passes_skips_and_fails(stage):
    """An all-reduce between two pods with GB/s of each rail; skipped without rails; a failure names its cause."""
    stage.with_options()
    last = stage.cluster.rails - 1
    code, words = _helm_test(stage)
    expect(code == 0 and words[-1].startswith("PASS: two ranks agree on every value, over 2 rails of RDMA"), words)
    rates = [line for line in words if re.fullmatch(rf"[0-{last}] +rxe\d +\d+\.\d+", line)]
    expect(len(rates) == stage.cluster.rails, f"GB/s of each rail: {words}")
    _show(stage, words)

    # Both nodes see all their ports up, but the cable leads nowhere.
    stage.cluster.network.set_wire(2, last, "down")
    try:
        code, words = _helm_test(stage)
    finally:
        stage.cluster.network.set_wire(2, last, "up")
    expect(code != 0 and words[-1].startswith("FAIL: ") and f"rail {last}" in words[-1], words)
    _show(stage, words)

    with _links_down(stage, {2: [last]}):
        code, words = _helm_test(stage)
    expect(code != 0 and re.match(r"FAIL: two ranks with 2 HCAs each need 4 healthy ones, and only 3 of 4 are", words[-1]), words)
    _show(stage, words)

    rails = range(stage.cluster.rails)
    with _links_down(stage, {1: rails, 2: rails}):
        code, words = _helm_test(stage)
    expect(code == 0 and words[-1] == "SKIP: no node offers rdma/hca", words)
    _show(stage, words)
    left = stage.cluster.get("statefulsets", "-n", NAMESPACE)["items"]
    expect(not left, f"left behind: {[one['metadata']['name'] for one in left]}")


def _helm_test(stage):
    """Returns its exit status, and the output of the test's pod."""
    done = stage.cluster.helm("test", "railhead", "--namespace", NAMESPACE, "--timeout", "400s", check=False, seconds=450)
    text = stage.cluster.kubectl("-n", NAMESPACE, "logs", "railhead-test").stdout
    return done.returncode, text.strip().splitlines()


def _show(stage, words):
    stage.console.line(f"    {words[-1]}")


@contextlib.contextmanager
def _links_down(stage, links):
    """Takes these rails of these nodes down inside the `with`; their agents have detected it."""
    def offered():
        return {int(node["metadata"]["name"].split("-")[1]): int(node["status"]["allocatable"].get("rdma/hca", "0"))
                for node in stage.cluster.get("nodes")["items"]}

    down = {node: list(rails) for node, rails in links.items()}
    for node, rails in down.items():
        stage.cluster.on_node(node, "; ".join(f"ip link set eth{rail + 1} down" for rail in rails))
    try:
        wait_for("the nodes offer less", lambda: all(
            offered().get(node) == stage.cluster.rails - len(rails) for node, rails in down.items()), 60, interval=1)
        yield
    finally:
        for node, rails in down.items():
            stage.cluster.on_node(node, "; ".join(f"ip link set eth{rail + 1} up" for rail in rails))
        stage.wait_for_hcas(180)
