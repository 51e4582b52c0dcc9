# SPDX-License-Identifier: Apache-2.0
"""A rail of a running job is lost and comes back."""

import contextlib
import re
import time

from documents import at_ease, until_told, with_sizes
from main_job import parse_log
from stage import PATIENCE, ROOT, expect
from railbed.console import Failure, wait_for
from railbed.network import HOST


def a_lost_rail_is_survived(stage):
    """A rail of a running job is lost repeatedly: the job continues, and uses the rail again, but never with an
    impostor at the peer's address."""
    pods = stage.submit_held(at_ease(until_told(
        with_sizes(stage.example("flapping"), "1M", "1M", "-n", "1", warmup=0))))
    stage.secret_of(pods)  # which differs from the previous job's
    stage.release(pods)
    last = stage.cluster.rails - 1

    def ranks(*more):
        """Returns each rank's data about the rail: (bytes sent, number of losses, 1 while it works), and `more`
        metrics. Prometheus may have missed a busy rank for some seconds: the last value counts."""
        series = f'{{job="flapping",rail="{last}"}}[1m]'
        said = [{labels["rank"]: value for labels, value in stage.query(f"last_over_time({metric}{series})")}
                for metric in ("railhead_rail_transmit_bytes_total", "railhead_rail_failovers_total",
                               "railhead_rail_state", *more)]
        return {rank: tuple(values[rank] for values in said)
                for rank in sorted(set.intersection(*map(set, said)))}

    def wait_for_ranks(what, holds, seconds, *more):
        """Waits until `holds(rank, sent, losses, up)`, with `more` metrics, is true for both ranks, including ranks
        that have not reported yet. Returns their data at that time."""
        now = {}

        def all_hold():
            nonlocal now
            now = ranks(*more)
            return len(now) == 2 and all(holds(rank, *said) for rank, said in now.items())

        try:
            wait_for(what, all_hold, seconds, interval=0.5)
        except Failure as failure:
            raise Failure(f"{failure}; (bytes, losses, works) of each rank: {now}") from failure
        return now

    before = wait_for_ranks("the job runs over both rails", lambda rank, sent, losses, up: sent > 1e6, PATIENCE)
    for trouble, spoil in (
            ("unplugged", lambda state: stage.cluster.network.set_wire(1, last, state)),
            ("interface", lambda state: stage.cluster.on_node(2, f"ip link set eth{last + 1} {state}")),
            ("unplugged", lambda state: stage.cluster.network.set_wire(2, last, state))):
        begin = time.monotonic()
        try:
            spoil("down")
            before = wait_for_ranks(f"both ranks lose rail {last} ({trouble})",
                                    lambda rank, sent, losses, up: losses > before[rank][1], PATIENCE)
            told = time.monotonic() - begin
            if trouble == "interface":
                wait_for(f"an Event names rail {last} of node-2",
                         lambda: any(f"rail {last} " in e["message"] and "node-2" in e["message"]
                                     for e in events_of(stage, "flapping", "RailDown")), PATIENCE, interval=2)
            begin = time.monotonic()
        finally:
            spoil("up")
        before = wait_for_ranks(f"rail {last} carries again ({trouble})",
                                lambda rank, sent, losses, up: up and sent > before[rank][0] + 1e5, PATIENCE)
        stage.console.line(f"    {trouble}: seen lost after {told:.1f} s, carries again "
                           f"{time.monotonic() - begin:.1f} s after it was repaired")
    returns = "railhead_rail_returns_total"
    with stranger_between_pods(stage) as answered:
        try:
            stage.cluster.network.set_wire(1, last, "down")
            before = wait_for_ranks(f"both ranks lose rail {last} (stranger)",
                                    lambda rank, sent, losses, up, back: losses > before[rank][1], PATIENCE, returns)
        finally:
            stage.cluster.network.set_wire(1, last, "up")
        # The NICs reach each other again; ranks that connect meet the impostor.
        first = answered()
        wait_for("ranks connect to the stranger", lambda: answered() >= first + 3, PATIENCE)
        now = wait_for_ranks("both ranks answer", lambda *_: True, PATIENCE, returns)
        expect(all(up == 0 and back == before[rank][3] for rank, (_, _, up, back) in now.items()),
               f"a stranger was taken for a rank: {now}, before {before}")
    wait_for_ranks(f"rail {last} carries again (stranger)",
                   lambda rank, sent, losses, up: up and sent > before[rank][0] + 1e5, PATIENCE)
    stage.finish(pods)
    expect(stage.wait_for_job("flapping") == "Complete", "the job did not survive")
    pods = stage.pods("flapping")
    expect(all(p["status"]["containerStatuses"][0]["restartCount"] == 0 for p in pods),
           "a container was restarted")
    parsed = parse_log(stage.logs(pods[0]))
    expect(parsed.transport == "verbs", f"transport is {parsed.transport}")
    expect(parsed.rows and all(row.wrong == 0 for row in parsed.rows), "wrong results")
    for rank, pod in enumerate(pods):
        text = stage.logs(pod)
        expect(re.search(rf"rail {last} .*: lost", text) and re.search(rf"rail {last} .*: is back", text),
               f"rank {rank} does not say that rail {last} was lost and is back")


def events_of(stage, job, reason):
    """Returns the operator's Events with that reason about the job's pods."""
    names = {pod["metadata"]["name"] for pod in stage.pods(job)}
    return [e for e in stage.cluster.get("events", "--field-selector", f"reason={reason}")["items"]
            if e["involvedObject"]["name"] in names]


@contextlib.contextmanager
def stranger_between_pods(stage):
    """Redirects new TCP connections between pods of the two nodes to an impostor, which responds with the bytes that
    it received, with the tokens swapped. Yields a function that returns the number of responses."""
    port, pages = 9, 9402
    log = stage.cluster.start("stranger", ["/usr/bin/python3", ROOT / "tests" / "rails" / "impostor.py", port, "swap"])
    try:
        for node, other in ((1, 2), (2, 1)):
            stage.cluster.on_node(node, (
                "nft 'add table ip stranger; add chain ip stranger before { type nat hook prerouting priority -110; }; "
                f"add rule ip stranger before ip saddr 10.244.{node}.0/24 ip daddr 10.244.{other}.0/24 "
                f"tcp dport != {pages} dnat to {HOST}:{port}'"))
        yield lambda: log.read_text("utf-8").count("answered")
    finally:
        for node in (1, 2):
            stage.cluster.on_node(node, "nft delete table ip stranger", check=False)
        stage.cluster.stop("stranger")
