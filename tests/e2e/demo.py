# SPDX-License-Identifier: Apache-2.0
"""make demo: the main job. Two RDMA nodes, one chart, one all-reduce over every rail.

KEEP=1 leaves the cluster up and prints its kubeconfig; `make demo-down` ends it.
"""

import os
import signal
import sys

from main_job import measure, report
from stage import PROMETHEUS, ROOT, Stage
from railbed.cluster import Cluster
from railbed.console import Console, Failure

FOLDER = ROOT / "out" / "demo"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(console):
    stage = Stage(console, FOLDER)
    console.line(f"Railhead's main job. All logs are in {FOLDER}")
    try:
        stage.up()
        stage.install()
        result = measure(stage)
        report(console, result)
        picture(console, stage)
        if os.environ.get("KEEP") == "1":
            keep(console, stage)
        result.check()
    except BaseException:
        if os.environ.get("KEEP") != "1":
            stage.down()
        raise
    if os.environ.get("KEEP") != "1":
        with console.step("taking everything down"):
            stage.down()


def picture(console, stage):
    """Draws the job's dashboard as Grafana would show it, from the Prometheus that has scraped the job."""
    with console.step("drawing the job's dashboard"):
        # The time at which the job was scraped: its series have ended by now.
        seen = '_over_time(timestamp(railhead_degraded{job="allreduce"})[10m:1s])'
        start = min(value for _, value in stage.query(f"min{seen}"))
        end = max(value for _, value in stage.query(f"max{seen}"))
        stage.cluster.run_inside([
            ROOT / "tools" / "pictures.sh", PROMETHEUS, "--output", FOLDER / "pictures",
            "--dashboard", ROOT / "charts" / "railhead" / "dashboards" / "railhead.json", "--set", "job=allreduce",
            "--start", f"{start:.0f}", "--end", f"{end:.0f}", "--rate-interval", "5s"])
    console.plain(f"  the job's dashboard: {FOLDER / 'pictures' / 'railhead.png'} (and .svg)")


def keep(console, stage):
    inside = f"ip netns exec {stage.cluster.network.name}"
    console.plain(f"""
The cluster stays up (KEEP=1).
  kubeconfig:  {stage.cluster.kubeconfig}
  kubectl:     {inside} {stage.cluster.parts.kube}/kubectl --kubeconfig {stage.cluster.kubeconfig} get pods -A
  Prometheus:  {inside} curl http://127.0.0.1:9090
  end it with: make demo-down
""")


class Interrupted(BaseException):
    """Not a Failure, since loops that wait for a condition treat a Failure as "not yet"."""


def interrupted(signum, _frame):
    """Ctrl-C or SIGTERM: ends like a failure, so that nothing is left behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted(f"interrupted ({signal.Signals(signum).name}): everything was taken down")


def main():
    console = Console()
    if sys.argv[1:] == ["down"]:
        Cluster(FOLDER).down()
        console.line("nothing of the demo is left running")
        return 0
    for number in SIGNALS:
        signal.signal(number, interrupted)
    try:
        try:
            demo(console)
        except Interrupted as interruption:
            raise Failure(str(interruption)) from None
    except Failure as failure:
        console.failed(failure)
        console.plain(f"  all logs: {FOLDER}")
        return 1
    console.line(f"the main job is done: {console.elapsed():.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
