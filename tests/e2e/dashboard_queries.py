#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a Prometheus every query of a Grafana dashboard, and fails where one returns nothing.

    dashboard_queries.py http://127.0.0.1:9090        the chart's dashboard of jobs, over the last 10 minutes

Grafana's variables are replaced as Grafana replaces them when everything is selected: $job, $rank
and every other template variable by ".*", $__rate_interval by --rate-interval, $__range by the time between
--start and --end. A query counts as answered when it has at least one number (not NaN) somewhere in the range,
or at the one time that is asked for. What counters of ports say is no failure where no NIC of the cluster has
such a counter.

Exit status: 0 every query has data, 1 some have none, 2 the dashboard cannot be read or the
Prometheus cannot be asked.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "charts/railhead/dashboards/railhead.json"
# How far back an instant query looks for the last sample, in seconds: Prometheus's default.
LOOKBACK = 300
LABEL_VALUES = re.compile(r"label_values\((.+),\s*([A-Za-z_][A-Za-z0-9_]*)\)")
# A counter that the node agents serve only where a NIC has it.
PORT_COUNTER = re.compile(r"railhead_port_\w+_total|port:railhead_port_congestion\w*:\w+")
# A variable inside a query: $name, ${name} or [[name]]; the anchor of a regular expression is none.
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::\w+)?\}?|\[\[(\w+)\]\]")


class Unusable(Exception):
    """The check cannot be made at all; the message says why."""


def panels_of(panels):
    """All panels that draw something, also those inside collapsed rows."""
    for panel in panels:
        if panel.get("type") == "row":
            yield from panels_of(panel.get("panels", []))
        else:
            yield panel


def substitute(query, variables, rate_interval, seconds=LOOKBACK):
    """The query as Grafana would send it with "All" selected everywhere, for a range of so many seconds."""
    known = {name: ".*" for name in variables}
    known.update(__rate_interval=rate_interval, __interval=rate_interval, __range=f"{max(1, round(seconds))}s")

    def value(match):
        name = match.group(1) or match.group(2)
        if name not in known:
            raise Unusable(f"query {query!r} uses ${name}, which is no variable of the dashboard")
        return known[name]

    return VARIABLE.sub(value, query)


class Prometheus:
    """The HTTP API of one Prometheus."""

    def __init__(self, url, timeout):
        self._url = url.rstrip("/")
        self._timeout = timeout
        # The server named on the command line and no other: no proxy of the environment between.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path, parameters):
        """The "data" of an answer. Raises ValueError with Prometheus's words when it refuses."""
        url = f"{self._url}{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with self._opener.open(url, timeout=self._timeout) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (400, 422):
                raise Unusable(f"{self._url}{path} answers {error.code} {error.reason}") from error
            try:
                text = json.load(error).get("error", error.reason)
            except ValueError:
                text = error.reason
            raise ValueError(text) from error
        except (OSError, ValueError) as error:
            raise Unusable(f"cannot ask {self._url}: {error}") from error
        return body["data"]


def numbers_in(data):
    """How many series of a query's answer hold a number, whatever the answer's type."""
    if data["resultType"] == "scalar":
        return int(not math.isnan(float(data["result"][1])))
    series = 0
    for result in data["result"]:
        samples = result.get("values") or [result.get("value", (0, "NaN"))]
        series += any(not math.isnan(float(value)) for _, value in samples)
    return series


def nobody_counts(prometheus, query, when):
    """Whether it is about counters of ports that no NIC here has."""
    counters = set(PORT_COUNTER.findall(query))
    return bool(counters) and not any(
        prometheus.get("/api/v1/series", {"match[]": counter, **when}) for counter in counters
    )


def checks_of(dashboard, arguments):
    """Every (what, path, parameters) that the dashboard would ask, and how to ask it."""
    variables = dashboard.get("templating", {}).get("list", [])
    names = [variable["name"] for variable in variables]
    when = {"start": arguments.start, "end": arguments.end}
    for variable in variables:
        match = LABEL_VALUES.fullmatch(variable.get("definition", ""))
        if variable.get("type") != "query":
            continue
        if not match:
            raise Unusable(
                f"variable {variable['name']}: {variable.get('definition')!r} is no label_values()"
            )
        selector = substitute(match.group(1), names, arguments.rate_interval)
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
            query = substitute(target["expr"], names, arguments.rate_interval, arguments.end - arguments.start)
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
                print(f"none  {what}: no NIC here counts it")
            elif series:
                passed += 1
                print(f"ok    {what}: {series} series")
            else:
                failed += 1
                print(f"FAIL  {what}: {reason}\n      {query}")
    except (Unusable, OSError, ValueError) as error:
        print(f"dashboard_queries: {error}", file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed" + (f", {absent} that no NIC here counts" if absent else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
