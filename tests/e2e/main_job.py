# SPDX-License-Identifier: Apache-2.0
"""The main job, measured: the example's all-reduce compared with ib_write_bw and with Prometheus."""

import contextlib
import dataclasses
import re
import sys

from documents import until_told
from stage import PATIENCE, ROOT, PROMETHEUS, expect, rate_text
from railbed.console import Failure, table, wait_for
from railbed.process import run

LARGE = 8 * 2**20
# Minimum busbw at 8 MiB, as a share of ib_write_bw's bandwidth. A job slightly below it gets an explanation, a job
# far below it fails; but not if this machine spent more than BUSY_ELSEWHERE of its CPU time on other work, or its CPUs
# were SATURATED (then FLOOR_SATURATED applies): the emulated CPUs are the limit then, which ib_write_bw needs less,
# since it does not touch the data.
GOAL = 0.85
FLOOR = 0.60
BUSY_ELSEWHERE = 0.15
SATURATED = 0.97
FLOOR_SATURATED = 0.30
# Maximum relative difference between the bytes of two rails of one speed. The runtime gives each rail what it measures,
# and rates of emulated NICs differ with the work of this machine's CPUs; rail_scheduler_test.cc has the exact shares.
EVENNESS = 0.40


@dataclasses.dataclass
class Row:
    size: int
    time_us: float
    algbw: float  # bytes/s
    busbw: float  # bytes/s
    wrong: int    # wrong values, in place and out of place


@dataclasses.dataclass
class PerfLog:
    """The table that railhead-perf prints."""
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
        # Out of place, which is the figure that nccl-tests users quote.
        rows.append(Row(int(w[0]), float(w[4]), float(w[5]) * 1e9, float(w[6]) * 1e9,
                        int(w[7]) + int(w[11])))
    rails = {int(rail): (device, int(sent), int(received)) for rail, device, sent, received in
             re.findall(r"^# rail (\d+): (\S+?)(?: port \d+)?, \w+, sent (\d+) B, received (\d+) B$",
                        text, re.M)}
    return PerfLog(field("transport"), field("degraded"), field("verified"), rows, rails)


@dataclasses.dataclass
class MainJob:
    line_rates: list       # bytes/s of ib_write_bw on each rail
    log: PerfLog
    exit_codes: list       # of each rank
    prometheus: list       # (rank, rail, device, transport, peak bytes/s sent, bytes sent)
    dashboard: str         # output of the check of its queries
    busy: float            # share of this machine's CPU time in use while the job ran
    elsewhere: float       # share used by other programs than the cluster

    @property
    def busbw(self):
        """Returns the busbw of the last pass: by then the runtime has measured the rails."""
        return [row.busbw for row in self.log.rows if row.size == LARGE][-1]

    @property
    def share(self):
        """Returns the busbw as a share of the line rate."""
        return self.busbw / sum(self.line_rates)

    def check(self):
        """Raises Failure if the main job is wrong, whatever the machine's speed."""
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
        floor = FLOOR_SATURATED if self.busy > SATURATED else FLOOR
        expect(self.share >= floor or self.elsewhere > BUSY_ELSEWHERE,
               f"busbw at 8 MiB is {self.share:.1%} of the line rate, not even {floor:.0%}; this machine's "
               f"CPUs were in use {self.busy:.0%} of the time")


def measure(stage):
    """Runs the example until Prometheus has scraped it; collects the results of ranks, Prometheus and nodes."""
    with stage.console.step("ib_write_bw on every rail at once, both ways: the line rate"):
        line_rates = stage.write_bandwidth()
    with stage.console.step("manifests/examples/allreduce.yaml, until Prometheus has seen both ranks"):
        pods = stage.submit_held(until_told(stage.example()))
        before = cpu_times(stage)
        stage.release(pods)
        wait_for("Prometheus has seen both ranks", lambda: ask(stage), 2 * PATIENCE, interval=2)
        stage.finish(pods)
        stage.wait_for_job("allreduce", 3 * PATIENCE)
        total, idle, ours = (after - old for after, old in zip(cpu_times(stage), before))
    pods = stage.pods("allreduce")
    codes = [p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in pods]
    logs = [stage.logs(pod) for pod in pods]
    if codes != [0, 0]:
        last = {p["metadata"]["name"]: text.strip()[-500:] for p, text in zip(pods, logs)}
        raise Failure(f"exit codes of the ranks: {codes}; they said: {last}")
    with stage.console.step("asking Prometheus"):
        prometheus = ask(stage)
        dashboard = stage.cluster.run_inside(
            [sys.executable, ROOT / "tests" / "e2e" / "dashboard_queries.py", PROMETHEUS],
            check=False)
    if dashboard.returncode != 0:
        raise Failure(f"the dashboard has panels without data: {dashboard.stdout.strip()[-600:]} "
                      f"{dashboard.stderr.strip()[-300:]}")
    return MainJob(line_rates, parse_log(logs[0]), codes, prometheus, dashboard.stdout.strip(),
                   1 - idle / total, 1 - (idle + ours) / total)


def cpu_times(stage):
    """Returns this machine's CPU time so far: all, idle, and of the cluster's running processes."""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    ours = 0
    for pid in run(["ip", "netns", "pids", stage.cluster.network.name]).stdout.split():
        with contextlib.suppress(OSError):  # the process may have ended
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                ours += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    return sum(times), times[3] + times[4], ours


def ask(stage):
    """Returns bandwidth per rank and rail as Prometheus recorded it: the best 5 seconds, and all bytes; None until
    complete."""
    series = 'railhead_rail_transmit_bytes_total{job="allreduce"}'
    peaks = stage.query(f"max_over_time(rate({series}[5s])[10m:1s])")
    totals = {(m["rank"], m["rail"]): v for m, v in stage.query(f"max_over_time({series}[10m])")}
    rows = sorted((m["rank"], m["rail"], m["device"], m["transport"], v,
                   totals[m["rank"], m["rail"]]) for m, v in peaks)
    return rows if len(rows) == 2 * stage.cluster.rails and all(row[4] > 0 for row in rows) else None


def report(console, job):
    log = job.log
    console.plain("\nall_reduce between two pods on two nodes\n")
    rails = sorted(log.rails)
    sizes = len({row.size for row in log.rows})
    console.plain(table(
        [["all_reduce", row.size, f"{row.time_us:.1f}", f"{row.algbw / 1e6:.3f}",
          f"{row.busbw / 1e6:.3f}", "yes" if row.wrong == 0 else "NO"] for row in log.rows[-sizes:]],
        ["collective", "size (B)", "time (us)", "algbw (MB/s)", "busbw (MB/s)", "verified"]))
    console.plain("\nEach rail, as rank 0 counted it, and as ib_write_bw found it before, one way of two\n")
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
busbw at 8 MiB: {rate_text(job.busbw)} = {job.share:.1%} of what ib_write_bw gives on all rails with \
traffic both ways ({rate_text(sum(job.line_rates))} each way); the goal is {GOAL:.0%}{why_below(job)}
dashboard: {job.dashboard.splitlines()[-1] if job.dashboard else ''}
""")


def why_below(job):
    """Returns the reasons why the job missed its goal, if it did."""
    if job.share >= GOAL:
        return ""
    why = (f"\n  below it: this machine's CPUs, which play the nodes' CPUs and NICs, were in use "
           f"{job.busy:.0%} of the time")
    if job.elsewhere > BUSY_ELSEWHERE:
        return f"{why}, {job.elsewhere:.0%} by something else than the cluster: this is no measurement"
    return f"{why}; they are the limit, not the rails" if job.busy > 0.9 else why


def main_job(stage):
    """The unchanged example: verified on every rank, over verbs, at line rate, with equal bytes on the rails."""
    result = measure(stage)
    report(stage.console, result)
    result.check()
