#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends a Prometheus every query of a Grafana dashboard, and fails if one returns nothing.

    dashboard_queries.py http://127.0.0.1:9090        the chart's dashboard of jobs, over the last 10 minutes

Replaces Grafana's variables as Grafana does if everything is selected: $job, $rank and every other template variable
by ".*", $__rate_interval by --rate-interval, $__range by the time between --start and --end. A query has data if it
has at least one number (not NaN) in the range, or at its time if it is an instant query. An empty query of a port's
counter is not a failure if no NIC of the cluster has that counter, and one about NCCL not if no job uses it.

Exit status: 0 every query has data, 1 some have none, 2 the dashboard cannot be read or the
Prometheus cannot be reached.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "pictures"))

from prometheus import Prometheus, Unusable, substitute  # noqa: E402

DASHBOARD = ROOT / "charts/railhead/dashboards/railhead.json"
# Seconds that an instant query looks back for the last sample: Prometheus's default.
LOOKBACK = 300
LABEL_VALUES = re.compile(r"label_values\((.+),\s*([A-Za-z_][A-Za-z0-9_]*)\)")
# Series that a cluster may lack: counters that the node agents serve only if a NIC has them, and those of NCCL's ranks.
OPTIONAL = re.compile(r"railhead_port_\w+_total|port:railhead_port_congestion\w*:\w+|railhead_nccl_\w+")
NCCL = 'source="nccl"'


def panels_of(panels):
    """Returns all panels that draw something, also those inside collapsed rows."""
    for panel in panels:
        if panel.get("type") == "row":
            yield from panels_of(panel.get("panels", []))
        else:
            yield panel


def numbers_in(data):
    """Returns the number of series in a query's result that contain a number, for any result type."""
    if data["resultType"] == "scalar":
        return int(not math.isnan(float(data["result"][1])))
    series = 0
    for result in data["result"]:
        samples = result.get("values") or [result.get("value", (0, "NaN"))]
        series += any(not math.isnan(float(value)) for _, value in samples)
    return series


def nobody_counts(prometheus, query, when):
    """Returns whether the query is about series that nothing in this cluster has."""
    series = set(OPTIONAL.findall(query)) | ({f"{{{NCCL}}}"} if NCCL in query else set())
    return bool(series) and not any(
        prometheus.get("/api/v1/series", {"match[]": one, **when}) for one in series
    )


def checks_of(dashboard, arguments):
    """Returns (what, path, parameters) for every query of the dashboard."""
    variables = dashboard.get("templating", {}).get("list", [])
    chosen = {variable["name"]: ".*" for variable in variables}
    seconds = arguments.end - arguments.start
    when = {"start": arguments.start, "end": arguments.end}
    for variable in variables:
        match = LABEL_VALUES.fullmatch(variable.get("definition", ""))
        if variable.get("type") != "query":
            continue
        if not match:
            raise Unusable(
                f"variable {variable['name']}: {variable.get('definition')!r} is no label_values()"
            )
        selector = substitute(match.group(1), chosen, arguments.rate_interval, seconds)
        yield (
            f"variable {variable['name']}",
            f"/api/v1/label/{match.group(2)}/values",
            {"match[]": selector, **when, "start": arguments.start - LOOKBACK},
        )
    for panel in panels_of(dashboard.get("panels", [])):
        targets = [target for target in panel.get("targets", []) if target.get("expr")]
        if not targets:
            raise Unusable(f"panel {panel.get('title')!r} has no query")
        for target in targets:
            query = substitute(target["expr"], chosen, arguments.rate_interval, seconds)
            what = f"panel {panel['title']!r} query {target.get('refId', '?')}"
            if arguments.start == arguments.end:
                yield what, "/api/v1/query", {"query": query, "time": arguments.end}
            else:
                yield what, "/api/v1/query_range", {"query": query, "step": arguments.step, **when}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("prometheus", help="for example http://127.0.0.1:9090")
    parser.add_argument(
        "--dashboard", default=DASHBOARD, help="the dashboard's JSON file (default: the chart's of jobs)"
    )
    parser.add_argument(
        "--start", type=float, help="start of the range, Unix seconds (default: 600 before --end)"
    )
    parser.add_argument(
        "--end", type=float, default=time.time(), help="Unix seconds (default: now)"
    )
    parser.add_argument("--step", type=float, default=1, help="seconds between points (default 1)")
    parser.add_argument(
        "--rate-interval", default="5s", help="value of $__rate_interval (default 5s)"
    )
    parser.add_argument(
        "--timeout", type=float, default=10, help="seconds for one query (default 10)"
    )
    arguments = parser.parse_args(argv)
    if arguments.start is None:
        arguments.start = arguments.end - 600
    if arguments.start > arguments.end or arguments.step <= 0:
        parser.error("--start must not be after --end, and --step must be positive")
    return arguments


def main(argv):
    arguments = parse(argv)
    try:
        with open(arguments.dashboard, encoding="utf-8") as file:
            dashboard = json.load(file)
        prometheus = Prometheus(arguments.prometheus, arguments.timeout)
        passed = failed = absent = 0
        for what, path, parameters in checks_of(dashboard, arguments):
            query = parameters.get("query") or parameters["match[]"]
            try:
                data = prometheus.get(path, parameters)
                series = len(data) if isinstance(data, list) else numbers_in(data)
                reason = "no data"
            except ValueError as error:
                series, reason = 0, f"refused: {error}"
            if not series and reason == "no data" and nobody_counts(
                prometheus, query, {"start": arguments.start - LOOKBACK, "end": arguments.end}
            ):
                absent += 1
                print(f"none  {what}: nothing here counts it")
            elif series:
                passed += 1
                print(f"ok    {what}: {series} series")
            else:
                failed += 1
                print(f"FAIL  {what}: {reason}\n      {query}")
    except (Unusable, OSError, ValueError) as error:
        print(f"dashboard_queries: {error}", file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed" + (f", {absent} that nothing here counts" if absent else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
