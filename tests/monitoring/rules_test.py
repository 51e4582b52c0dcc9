# SPDX-License-Identifier: Apache-2.0
"""The chart's alerts, by `promtool test rules`: each does not fire on a healthy cluster, fires on its fault and names
its place, and ends when the fault does.

A case consists of series, and of the alerts at given minutes. promtool compares all labels and annotations."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import metrics
from rules import ALERTS, ALL, GROUPS, RECORDS, RULES

STEP = 15  # seconds between samples, and between evaluations
MINUTE = 60 // STEP
# The beginning of a test file. Without an order, promtool evaluates the groups in any order, and a recorded series
# may then be a step older than the evaluation of its alert.
HEAD = {"rule_files": [str(RULES)], "evaluation_interval": f"{STEP}s", "group_eval_order": [group["name"] for group in GROUPS]}


def hold(value, minutes):
    return f"{value}+0x{int(minutes * MINUTE) - 1}"


def grow(start, per_second, minutes):
    """Returns the samples of a counter."""
    return f"{start}+{per_second * STEP}x{int(minutes * MINUTE) - 1}"


def again(values, minutes):
    """Returns these samples, repeated."""
    count = int(minutes * MINUTE)
    return " ".join(str(values[i % len(values)]) for i in range(count))


def gone(minutes):
    return f"_x{int(minutes * MINUTE)}"


def labels_of(text):
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


class Case:
    """Series (text, values...) and the expected states of one alert: minute to a list of (labels, summary)."""

    def __init__(self, alert, series, expected, description=None):
        self.alert, self.expected, self.description = alert, expected, description
        self.series = [{"series": name, "values": " ".join(values)} for name, *values in series]

    def document(self):
        rule = ALERTS[self.alert]
        tests = []
        for minute, found in self.expected.items():
            alerts = []
            for labels, summary in found:
                annotations = dict(rule["annotations"], summary=summary)
                if self.description:
                    annotations["description"] = self.description
                alerts.append({
                    "exp_labels": dict(labels_of(labels), **rule["labels"]),
                    "exp_annotations": annotations})
            tests.append({"eval_time": f"{int(minute * 60)}s", "alertname": self.alert, "exp_alerts": alerts})
        return {"interval": f"{STEP}s", "input_series": self.series, "alert_rule_test": tests}


# A rank's rail, with the labels of the runtime and the scrape configuration.
def rail(number, rank=0, pod="train-0-x", node="gpu-1", **more):
    more = "".join(f',{key}="{value}"' for key, value in more.items())
    return (f'{{namespace="team",job="train",rank="{rank}",rail="{number}",device="mlx5_{number}",port="1",'
            f'transport="verbs",pod="{pod}",node="{node}"{more}}}')


def rank(number, more=""):
    return f'{{namespace="team",job="train",rank="{number}",pod="train-{number}-x",node="gpu-{number}"{more}}}'


RAIL_1 = 'namespace="team",job="train",rank="0",rail="1",device="mlx5_1",node="gpu-1",pod="train-0-x"'
PORT_1 = '{node="gpu-1",rail="1",device="mlx5_1",port="1"'
LINE_RATE = ("railhead_port_rate_bytes_per_second" + PORT_1 + "}", hold(50e9, 300))
SENT, WEIGHT, STATE = "railhead_rail_transmit_bytes_total", "railhead_rail_weight", "railhead_rail_state"


def straggler(times, operations):
    """Eight ranks. Per second, rank 3 spends `times` seconds in collectives and makes `operations` calls."""
    for number in range(8):
        mine, calls = (times, operations) if number == 3 else (0.6, 100)
        for name, slope in (("duration_seconds_sum", mine), ("operations_total", calls)):
            yield (f"railhead_collective_{name}" + rank(number, ',collective="all_reduce",algorithm="ring",'
                   'size_class=">4MiB"'), grow(0, 0.6 if name[0] == "d" else 100, 20),
                   grow(5000, slope, 25), grow(0, 0.6 if name[0] == "d" else 100, 25))


def long_steps(late):
    """Four ranks with steps of 45 s, of which 30 s are in 100 collectives; the last rank's samples are one behind.
    From minute 20 to 45 it spends `late` seconds of each step in its collectives."""
    for number in range(4):
        name = rank(number, ',collective="all_reduce",algorithm="ring",size_class=">4MiB"')
        times, calls, samples = 0, 0, ([], [])
        for sample in range(70 * MINUTE):
            if sample % 3 == (1 if number == 3 else 0):
                times += late if number == 3 and 20 * MINUTE <= sample < 45 * MINUTE else 30
                calls += 100
            samples[0].append(times)
            samples[1].append(calls)
        for metric, values in zip(("duration_seconds_sum", "operations_total"), samples):
            yield f"railhead_collective_{metric}{name}", " ".join(map(str, values))


def waited_for(part="50%"):
    return [('namespace="team",job="train",rank="3",node="gpu-3"',
             f"Rank 3 of job team/train on node gpu-3 delays the other ranks: they wait for it {part} of the time")]


SLOW = waited_for()


def nccl(silent, ranks=4, job="train", comm=""):
    """Ranks of NCCL. silent(rank) returns the samples of (peer that the rank waits for, how long), or None."""
    for number in range(ranks):
        labels = rank(number, ',source="nccl"').replace('"train"', f'"{job}"')
        waits = silent(number)
        yield "railhead_nccl_silent_peers" + labels, *(waits[1] if waits else [hold(0, 20)])
        if waits:
            more = f',peer="{waits[0]}"' + (f',comm="{comm}"' if comm else "")
            yield "railhead_nccl_silent_peer_seconds" + labels[:-1] + more + "}", *waits[2]


# Of a rank that waits from minute 5 to 12: the number of its silent peers, and their time.
WAITS = [hold(0, 5), hold(1, 7), hold(0, 8)], [gone(5), grow(0, 1, 7), "stale"]


def silent_rank(who, seconds, **labels):
    labels = ",".join(f'{key}="{value}"' for key, value in dict(namespace="team", job="train", **labels).items())
    return [(labels, f"{who} of job team/train has sent nothing to ranks of NCCL that wait for its data for {seconds}")]

CASES = {
    "a rail goes down and comes back": Case(
        "RailheadRailDown",
        [(STATE + rail(0), hold(1, 30)), (STATE + rail(1), hold(1, 5), hold(0, 5), hold(1, 20))],
        {4.5: [], 5.5: [], 6.5: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 is down")],
         11: []}),
    "a rail that is down for less than a minute": Case(
        "RailheadRailDown", [(STATE + rail(1), hold(1, 5), hold(0, 0.5), hold(1, 20))], {5.25: [], 6: [], 7: []}),
    "a job that ends with a rail down": Case(
        "RailheadRailDown", [(STATE + rail(1), hold(0, 5), "stale")],
        {4: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 is down")], 6: []}),
    "two jobs of one name in two namespaces": Case(
        "RailheadRailDown",
        [(STATE + rail(1), hold(0, 10)), (STATE + rail(1).replace('"team"', '"other"'), hold(1, 10))],
        {5: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 is down")]}),

    "a slow rail, until it is repaired": Case(
        "RailheadRailImbalance",
        [(STATE + rail(0), hold(1, 60)), (STATE + rail(1), hold(1, 60)), (WEIGHT + rail(0), hold(1, 60)),
         (WEIGHT + rail(1), hold(1, 5), hold(0.25, 20), hold(0.9, 35)),
         (SENT + rail(0), grow(0, 5e9, 60)), (SENT + rail(1), grow(0, 1e9, 60))],
        {4: [], 14: [], 16: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 delivers 25% of "
                             "the bandwidth of the rank's fastest rail")], 27: []}),
    "a slow rail that is tried again and again": Case(
        "RailheadRailImbalance",
        [(STATE + rail(0), hold(1, 60)), (STATE + rail(1), hold(1, 60)), (WEIGHT + rail(0), hold(1, 60)),
         (WEIGHT + rail(1), hold(1, 5), again([0.2, 0.2, 1], 25), hold(1, 30)),
         (SENT + rail(0), grow(0, 5e9, 60)), (SENT + rail(1), grow(0, 1e9, 60))],
        {4: [], 14.5: [], 16: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 delivers 46.67% of "
                                "the bandwidth of the rank's fastest rail")], 32: []}),
    "a slow rail, of a page that is missed once": Case(
        "RailheadRailImbalance",
        [(STATE + rail(1), hold(1, 10), "stale", hold(1, 50)),
         (WEIGHT + rail(1), hold(0.25, 10), "stale", hold(0.25, 50)),
         (SENT + rail(1), grow(0, 1e9, 10), "stale", grow(0.6e12, 1e9, 50))],
        {12: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 delivers 25% of the bandwidth of "
               "the rank's fastest rail")]}),
    "a rail that is well, with bad moments": Case(
        "RailheadRailImbalance",
        [(STATE + rail(1), hold(1, 60)), (WEIGHT + rail(1), again([0.9, 0.1, 1, 0.8, 1, 0.9, 0.2, 1], 60)),
         (SENT + rail(0), grow(0, 5e9, 60)), (SENT + rail(1), grow(0, 5e9, 60))],
        {minute: [] for minute in (12, 20, 40, 59)}),
    "a slow rail while nothing is sent": Case(
        "RailheadRailImbalance",
        [(STATE + rail(1), hold(1, 40)), (WEIGHT + rail(1), hold(0.1, 40)), (SENT + rail(1), hold(7e9, 40))],
        {39: []}),
    "a slow rail of a rank that restarts": Case(
        "RailheadRailImbalance",
        [(STATE + rail(1), hold(1, 40)), (WEIGHT + rail(1), hold(0.25, 40)),
         # The counter is reset: a lower value is not a negative rate.
         (SENT + rail(1), grow(7e12, 1e9, 20), grow(0, 1e9, 20))],
        {minute: [(RAIL_1, "Rail 1 (mlx5_1) of rank 0 of job team/train on node gpu-1 delivers 25% of the "
                   "bandwidth of the rank's fastest rail")] for minute in (19, 20.25, 21, 30)}),
    "a rail that is lost is not a slow one": Case(
        "RailheadRailImbalance",
        [(STATE + rail(1), hold(0, 40)), (WEIGHT + rail(1), hold(0, 40)), (SENT + rail(0), grow(0, 5e9, 40))],
        {39: []}),

    "a job on TCP": Case(
        "RailheadTcpInsteadOfRdma",
        [('railhead_degraded' + rank(n, ',reason="TCP instead of RDMA: rank 1 has no rail"'),
          hold(1, 10), "stale") for n in range(2)],
        {0.5: [], 2: [('namespace="team",job="train",reason="TCP instead of RDMA: rank 1 has no rail"',
                       "Job team/train uses TCP instead of RDMA (affected ranks: 2)")], 11: []},
        description="TCP instead of RDMA: rank 1 has no rail"),
    "a job that runs as it should, and one that asked for TCP": Case(
        "RailheadTcpInsteadOfRdma", [("railhead_degraded" + rank(0, ',reason=""'), hold(0, 30))], {29: []}),

    "a job with a rail less": Case(
        "RailheadJobDegraded",
        [('railhead_degraded' + rank(n, ',reason="rank 1 has no rail 3"'), hold(1, 10), "stale")
         for n in range(4)] +
        [('railhead_degraded' + rank(n, ',reason=""'), gone(10.25), hold(0, 20)) for n in range(4)],
        {0.5: [], 2: [('namespace="team",job="train",reason="rank 1 has no rail 3"',
                       "Job team/train is degraded: it runs with less than it requested (affected ranks: "
                       "4)")], 11: [], 25: []},
        description="rank 1 has no rail 3"),
    "TCP has an alert of its own": Case(
        "RailheadJobDegraded",
        [('railhead_degraded' + rank(0, ',reason="TCP instead of RDMA: no rail"'), hold(1, 10))], {9: []}),

    "the operator has found something": Case(
        "RailheadJobFinding",
        [('railhead_verdict_pods{namespace="team",job="train",reason="RailPathLost",severity="warning",rail="2",'
          'node="gpu-2",pod="railhead-operator-a"}', hold(1, 15), "stale")],
        {4: [], 6: [('namespace="team",job="train",reason="RailPathLost",rail="2",node="gpu-2"',
                     "The operator reports RailPathLost for job team/train, rail 2 of node gpu-2 "
                     "(affected pods: 1)")], 16: []}),
    "what is to be known, and what others say": Case(
        "RailheadJobFinding",
        [('railhead_verdict_pods{namespace="team",job="train",reason="MemlockTight",severity="info"}', hold(9, 30)),
         ('railhead_verdict_pods{namespace="team",job="train",reason="RdmaNotUsed",severity="warning"}',
          hold(9, 30))], {29: []}),
    "a leader that is replaced": Case(
        # Another replica takes over, and its page has the finding.
        "RailheadJobFinding",
        [('railhead_verdict_pods{namespace="team",job="train",reason="RankOverridden",severity="warning",pod="a"}',
          hold(2, 10), "stale"),
         ('railhead_verdict_pods{namespace="team",job="train",reason="RankOverridden",severity="warning",pod="b"}',
          gone(10), hold(2, 20))],
        {minute: [('namespace="team",job="train",reason="RankOverridden"',
                   "The operator reports RankOverridden for job team/train (affected pods: 2)")]
         for minute in (9, 11, 20)}),

    "a rank that comes late": Case("RailheadStraggler", list(straggler(0.1, 100)),
                                   {19: [], 28: [], 39: SLOW, 44: SLOW, 52: []}),
    "a rank that comes late, and long steps": Case("RailheadStraggler", list(long_steps(7)),
                                                   {20: [], 29: [], 33: waited_for("56%"), 40: waited_for("53.67%"),
                                                    44: waited_for("43.67%"), 52: []}),
    "long steps, seen at different times": Case("RailheadStraggler", list(long_steps(30)), {30: [], 45: [], 60: []}),
    "a rank that makes other calls": Case("RailheadStraggler", list(straggler(0.1, 40)), {39: []}),
    "a rank that is a little faster": Case("RailheadStraggler", list(straggler(0.45, 100)), {39: []}),

    "a rank of NCCL that hangs, and goes on": Case(
        # In a ring each rank waits for the one before it; rank 2 waits for none.
        "RailheadNcclRankSilent", list(nccl(lambda n: None if n == 2 else ((n + 3) % 4, *WAITS))),
        {5.5: [], 6.5: [], 8: silent_rank("Rank 2", "3m 0s", peer="2"), 11: silent_rank("Rank 2", "6m 0s", peer="2"), 13: []}),
    "a rank of NCCL that has ended": Case(
        # It has no series, and its communicator has a name.
        "RailheadNcclRankSilent", list(nccl(lambda n: ((n + 4) % 5, *WAITS), comm="world")),
        {8: silent_rank("Rank 4 of communicator world", "3m 0s", peer="4", comm="world"), 13: []}),
    "ranks of NCCL that all wait for each other": Case(
        "RailheadNcclRankSilent", list(nccl(lambda n: ((n + 3) % 4, *WAITS))),
        {6.5: [], 8: silent_rank("Each of several ranks", "3m 0s"), 13: []}),
    "a rank of NCCL that writes a checkpoint, of a job beside another": Case(
        "RailheadNcclRankSilent",
        list(nccl(lambda n: None if n == 0 else (n - 1, [hold(0, 5), hold(1, 1.25), hold(0, 14)],
                                                 [gone(5), grow(0, 1, 1.25), "stale"]))) +
        list(nccl(lambda n: None, job="other")), {minute: [] for minute in (5, 6, 6.5, 7.5, 10)}),

    "a page that is not served any more": Case(
        "RailheadPageNotScraped",
        [("railhead_degraded" + rank(0, ',reason=""'), hold(0, 90)),
         ("railhead_degraded" + rank(1, ',reason=""'), hold(0, 10), "stale", gone(20), hold(0, 60)),
         ('up{job="railhead-system/railhead-runtime",namespace="team",pod="train-0-x"}', hold(1, 90)),
         ('up{job="railhead-system/railhead-runtime",namespace="team",pod="train-1-x"}',
          hold(1, 10), hold(0, 20.25), hold(1, 60))],
        {9: [], 14: [], 16: [('namespace="team",job="train",rank="1",pod="train-1-x"',
                              "Prometheus cannot scrape rank 1 of job team/train (pod train-1-x), but it scrapes "
                              "other ranks of the job")], 31: []}),
    "pods without our runtime, and jobs that end": Case(
        "RailheadPageNotScraped",
        [('up{job="railhead",namespace="team",pod="nccl-0"}', hold(0, 60)),
         ("railhead_degraded" + rank(0, ',reason=""'), hold(0, 10), "stale"),
         ('up{job="railhead",namespace="team",pod="train-0-x"}', hold(1, 10), hold(0, 50))], {30: [], 59: []}),

    "a rail of a node is not healthy": Case(
        "RailheadNodeRailDown",
        [('railhead_device_healthy{node="gpu-1",rail="1",device="mlx5_1",port="1"}',
          hold(1, 5), hold(0, 10), hold(1, 20)),
         ('railhead_device_healthy{node="gpu-2",rail="1",device="mlx5_1",port="1"}', hold(1, 35))],
        {4: [], 6: [], 8: [('node="gpu-1",rail="1",device="mlx5_1"',
                            "Rail 1 (mlx5_1) of node gpu-1 is unhealthy, so the node agent does not offer it to "
                            "pods")], 16: []}),
    "a rail that is withheld for its device nodes": Case(
        "RailheadNodeRailDown",
        [('railhead_device_healthy{node="gpu-1",rail="1",device="mlx5_1",port="1"}', hold(0, 20)),
         ('railhead_device_renumbered{node="gpu-1",rail="1",device="mlx5_1",port="1"}', hold(1, 10), hold(0, 10)),
         ('railhead_device_healthy{node="gpu-2",rail="1",device="mlx5_1",port="1"}', hold(1, 20)),
         ('railhead_device_renumbered{node="gpu-2",rail="1",device="mlx5_1",port="1"}', hold(0, 20))],
        {5: [], 9: [], 15: [('node="gpu-1",rail="1",device="mlx5_1"',
                             "Rail 1 (mlx5_1) of node gpu-1 is unhealthy, so the node agent does not offer it to "
                             "pods")]}),
    "device nodes that are other HCAs'": Case(
        "RailheadDeviceRenumbered",
        [('railhead_device_renumbered{node="gpu-1",rail="1",device="mlx5_1",port="1",namespace="a",pod="a"}',
          hold(0, 5), hold(1, 10), hold(0, 10)),
         ('railhead_device_renumbered{node="gpu-2",rail="1",device="mlx5_1",port="1"}', hold(0, 25))],
        {4: [], 5.5: [], 8: [('node="gpu-1",rail="1",device="mlx5_1"',
                              "A container on node gpu-1 has device nodes that are now those of other HCAs: rail 1 "
                              "(mlx5_1) is affected")], 16: []}),
    "a rail that no node uses": Case(
        "RailheadNodeRailDown",
        [(f'railhead_device_healthy{{node="gpu-{n}",rail="9",device="mlx5_9"}}', hold(0, 20)) for n in (1, 2)],
        {19: []}),
    "a rail whose holder changes": Case(
        "RailheadNodeRailDown",
        [('railhead_device_healthy{node="gpu-1",rail="1",device="mlx5_1",namespace="a",pod="a"}', hold(0, 5), "stale"),
         ('railhead_device_healthy{node="gpu-1",rail="1",device="mlx5_1"}', gone(5), hold(0, 10)),
         ('railhead_device_healthy{node="gpu-2",rail="1",device="mlx5_1"}', hold(1, 15))],
        {minute: [('node="gpu-1",rail="1",device="mlx5_1"',
                   "Rail 1 (mlx5_1) of node gpu-1 is unhealthy, so the node agent does not offer it to pods")]
         for minute in (4, 6, 9)}),

    "a link that flaps": Case(
        "RailheadLinkFlapping",
        [('railhead_port_link_downed_total' + PORT_1 + ',namespace="team",pod="train-0-x"}',
          hold(4, 5), hold(5, 1), hold(6, 1), hold(7, 30))],
        {5: [], 6: [], 8: [('node="gpu-1",rail="1",device="mlx5_1",port="1"',
                            "Rail 1 (mlx5_1) of node gpu-1 is flapping")], 25: []}),
    "a rail of a job that flaps": Case(
        "RailheadLinkFlapping",
        [(STATE + rail(1), hold(1, 5), "0 1 0 1 0 1", hold(1, 30))],
        {5: [], 8: [('namespace="team",job="train",rank="0",rail="1",device="mlx5_1",node="gpu-1"',
                     "Rail 1 (mlx5_1) of node gpu-1 (job team/train, rank 0) is flapping")], 25: []}),
    "a link that goes down once, and an agent that restarts": Case(
        "RailheadLinkFlapping",
        [('railhead_port_link_downed_total' + PORT_1 + '}', hold(200, 5), hold(201, 5), gone(2), hold(201, 20))],
        {minute: [] for minute in (6, 13, 20)}),

    "more notifications for each byte": Case(
        "RailheadCongestionRising",
        [LINE_RATE, ("railhead_port_cnp_handled_total" + PORT_1 + "}", grow(0, 200, 120), grow(1440000, 2000, 40), grow(1520000, 200, 90)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 1e9, 250))],
        {110: [], 128: [], 138: [('node="gpu-1",rail="1",device="mlx5_1",port="1"',
                                  "Congestion at port 1 of mlx5_1 (rail 1) of node gpu-1 is more than three times the "
                                  "average of the previous hour")], 180: []}),
    "more notifications, and a page that is missed once": Case(
        "RailheadCongestionRising",
        [("railhead_port_rate_bytes_per_second" + PORT_1 + "}", hold(50e9, 128), "stale", hold(50e9, 60)),
         ("railhead_port_cnp_handled_total" + PORT_1 + "}", grow(0, 200, 120), grow(1440000, 2000, 40)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 1e9, 160))],
        {128: [], 138: [('node="gpu-1",rail="1",device="mlx5_1",port="1"',
                         "Congestion at port 1 of mlx5_1 (rail 1) of node gpu-1 is more than three times the average "
                         "of the previous hour")]}),
    "ten times the traffic, and as much congestion for each byte": Case(
        "RailheadCongestionRising",
        [LINE_RATE, ("railhead_port_cnp_handled_total" + PORT_1 + "}", grow(0, 200, 120), grow(1440000, 2000, 40)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 1e9, 120), grow(7.2e12, 1e10, 40))],
        {138: [], 150: []}),
    "InfiniBand, by the ticks without credit": Case(
        "RailheadCongestionRising",
        [LINE_RATE, ("railhead_port_transmit_wait_ticks_total" + PORT_1 + "}", grow(0, 1e6, 120), grow(7.2e9, 1e7, 40)),
         ("railhead_port_cnp_handled_total" + PORT_1 + "}", hold(0, 160)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 1e9, 160))],
        {110: [], 138: [('node="gpu-1",rail="1",device="mlx5_1",port="1"',
                         "Congestion at port 1 of mlx5_1 (rail 1) of node gpu-1 is more than three times the average "
                         "of the previous hour")]}),
    "a job that starts after two quiet hours": Case(
        "RailheadCongestionRising",
        [LINE_RATE, ("railhead_port_cnp_handled_total" + PORT_1 + "}", hold(0, 120), grow(0, 2000, 60)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 2e5, 120), grow(1.44e9, 1e9, 60))],
        {minute: [] for minute in (121, 125, 131, 140, 170)}),
    "an agent that restarts": Case(
        "RailheadCongestionRising",
        [LINE_RATE, ("railhead_port_cnp_handled_total" + PORT_1 + "}", grow(9e9, 200, 120), grow(0, 200, 40)),
         ("railhead_port_transmit_bytes_total" + PORT_1 + "}", grow(0, 1e9, 160))],
        {minute: [] for minute in (119, 121, 125, 131, 140)}),

    "an agent that kubelet does not know": Case(
        "RailheadAgentNotRegistered",
        [('railhead_agent_registered{node="gpu-1"}', hold(1, 5), hold(0, 10), hold(1, 10)),
         ('railhead_device_healthy{node="gpu-1",rail="0",device="mlx5_0"}', hold(1, 25))],
        {4: [], 6: [], 8: [('node="gpu-1"', "The agent of node gpu-1 is not registered with kubelet: new pods cannot "
                            "get HCAs there")], 16: []}),
    "a node without devices": Case(
        "RailheadAgentNotRegistered", [('railhead_agent_registered{node="cpu-1"}', hold(0, 20))], {19: []}),

    "an agent that ends, while another runs": Case(
        "RailheadAgentDown",
        [('up{job="railhead-system/railhead-device-plugin",node="gpu-1",instance="10.0.0.1:9401"}',
          hold(1, 5), hold(0, 10), hold(1, 10)),
         ('up{job="railhead-system/railhead-device-plugin",node="gpu-2",instance="10.0.0.2:9401"}', hold(1, 25))],
        {4: [], 9: [], 11: [('node="gpu-1"', "Prometheus cannot scrape the agent of node gpu-1")], 16: []}),
    "an agent that comes back with another address, and never answers": Case(
        "RailheadAgentDown",
        [('up{job="railhead-node-agent",node="gpu-1",instance="10.0.0.1:9401"}', hold(1, 5), "stale"),
         ('up{job="railhead-node-agent",node="gpu-1",instance="10.0.0.9:9401"}', gone(6), hold(0, 120))],
        {10: [], 12: [('node="gpu-1"', "Prometheus cannot scrape the agent of node gpu-1")],
         120: [('node="gpu-1"', "Prometheus cannot scrape the agent of node gpu-1")]}),
    "an agent that is replaced": Case(
        "RailheadAgentDown",
        [('up{job="railhead-node-agent",node="gpu-1",instance="10.0.0.1:9401"}', hold(1, 5), hold(0, 10), "stale"),
         ('up{job="railhead-node-agent",node="gpu-1",instance="10.0.0.9:9401"}', gone(6), hold(1, 20))],
        {10: [], 14: [], 20: []}),
    "a node that is gone": Case(
        "RailheadAgentDown",
        [('up{job="railhead-node-agent",node="gpu-1",instance="10.0.0.1:9401"}', hold(1, 5), hold(0, 3), "stale"),
         ('railhead_agent_registered{node="gpu-1"}', hold(1, 5), "stale")], {10: [], 20: []}),

    "a webhook that is not trusted": Case(
        "RailheadWebhookUntrusted",
        [('railhead_webhook_trusted{namespace="railhead-system",pod="op-a"}', hold(1, 5), hold(0, 10), hold(1, 10)),
         ('railhead_webhook_trusted{namespace="railhead-system",pod="op-b"}', hold(1, 25))],
        {4: [], 6: [], 8: [('namespace="railhead-system",pod="op-a"',
                            "The API server does not trust the webhook certificate of railhead-system/op-a")], 16: []}),

    "a certificate that is not renewed": Case(
        "RailheadCertificateExpiring",
        # Time begins at 0: the certificate expires after a day and ten minutes; it is renewed after an hour.
        [('railhead_certificate_expiry_timestamp_seconds{namespace="rh",pod="op-a",certificate="serving"}',
          hold(87000, 60), hold(700000, 30)),
         ('railhead_certificate_expiry_timestamp_seconds{namespace="rh",pod="op-a",certificate="authority"}',
          hold(31536000, 90)),
         ('railhead_certificate_expiry_timestamp_seconds{namespace="rh",pod="op-b",certificate="serving"}',
          hold(0, 90))],
        {9: [], 14: [], 20: [('namespace="rh",pod="op-a"', "A certificate of rh/op-a expires in 23h 50m 0s and was "
                              "not renewed")], 61: []}),
    "an authority that is not renewed": Case(
        "RailheadCertificateExpiring",
        [('railhead_certificate_expiry_timestamp_seconds{namespace="rh",pod="op-a",certificate="authority"}',
          hold(13 * 86400, 20))],
        {4: [], 10: [('namespace="rh",pod="op-a"', "A certificate of rh/op-a expires in 12d 23h 50m 0s and was "
                      "not renewed")]}),

    "a gang that waits, and gets its place": Case(
        "RailheadGangWaiting",
        # Then a newer gang waits.
        [('railhead_gang_oldest_waiting_seconds{namespace="team",gang="train",pod="op-a"}', grow(0, 1, 50), "stale"),
         ('railhead_gang_oldest_waiting_seconds{namespace="team",gang="next",pod="op-a"}', gone(50), grow(600, 1, 10)),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(1, 70))],
        {29: [], 34: [], 40: [('namespace="team",gang="train"', "Gang team/train has waited for capacity for 40m 0s")],
         51: [], 59: []}),
    "a replica that leads no more": Case(
        "RailheadGangWaiting",
        [('railhead_gang_oldest_waiting_seconds{namespace="team",gang="train",pod="op-a"}', hold(9000, 60)),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(0, 60)),
         ('railhead_leader{namespace="rh",pod="op-b"}', hold(1, 60))], {59: []}),

    "no replica leads": Case(
        "RailheadNoLeader",
        [('up{job="railhead-system/railhead-operator",namespace="rh",pod="op-a"}', hold(1, 20)),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(1, 5), hold(0, 10), hold(1, 5))],
        {4: [], 6: [], 8: [('namespace="rh"', "The operator in namespace rh has no leader")], 16: []}),
    "no replica answers": Case(
        "RailheadNoLeader",
        [('up{job="railhead-operator",namespace="rh",pod="op-a"}', hold(1, 5), hold(0, 15)),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(1, 5), "stale")],
        {4: [], 8: [('namespace="rh"', "The operator in namespace rh has no leader")]}),
    "no replica is there": Case(
        "RailheadNoLeader",
        [('up{job="railhead-operator",namespace="rh",pod="op-a"}', hold(1, 5), "stale"),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(1, 5), "stale")],
        {4: [], 8: [('namespace="rh"', "The operator in namespace rh has no leader")], 70: []}),
    "a leader that is replaced by another": Case(
        "RailheadNoLeader",
        [('up{job="railhead-operator",namespace="rh",pod="op-a"}', hold(1, 20)),
         ('up{job="railhead-operator",namespace="rh",pod="op-b"}', hold(1, 20)),
         ('railhead_leader{namespace="rh",pod="op-a"}', hold(1, 5), hold(0, 15)),
         ('railhead_leader{namespace="rh",pod="op-b"}', hold(0, 6), hold(1, 14))], {5.5: [], 8: [], 19: []}),
    "another release's operator, and other operators": Case(
        "RailheadNoLeader", [('up{job="prometheus-operator",namespace="x",pod="y"}', hold(1, 20))], {19: []}),
}


class Alerts(unittest.TestCase):
    def test_the_rules_are_valid(self):
        done = promtool("check", "rules", RULES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_they_ask_for_what_the_programs_serve(self):
        known = metrics.served() | set(RECORDS)
        self.assertGreater(len(metrics.served()), 80)
        for rule in ALL:
            self.assertLessEqual(metrics.used(rule["expr"]), known, rule["expr"])

    def test_each_fires_and_ends_as_it_should(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, case in CASES.items():
                with self.subTest(name):
                    path = os.path.join(folder, "test.yaml")
                    with open(path, "w", encoding="utf-8") as file:
                        json.dump(HEAD | {"tests": [case.document()]}, file)
                    done = promtool("test", "rules", path)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(self):
        for alert in ALERTS:
            cases = [case.expected for case in CASES.values() if case.alert == alert]
            firing = [dict(case) for case in cases if any(case.values())]
            self.assertTrue(firing, f"{alert} never fires")
            self.assertTrue(any(not found for case in cases for found in case.values()), f"{alert} never rests")
        ended = {case.alert for case in CASES.values()
                 if any(case.expected.values()) and not case.expected[max(case.expected)]}
        self.assertEqual(ended, set(ALERTS), "these never end in any case")

    def test_recorded_rates_survive_a_restart(self):
        series = [{"series": SENT + rail(0), "values": f"{grow(9e12, 1e9, 10)} {grow(0, 1e9, 10)}"}]
        checks = [{"expr": "job:railhead_rail_transmit_bytes:rate2m > 0.8e9 < 1.2e9", "eval_time": f"{minute}m",
                   "exp_samples": [{"labels": 'job:railhead_rail_transmit_bytes:rate2m{namespace="team",job="train"}',
                                    "value": value}]}
                  for minute, value in ((9, 1e9), (13, 1e9))]
        during = [{"expr": "job:railhead_rail_transmit_bytes:rate2m < 0 or job:railhead_rail_transmit_bytes:rate2m > 2e9",
                   "eval_time": f"{600 + 15 * step}s", "exp_samples": []} for step in range(9)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(HEAD | {"tests": [
                {"interval": f"{STEP}s", "input_series": series, "promql_expr_test": checks + during}]}, file)
            file.flush()
            done = promtool("test", "rules", file.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_says_where_and_what_to_do(self):
        places = {"namespace", "job", "rank", "rail", "node"}
        for name, rule in ALERTS.items():
            with self.subTest(name):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                self.assertEqual(rule["annotations"]["runbook_url"], f"docs/runbooks/{name}.md")
                self.assertEqual(set(rule["annotations"]), {"summary", "description", "runbook_url"})
                # The summary contains the labels that the expression keeps.
                kept = set(re.findall(r"\w+", " ".join(re.findall(r"^\s*\w+ by \(([^)]*)\)", rule["expr"]))))
                for label in places & kept - {"node", "namespace"}:
                    self.assertIn(f"$labels.{label}", rule["annotations"]["summary"])
                self.assertIn("namespace" if "namespace" in kept or "rank:" in rule["expr"] else "node",
                              re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))


def promtool(*words):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


if __name__ == "__main__":
    unittest.main()
