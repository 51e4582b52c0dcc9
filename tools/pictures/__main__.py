# SPDX-License-Identifier: Apache-2.0
"""Draws Grafana dashboards without Grafana: sends Prometheus the queries that Grafana would send, and draws each
dashboard as SVG and PNG.

    python3 tools/pictures http://127.0.0.1:9090 --output out/pictures      the chart's dashboards, the last 30 minutes

An unknown panel type, unit or transformation is an error.
Exit status: 0 drawn, 1 a query was rejected, 2 a dashboard cannot be read or the Prometheus cannot be reached."""

import argparse
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from dashboard import read  # noqa: E402
from prometheus import Prometheus, Unusable, substitute  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "charts" / "railhead" / "dashboards"


def answers_of(board, prometheus, arguments):
    """Returns for each panel, for each of its targets: [(labels, times, values)], as Grafana gets them."""
    chosen = {name: arguments.set.get(name, ".*") for name in board.variables}
    answers = {}
    for panel in board.panels:
        if isinstance(panel, tuple):
            continue
        answers[panel.title] = [
            _ask(panel, target, substitute(target.query, chosen, arguments.rate_interval, arguments.end - arguments.start),
                 prometheus, arguments) for target in panel.targets]
    return answers


def _ask(panel, target, query, prometheus, arguments):
    try:
        if target.instant:
            data = prometheus.get("/api/v1/query", {"query": query, "time": arguments.end})
            return [(_labels(one), [arguments.end], [float(one["value"][1])]) for one in data["result"]]
        data = prometheus.get("/api/v1/query_range", {"query": query, "start": arguments.start, "end": arguments.end,
                                                      "step": arguments.step})
    except ValueError as error:
        raise ValueError(f"panel {panel.title!r}: {query}: {error}") from error
    count = int((arguments.end - arguments.start) / arguments.step + 1e-9) + 1
    times = [arguments.start + index * arguments.step for index in range(count)]
    found = []
    for one in data["result"]:
        values = [math.nan] * count
        for t, value in one["values"]:
            values[min(count - 1, round((float(t) - arguments.start) / arguments.step))] = float(value)
        found.append((_labels(one), times, values))
    return found


def _labels(result):
    return {name: value for name, value in result["metric"].items() if name != "__name__"}


def parse(argv):
    parser = argparse.ArgumentParser(prog="tools/pictures", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("prometheus", help="for example http://127.0.0.1:9090")
    parser.add_argument("--dashboard", action="append", type=pathlib.Path, help="a dashboard's JSON file; may be repeated "
                        "(default: all of the chart)")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the pictures")
    parser.add_argument("--format", default="svg,png", help="svg, png or both (default: svg,png)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=REGEX", help="a variable's value (default: all)")
    parser.add_argument("--end", type=float, default=time.time(), help="Unix seconds (default: now)")
    parser.add_argument("--start", type=float, help="Unix seconds (default: 30 minutes before --end)")
    parser.add_argument("--step", type=float, help="seconds between points (default: 240 points)")
    parser.add_argument("--rate-interval", default="1m", help="value of $__rate_interval (default 1m)")
    parser.add_argument("--timeout", type=float, default=30, help="seconds for one query (default 30)")
    arguments = parser.parse_args(argv)
    if arguments.start is None:
        arguments.start = arguments.end - 1800
    if arguments.start >= arguments.end:
        parser.error("--start must be before --end")
    arguments.step = arguments.step or max(1, round((arguments.end - arguments.start) / 240))
    arguments.format = arguments.format.split(",")
    if not set(arguments.format) <= {"svg", "png"}:
        parser.error(f"--format {','.join(arguments.format)}: svg, png or both are allowed")
    wrong = [one for one in arguments.set if "=" not in one]
    if wrong:
        parser.error(f"--set {wrong[0]}: write NAME=REGEX")
    arguments.set = dict(one.split("=", 1) for one in arguments.set)
    arguments.dashboard = arguments.dashboard or sorted(FOLDER.glob("*.json"))
    return arguments


def main(argv):
    arguments = parse(argv)
    try:
        boards = [(path.stem, read(path)) for path in arguments.dashboard]
        unknown = set(arguments.set) - {name for _, board in boards for name in board.variables}
        if unknown:
            raise Unusable(f"--set {sorted(unknown)[0]}: no dashboard has this variable")
        prometheus = Prometheus(arguments.prometheus, arguments.timeout)
        # After the checks, since it needs the plotting library.
        from draw import Drawing
        arguments.output.mkdir(parents=True, exist_ok=True)
        for name, board in boards:
            chosen = {key: arguments.set.get(key, "All") for key in board.variables if key != "datasource"}
            drawing = Drawing(board, answers_of(board, prometheus, arguments), arguments.start, arguments.end, chosen)
            for kind in arguments.format:
                path = arguments.output / f"{name}.{kind}"
                drawing.canvas.save(path)
                print(path)
            drawing.canvas.close()
    except ValueError as error:
        print(f"pictures: {error}", file=sys.stderr)
        return 1
    except (Unusable, OSError) as error:
        print(f"pictures: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
