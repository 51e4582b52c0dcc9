# SPDX-License-Identifier: Apache-2.0
"""Parses and checks a Grafana dashboard's JSON. Anything that the drawing does not support is an error here."""

import dataclasses
import json
import re

import units
from prometheus import Unusable

KINDS = {"stat", "timeseries", "state-timeline", "bargauge", "table", "heatmap"}
TRANSFORMATIONS = {"merge", "organize", "groupingToMatrix"}
CALCULATIONS = {"lastNotNull", "mean", "max"}
COLOR_MODES = {"continuous-RdYlGr"}
CELLS = {"auto", "color-background"}


@dataclasses.dataclass
class Target:
    query: str
    legend: str
    instant: bool


@dataclasses.dataclass
class Panel:
    title: str
    kind: str
    place: dict  # x, y, w, h in Grafana's grid of 24 columns
    targets: list
    unit: str = "short"
    decimals: int = None
    minimum: float = None
    maximum: float = None
    steps: list = dataclasses.field(default_factory=list)  # (lower bound, color), rising
    mappings: dict = dataclasses.field(default_factory=dict)  # value to (text, color)
    transformations: list = dataclasses.field(default_factory=list)
    overrides: dict = dataclasses.field(default_factory=dict)  # column to unit
    options: dict = dataclasses.field(default_factory=dict)
    custom: dict = dataclasses.field(default_factory=dict)

    def color(self, value):
        """Returns the color by the thresholds."""
        found = "green"
        for least, color in self.steps:
            if least is None or value >= least:
                found = color
        return found


@dataclasses.dataclass
class Dashboard:
    uid: str
    title: str
    variables: list
    panels: list  # of Panel, and of (title, y) for rows


def read(path):
    """Returns the dashboard of a file. Raises Unusable, which names panel, field and supported values."""
    try:
        with open(path, encoding="utf-8") as file:
            board = json.load(file)
        variables = [variable["name"] for variable in board["templating"]["list"]]
        return Dashboard(board["uid"], board["title"], variables, [_panel(panel) for panel in board["panels"]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unusable(f"{path} is no dashboard: {error!r}") from error
    except Unusable as error:
        raise Unusable(f"{path}: {error}") from error


def _known(panel, what, value, known):
    if value not in known:
        raise Unusable(f"panel {panel['title']!r}: {what} {value!r} is not known; known: {', '.join(sorted(known))}")
    return value


def _panel(panel):
    if panel["type"] == "row":
        return panel["title"], panel["gridPos"]["y"]
    kind = _known(panel, "panel type", panel["type"], KINDS)
    defaults = panel["fieldConfig"]["defaults"]
    unit = _known(panel, "unit", defaults.get("unit", "short"), units.KNOWN)
    for step in panel.get("transformations", []):
        _known(panel, "transformation", step["id"], TRANSFORMATIONS)
    options = panel.get("options", {})
    for one in options.get("legend", {}).get("calcs", []) + options.get("reduceOptions", {}).get("calcs", []):
        _known(panel, "calculation", one, CALCULATIONS)
    if "color" in defaults:
        _known(panel, "color mode", defaults["color"]["mode"], COLOR_MODES)
    if kind == "table":
        _known(panel, "cell type", defaults["custom"]["cellOptions"]["type"], CELLS)
    overrides = {}
    for override in panel["fieldConfig"].get("overrides", []):
        _known(panel, "matcher", override["matcher"]["id"], {"byName"})
        for each in override["properties"]:
            _known(panel, "override", each["id"], {"unit"})
            overrides[override["matcher"]["options"]] = _known(panel, "unit", each["value"], units.KNOWN)
    mappings = {}
    for mapping in defaults.get("mappings", []):
        _known(panel, "mapping", mapping["type"], {"value"})
        for value, look in mapping["options"].items():
            mappings[float(value)] = (look["text"], look["color"])
    return Panel(
        panel["title"], kind, panel["gridPos"],
        [Target(target["expr"], target.get("legendFormat", ""), bool(target.get("instant")))
         for target in panel["targets"]],
        unit, defaults.get("decimals"), defaults.get("min"), defaults.get("max"),
        [(step["value"], step["color"]) for step in defaults.get("thresholds", {}).get("steps", [])],
        mappings, panel.get("transformations", []), overrides, options, defaults.get("custom", {}))


def name_of(legend, labels):
    """Returns a series' name: the legend with its labels."""
    if not legend:
        return "{" + ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}"
    text = re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend)
    return re.sub(r"\s+", " ", text).strip()


def rows_of(panel, answers):
    """Returns (columns, rows) of a table after the panel's transformations; each row is a dict. `answers` holds for
    each target [(labels, value)]. Columns are in order; values are numbers or texts."""
    frames = []
    for index, answer in enumerate(answers):
        value = "Value" if len(answers) == 1 else f"Value #{chr(65 + index)}"
        frames.append([dict(labels, **{value: number}) for labels, number in answer])
    rows = [row for frame in frames for row in frame]
    columns = sorted({column for row in rows for column in row}, key=lambda column: (column.startswith("Value"), column))
    for step in panel.transformations:
        rows, columns = _TRANSFORM[step["id"]](rows, columns, step.get("options", {}))
    return columns, rows


def _merge(rows, columns, _options):
    """Merges rows with equal labels."""
    merged = {}
    for row in rows:
        key = tuple(sorted((column, cell) for column, cell in row.items() if not column.startswith("Value")))
        merged.setdefault(key, {}).update(row)
    return list(merged.values()), columns


def _organize(rows, columns, options):
    left_out = {name for name, out in options.get("excludeByName", {}).items() if out}
    order = options.get("indexByName", {})
    names = options.get("renameByName", {})
    kept = sorted((column for column in columns if column not in left_out), key=lambda column: order.get(column, 1000))
    return ([{names.get(column, column): row[column] for column in kept if column in row} for row in rows],
            [names.get(column, column) for column in kept])


def _matrix(rows, _columns, options):
    row_field, column_field, value = options["rowField"], options["columnField"], options["valueField"]
    corner = f"{row_field}\\{column_field}"
    found, heads = {}, set()
    for row in rows:
        heads.add(row[column_field])
        found.setdefault(row[row_field], {corner: row[row_field]})[row[column_field]] = row[value]
    return ([found[key] for key in sorted(found, key=natural)], [corner, *sorted(heads, key=natural)])


def natural(text):
    """Sort key in natural order: rank 2 before rank 10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(text)) if part]


_TRANSFORM = {"merge": _merge, "organize": _organize, "groupingToMatrix": _matrix}
