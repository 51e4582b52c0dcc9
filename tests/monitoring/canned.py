# SPDX-License-Identifier: Apache-2.0
"""Half an hour of a cluster with 32 nodes of 8 rails, as series for a Prometheus: three jobs, and several faults. The
data are always the same.

What happens between 12:00 and 12:30:
- research/llama-70b, 16 ranks of NCCL: rank 5 loses rail 3 from 12:11 to 12:17; rank 11 comes late to the collectives;
  the others wait for rank 0 while it writes a checkpoint;
- research/moe-32e, 8 ranks: rail 1 of rank 6 is slow from 12:08;
- applied/vision, 4 ranks: starts at 12:05 without rail 7, whose port is down on one of its nodes;
- rail 2 meets congestion from 12:15; two gangs wait, and one finds its place at 12:21."""

import math
import random

NOON = 1768478400  # 2026-01-15 12:00 UTC
BEFORE, AFTER = 900, 1800  # seconds of data before and after it
STEP = 30
TIMES = range(NOON - BEFORE, NOON + AFTER + 1, STEP)
RAILS = 8
LINE_RATE = 50e9  # bytes/s of 400 Gbit/s
BOUNDS = ("5e-05", "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5",
          "1", "2.5", "5", "10", "30", "+Inf")
# name, namespace, ranks, first node, bytes/s of one rail during steps, start, its collectives:
# (collective, algorithm, size class, calls per second, mean seconds, bytes)
JOBS = (
    ("llama-70b", "research", 16, 1, 31e9, -BEFORE, (
        ("all_reduce", "ring", ">4MiB", 24, 0.0121, 256e6), ("all_gather", "ring", ">4MiB", 40, 0.0052, 96e6),
        ("reduce_scatter", "ring", ">4MiB", 40, 0.0049, 96e6), ("all_reduce", "tree", "<=4KiB", 90, 6e-5, 2e3))),
    ("moe-32e", "research", 8, 17, 22e9, -BEFORE, (
        ("all_to_all", "pairwise", ">4MiB", 60, 0.0078, 64e6), ("all_to_all", "bruck", "<=256KiB", 120, 1.6e-4, 6e4),
        ("all_reduce", "double_tree", "<=4MiB", 30, 8e-4, 2e6))),
    ("vision", "applied", 4, 25, 12e9, 300, (
        ("all_reduce", "halving_doubling", "<=4MiB", 70, 4.2e-4, 3e6), ("broadcast", "binomial", "<=256KiB", 4, 1.1e-4, 1e5))),
)
REASON = "rank 2 has no rail 7 (mlx5_7): its port is down"
OPERATORS = ("railhead-operator-6f7c9-4xkqp", "railhead-operator-6f7c9-zt2vd")


class Series:
    """Samples by name and labels."""

    def __init__(self):
        self.samples = {}
        self._random = random.Random(70)

    def noise(self, share):
        return 1 + self._random.uniform(-share, share)

    def gauge(self, name, value, start=-BEFORE, **labels):
        """Adds a gauge. `value` is a number, or a function of the seconds since noon; None gives no sample."""
        for t in TIMES:
            if t - NOON >= start:
                now = value(t - NOON) if callable(value) else value
                if now is not None:
                    self._add(name, labels, t, now)

    def counter(self, name, rate, start=-BEFORE, **labels):
        """Adds a counter that starts at 0; `rate` per second is like gauge()'s `value`, but not None."""
        total = 0.0
        for t in TIMES:
            if t - NOON >= start:
                self._add(name, labels, t, total)
                total += STEP * (rate(t - NOON) if callable(rate) else rate)

    def _add(self, name, labels, t, value):
        self.samples.setdefault((name, tuple(sorted(labels.items()))), []).append((t, value))

    def text(self):
        lines = []
        for (name, labels), samples in sorted(self.samples.items()):
            inside = ",".join(f'{key}="{value}"' for key, value in labels)
            lines += [f"{name}{{{inside}}} {value!r} {t}" for t, value in samples]
        return "\n".join(lines) + "\n# EOF\n"


def within(seconds, begin, end):
    return begin * 60 <= seconds < end * 60


def works(job, seconds):
    """Returns the share of its time that the job spends in steps; little while it writes a checkpoint."""
    return 0.08 if checkpoint(job, seconds) else 1.0


def rail_down(job, rank, rail, seconds):
    return job == "llama-70b" and rank == 5 and rail == 3 and within(seconds, 11, 17)


def share_of_rail(job, rank, rail, seconds):
    """Returns a factor of a rail's usual bytes: less on a slow rail, more on the others, and none on a lost one."""
    if job == "moe-32e" and rank == 6 and seconds >= 480:
        return 0.4 if rail == 1 else 1 + 0.6 / 7 * 0.8
    if rail_down(job, rank, rail, seconds):
        return 0
    if any(rail_down(job, rank, other, seconds) for other in range(RAILS)):
        return 1.1
    return 1


def who_is(job, space, rank, first):
    """Returns the labels of a rank's series."""
    who = dict(namespace=space, job=job, rank=str(rank), pod=f"{job}-{rank}-{(rank * 7919) % 9973:04}", node=f"gpu-{first + rank:02}")
    return who | ({"source": "nccl"} if job == JOBS[0][0] else {})


def add_ranks(series):
    for job, space, ranks, first, rate, start, calls in JOBS:
        rails = RAILS - 1 if job == "vision" else RAILS
        for rank in range(ranks):
            who = who_is(job, space, rank, first)
            series.gauge("railhead_degraded", 1 if job == "vision" else 0, start, **who, reason=REASON if job == "vision" else "")
            series.gauge("up", 1, start, namespace=space, pod=who["pod"], node=who["node"], job="railhead-system/railhead-runtime")
            for rail in range(rails):
                one = dict(who, rail=str(rail), device=f"mlx5_{rail}", port="1", transport="verbs")
                tilt = series.noise(0.02)
                sent = lambda s, rail=rail, rank=rank, tilt=tilt: (
                    rate * tilt * works(job, s) * share_of_rail(job, rank, rail, s) * series.noise(0.03))
                series.counter("railhead_rail_transmit_bytes_total", sent, start, **one)
                series.counter("railhead_rail_receive_bytes_total", sent, start, **one)
                series.gauge("railhead_rail_state", lambda s, rail=rail, rank=rank: 0 if rail_down(job, rank, rail, s) else 1, start, **one)
                series.gauge("railhead_rail_weight", lambda s, rail=rail, rank=rank: min(1, share_of_rail(job, rank, rail, s)), start, **one)
            add_calls(series, job, rank, calls, start, who)


def checkpoint(job, seconds):
    """Returns for how long the job's rank 0 has been writing a checkpoint; 0 if it does not."""
    every = {"llama-70b": 540, "moe-32e": 720, "vision": 10**9}[job]
    since = (seconds + 130) % every
    return since if since < 45 else 0


def add_nccl(series):
    """Waits of NCCL's transfers, summed over channels, and the ranks that others wait for."""
    job, space, ranks, first, _, start, calls = JOBS[0]
    for rank in range(ranks):
        who = who_is(job, space, rank, first)
        late = rank == 11
        shares = {("send", "gpu"): 2.6 if late else 0.9, ("send", "peer"): 0.3, ("send", "network"): 5.1 + 0.02 * rank,
                  ("receive", "flush"): 0.1, ("receive", "peer"): 2.2 if late else 6.4, ("receive", "gpu"): 0.4}
        for collective, _, size, each, mean, _ in calls:
            for (direction, cause), share in shares.items():
                spent = each * mean * share
                series.counter("railhead_nccl_wait_seconds_total", lambda s, spent=spent: spent * works(job, s), start, **who,
                               collective=collective, size_class=size, direction=direction, cause=cause)
        waits = lambda s, rank=rank: checkpoint(job, s) if rank and checkpoint(job, s) >= 5 else None
        series.gauge("railhead_nccl_silent_peers", lambda s, waits=waits: 1 if waits(s) else 0, start, **who)
        if rank:  # in a ring each rank waits for the one before it
            series.gauge("railhead_nccl_silent_peer_seconds", waits, start, **who, peer=str(rank - 1))


def add_calls(series, job, rank, calls, start, who):
    late = 0.42 if (job, rank) == ("llama-70b", 11) else 1.0
    for collective, algorithm, size, each, mean, data in calls:
        labels = dict(who, collective=collective, algorithm=algorithm, size_class=size)
        mine = mean * late * series.noise(0.015)
        rate = lambda s, each=each: each * works(job, s)
        series.counter("railhead_collective_operations_total", rate, start, **labels)
        series.counter("railhead_collective_bytes_total", lambda s, data=data, each=each: each * data * works(job, s), start, **labels)
        series.counter("railhead_collective_duration_seconds_sum", lambda s, each=each, mine=mine: each * mine * works(job, s), start, **labels)
        series.counter("railhead_collective_duration_seconds_count", rate, start, **labels)
        for bound in BOUNDS:
            # The logarithms of durations have a logistic distribution.
            share = 1.0 if bound == "+Inf" else 1 / (1 + math.exp(-(math.log(float(bound)) - math.log(mine)) * 3.2))
            series.counter("railhead_collective_duration_seconds_bucket", lambda s, share=share, each=each: each * share * works(job, s),
                           start, **labels, le=bound)


def holder_of(number):
    """Returns (job, namespace, rank) of the holder of a node's HCAs. It does not change, since added series cannot
    end before they are five minutes old."""
    for job, space, ranks, first, *_ in JOBS:
        if first <= number < first + ranks:
            return job, space, number - first
    return None


def add_nodes(series):
    for number in range(1, 33):
        node = f"gpu-{number:02}"
        series.gauge("railhead_agent_registered", 1, node=node)
        series.counter("railhead_agent_registrations_total", lambda s, n=number: 1 / STEP if n == 9 and within(s, 20, 20.5) else 0, node=node)
        series.gauge("railhead_agent_misaligned_containers", 0, node=node)
        series.gauge("railhead_agent_scan_seconds", lambda s, n=number: (0.009 if n == 21 else 0.0016) * series.noise(0.2), node=node)
        for rail in range(RAILS):
            down = lambda s, n=number, r=rail: (n == 6 and r == 3 and within(s, 11, 17)) or (n, r) in ((27, 7), (30, 4))
            where, holder = dict(node=node, rail=str(rail), device=f"mlx5_{rail}", port="1"), holder_of(number)
            if holder:
                job, space, rank = holder
                where |= {"namespace": space, "pod": f"{job}-{rank}-{(rank * 7919) % 9973:04}"}
            series.gauge("railhead_port_state", lambda s, down=down: 0 if down(s) else 1, **where)
            series.gauge("railhead_port_rate_bytes_per_second", LINE_RATE, **where)
            series.gauge("railhead_device_healthy", lambda s, down=down: 0 if down(s) else 1, **where)
            series.gauge("railhead_device_renumbered", 0, **where)
            # This job's dark rail is not allocated.
            series.gauge("railhead_device_allocated", 1 if holder and (number, rail) != (27, 7) else 0, **where)
            add_counters(series, where, holder, rail, down)


def add_counters(series, where, holder, rail, down):
    rate = {one[0]: one[4] for one in JOBS}

    def sent(s):
        if not holder or down(s) or (holder[0] == "vision" and s < 300):
            return 2e5 * series.noise(0.5)
        return rate[holder[0]] * 1.02 * works(holder[0], s) * share_of_rail(holder[0], holder[2], rail, s) * series.noise(0.03)

    def congested(s):
        if not holder or down(s) or (holder[0] == "vision" and s < 300):
            return 0
        return (2400 if rail == 2 and s >= 900 else 160) * works(holder[0], s) * series.noise(0.25)

    counters = {
        "transmit_bytes": sent, "receive_bytes": sent, "cnp_handled": congested, "cnp_sent": congested,
        "ecn_marked": lambda s: 1.6 * congested(s), "transmit_wait_ticks": lambda s: 9000 * congested(s),
        "out_of_sequence": lambda s: 0.02 * congested(s) if rail == 2 else 0.2 * series.noise(1),
        "retries": lambda s: 0.01 * congested(s) if rail == 2 else 0.05 * series.noise(1),
        "symbol_errors": lambda s: 3 * series.noise(0.8) if rail == 3 and within(s, 9, 18) and where["node"] == "gpu-06" else 0,
        "receive_errors": lambda s: 0.4 * series.noise(0.8) if rail == 3 and within(s, 9, 18) and where["node"] == "gpu-06" else 0,
        "link_downed": lambda s: 1 / STEP if where["node"] == "gpu-06" and rail == 3 and within(s, 11, 11.5) else 0,
    }
    for name, value in counters.items():
        series.counter(f"railhead_port_{name}_total", value, **where)


def add_operator(series):
    for index, pod in enumerate(OPERATORS):
        own = dict(namespace="railhead-system", pod=pod, job="railhead-system/railhead-operator")
        leads = index == 0
        series.gauge("up", 1, **own)
        series.gauge("railhead_leader", 1 if leads else 0, **own)
        series.gauge("railhead_webhook_trusted", 1, **own)
        for certificate, days in (("serving", 5.2 + 0.9 * index), ("authority", 291)):
            series.gauge("railhead_certificate_expiry_timestamp_seconds", NOON + days * 86400, **own, certificate=certificate)
        series.counter("railhead_certificate_checks_total", 0.1, **own, result="ok")
        series.counter("railhead_certificate_checks_total", lambda s: 0.1 if within(s, 3, 4) else 0, **own, result="error")
        for kind, result, each in (("Pod", "mutated", 0.6), ("Pod", "ignored", 0.2), ("Job", "mutated", 0.05)):
            series.counter("railhead_admission_requests_total",
                           lambda s, each=each: each * (5 if within(s, 4.5, 6) else 1) * series.noise(0.4), **own, kind=kind, result=result)
        for kind, each, mean in (("Pod", 0.8, 2.4e-4), ("Job", 0.05, 1.3e-4)):
            for bound in ("0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.05", "0.25", "1", "+Inf"):
                share = 1.0 if bound == "+Inf" else 1 / (1 + math.exp(-(math.log(float(bound)) - math.log(mean)) * 3))
                series.counter("railhead_admission_duration_seconds_bucket",
                               lambda s, each=each, share=share: each * share * (5 if within(s, 4.5, 6) else 1), **own, kind=kind, le=bound)
        for resource, objects in (("pods", 412), ("nodes", 32), ("namespaces", 19), ("railprofiles", 3)):
            series.gauge("railhead_cache_synced", 1, **own, resource=resource)
            series.gauge("railhead_cache_age_seconds", lambda s, r=resource: {"pods": 2, "nodes": 6}.get(r, 31) * series.noise(0.6), **own, resource=resource)
            series.gauge("railhead_cache_objects", lambda s, n=objects, r=resource: n + (4 if r == "pods" and s >= 300 else 0), **own, resource=resource)
        for state, number in (("accepted", 3), ("refused", 0), ("conflicting", 0)):
            series.gauge("railhead_profiles", number, **own, state=state)
        if not leads:
            continue
        for state, number in (("incomplete", lambda s: 0), ("waiting", lambda s: 2 if s < 1260 else 1), ("running", lambda s: 3 if s < 1260 else 4)):
            series.gauge("railhead_gangs", number, **own, state=state)
        series.gauge("railhead_gang_longest_wait_seconds", lambda s: s + 1100 if s < 1260 else s - 700, **own)
        series.gauge("railhead_gang_oldest_waiting_seconds", lambda s: s + 1100 if s < 1260 else None,
                     **own | {"namespace": "research", "gang": "llama-405b"})
        series.gauge("railhead_gang_oldest_waiting_seconds", lambda s: None if s < 1260 else s - 700,
                     **own | {"namespace": "applied", "gang": "eval"})
        for result, each in (("ok", 1.9), ("unreachable", 0.02), ("unreadable", 0)):
            series.counter("railhead_verdict_pages_total", lambda s, each=each: each * series.noise(0.1), **own, result=result)
        verdict = dict(own, severity="warning")
        series.gauge("railhead_verdict_pods", lambda s: 1 if within(s, 11.5, 17.5) else None,
                     **verdict | {"namespace": "research", "job": "llama-70b", "reason": "RailDown", "rail": "3", "node": "gpu-06"})
        series.gauge("railhead_verdict_pods", 1, 360,
                     **verdict | {"namespace": "applied", "job": "vision", "reason": "RailPortDown", "rail": "7", "node": "gpu-27"})
        series.gauge("railhead_verdict_pods", 8,
                     **verdict | {"namespace": "research", "job": "moe-32e", "reason": "MemlockTight", "severity": "info"})


def everything():
    series = Series()
    add_ranks(series)
    add_nodes(series)
    add_operator(series)
    add_nccl(series)
    return series.text()
