# SPDX-License-Identifier: Apache-2.0
"""The main job, measured: the example's all-reduce beside ib_write_bw and beside Prometheus."""

import dataclasses
import re
import sys

from stage import ROOT, PROMETHEUS, expect, rate_text
from railbed.console import Failure, table, wait_for

LARGE = 8 * 2**20
# Of what ib_write_bw gives, for the busbw at 8 MiB. A goal and no check: a busy machine takes the
# emulated CPUs away from both at different times.
GOAL = 0.85
EVENNESS = 0.10            # how far the rails' bytes may be apart


@dataclasses.dataclass
class Row:
    size: int
    time_us: float
    algbw: float  # bytes/s
    busbw: float  # bytes/s
    wrong: int    # values, in place and out of place


@dataclasses.dataclass
class PerfLog:
    """What railhead-perf's table says."""
    transport: str
    degraded: str
    verified: str
    rows: list
    rails: dict  # rail number: (device, bytes sent, bytes received)


def parse_log(text):
    def field(name):
        found = re.search(rf"^# {name}: (.*)$", text, re.M)
        return found[1] if found else ""

    rows = []
    for line in re.findall(r"^ *\d+ +\d+ +float +sum .*$", text, re.M):
        w = line.split()
        # Out of place: what nccl-tests quotes.
        rows.append(Row(int(w[0]), float(w[4]), float(w[5]) * 1e9, float(w[6]) * 1e9,
                        int(w[7]) + int(w[11])))
    rails = {int(rail): (device, int(sent), int(received)) for rail, device, sent, received in
             re.findall(r"^# rail (\d+): (\S+?)(?: port \d+)?, \w+, sent (\d+) B, received (\d+) B$",
                        text, re.M)}
    return PerfLog(field("transport"), field("degraded"), field("verified"), rows, rails)


@dataclasses.dataclass
class MainJob:
    line_rates: list       # bytes/s that ib_write_bw gives, for each rail
    log: PerfLog
    exit_codes: list       # of each rank
    prometheus: list       # (rank, rail, device, transport, peak bytes/s sent, bytes sent)
    dashboard: str         # what the check of its queries said

    @property
    def busbw(self):
        return next(row.busbw for row in self.log.rows if row.size == LARGE)

    def check(self):
        """Raises where the main job is not right, whatever the machine's speed."""
        expect(self.exit_codes == [0, 0], f"exit codes of the ranks: {self.exit_codes}")
        expect(self.log.verified == "yes", f"verified: {self.log.verified or 'not said'}")
        expect(all(row.wrong == 0 for row in self.log.rows), "wrong values")
        expect(self.log.transport == "verbs", f"the transport is {self.log.transport}, not verbs")
        expect(self.log.degraded == "no", f"degraded: {self.log.degraded}")
        sent = [s for _, s, _ in self.log.rails.values()]
        expect(len(sent) == len(self.line_rates), f"{len(sent)} rails carried bytes")
        expect(max(sent) - min(sent) <= EVENNESS * max(sent), f"uneven rails: {sent}")
        series = {(rank, rail) for rank, rail, *_ in self.prometheus}
        expect(series == {("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")},
               f"Prometheus knows only {sorted(series)}")


def measure(stage):
    """Runs the example unchanged, and asks everybody how it went."""
    with stage.console.step("ib_write_bw on every rail at once: the line rate"):
        line_rates = stage.write_bandwidth()
    with stage.console.step("kubectl apply -f manifests/examples/allreduce.yaml"):
        stage.submit(stage.example())
        stage.wait_for_job("allreduce", 420)
    pods = stage.pods("allreduce")
    codes = [p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in pods]
    logs = [stage.logs(pod) for pod in pods]
    if codes != [0, 0]:
        last = {p["metadata"]["name"]: text.strip()[-500:] for p, text in zip(pods, logs)}
        raise Failure(f"exit codes of the ranks: {codes}; they said: {last}")
    with stage.console.step("asking Prometheus"):
        prometheus = wait_for("Prometheus has seen both ranks", lambda: ask(stage), 20)
        dashboard = stage.cluster.run_inside(
            [sys.executable, ROOT / "tests" / "e2e" / "dashboard_queries.py", PROMETHEUS],
            check=False)
    if dashboard.returncode != 0:
        raise Failure(f"the dashboard has panels without data: {dashboard.stdout.strip()[-600:]} "
                      f"{dashboard.stderr.strip()[-300:]}")
    return MainJob(line_rates, parse_log(logs[0]), codes, prometheus, dashboard.stdout.strip())


def ask(stage):
    """Bandwidth per rank and rail as Prometheus saw it: the best 5 seconds, and all bytes."""
    series = 'railhead_rail_transmit_bytes_total{job="allreduce"}'
    peaks = stage.query(f"max_over_time(rate({series}[5s])[10m:1s])")
    totals = {(m["rank"], m["rail"]): v for m, v in stage.query(f"max_over_time({series}[10m])")}
    rows = sorted((m["rank"], m["rail"], m["device"], m["transport"], v,
                   totals[m["rank"], m["rail"]]) for m, v in peaks)
    return rows if len({rank for rank, *_ in rows}) == 2 else None


def report(console, job):
    log = job.log
    console.plain("\nall_reduce between two pods on two nodes\n")
    rails = sorted(log.rails)
    console.plain(table(
        [["all_reduce", row.size, f"{row.time_us:.1f}", f"{row.algbw / 1e6:.3f}",
          f"{row.busbw / 1e6:.3f}", "yes" if row.wrong == 0 else "NO"] for row in log.rows],
        ["collective", "size (B)", "time (us)", "algbw (MB/s)", "busbw (MB/s)", "verified"]))
    console.plain("\nEach rail, as rank 0 counted it, and as ib_write_bw found it before\n")
    console.plain(table(
        [[r, log.rails[r][0], log.transport, log.rails[r][1], log.rails[r][2],
          f"{job.line_rates[r] / 1e6:.3f}"] for r in rails],
        ["rail", "device", "transport", "sent (B)", "received (B)", "ib_write_bw (MB/s)"]))
    console.plain("\nEach rail, asked from Prometheus: the best 5 seconds\n")
    console.plain(table(
        [[rank, rail, device, transport, f"{peak / 1e6:.3f}", int(total)]
         for rank, rail, device, transport, peak, total in job.prometheus],
        ["rank", "rail", "device", "transport", "sent (MB/s)", "sent (B)"]))
    console.plain(f"""
verified on every rank: {log.verified}; transport: {log.transport}; degraded: {log.degraded}
busbw at 8 MiB: {rate_text(job.busbw)} = {job.busbw / sum(job.line_rates):.1%} of what ib_write_bw gives \
on all rails ({rate_text(sum(job.line_rates))}); the goal is {GOAL:.0%}
dashboard: {job.dashboard.splitlines()[-1] if job.dashboard else ''}
""")
