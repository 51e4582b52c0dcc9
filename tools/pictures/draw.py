# SPDX-License-Identifier: Apache-2.0
"""Draws a dashboard as one picture, panel by panel, close to Grafana's light theme.

Coordinates are pixels from the top left. Equal data give an identical SVG: texts stay texts, and identifiers are
hashes of the elements that they name."""

import datetime
import functools
import io
import math
import re

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import FancyBboxPatch, Rectangle  # noqa: E402
from matplotlib.font_manager import FontProperties, findfont  # noqa: E402
from matplotlib.ft2font import FT2Font  # noqa: E402

import units  # noqa: E402
from dashboard import name_of, natural, rows_of  # noqa: E402

WIDTH = 1600
COLUMN = WIDTH / 24
UNIT = 38  # pixels per unit of height in Grafana's grid
GAP = 8
HEADER = 58
ROW = 30
PAGE, PAPER, BORDER, INK, FAINT, GRID = "#f4f5f5", "#ffffff", "#dcdde0", "#24292e", "#6e7480", "#e6e7ea"
COLORS = {"green": "#56a64b", "red": "#e02f44", "orange": "#ff780a", "yellow": "#e0b400", "blue": "#3274d9"}
PALETTE = ["#3274d9", "#56a64b", "#ff780a", "#a352cc", "#e0b400", "#e02f44", "#1f9e9e", "#8ab8ff", "#73bf69", "#b877d9",
           "#c4162a", "#806ebf", "#b07c00", "#19730e", "#5794f2", "#d683ce", "#37872d", "#fa6400", "#1f60c4", "#8f3bb8"]
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "railhead", "path.simplify": True,
    # Verdana is as wide as DejaVu Sans, which is used here to measure texts.
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "axes.linewidth": 0.6})


@functools.cache
def _font(weight):
    font = FT2Font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
    font.set_size(100, 72)
    return font


@functools.cache
def _advance(letter, weight):
    """Returns the advance width of a letter, in hundredths of the font size."""
    return _font(weight).load_char(ord(letter)).linearHoriAdvance / 65536


def text_width(text, size, weight="normal"):
    return sum(_advance(letter, weight) for letter in text) * size / 100


def shortened(text, size, room, weight="normal"):
    """Returns the text, or its beginning and an ellipsis if it is wider than `room`."""
    if text_width(text, size, weight) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle] + "…", size, weight) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


class Canvas:
    """A picture in pixels."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.figure = plt.figure(figsize=(width / 100, height / 100), dpi=100, facecolor=PAGE)

    def text(self, x, y, text, size=12, color=INK, weight="normal", align="left", room=None):
        """Draws a text whose vertical middle is at y."""
        if room is not None:
            text = shortened(text, size, room, weight)
        self.figure.text(x / self.width, 1 - y / self.height, text.replace("$", r"\$"), fontsize=size * 0.72, color=color,
                         fontweight=weight, ha=align, va="center_baseline")

    def panel(self, x, y, w, h):
        """Draws the background of a panel. In points, so that its corners are round and not stretched."""
        points = matplotlib.transforms.Affine2D().scale(1 / 72) + self.figure.dpi_scale_trans
        self.figure.add_artist(FancyBboxPatch(
            (x * 0.72, (self.height - y - h) * 0.72), w * 0.72, h * 0.72, boxstyle="round,pad=0,rounding_size=2",
            transform=points, facecolor=PAPER, edgecolor=BORDER, linewidth=0.7, zorder=-2))

    def box(self, x, y, w, h, color):
        self.figure.add_artist(Rectangle((x / self.width, 1 - (y + h) / self.height), w / self.width, h / self.height,
                                         transform=self.figure.transFigure, facecolor=color, edgecolor="none"))

    def axes(self, x, y, w, h):
        axes = self.figure.add_axes([x / self.width, 1 - (y + h) / self.height, w / self.width, h / self.height])
        axes.set_facecolor("none")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(BORDER)
        axes.tick_params(length=0, labelsize=7.6, colors=FAINT, pad=3)
        return axes

    def save(self, path):
        if path.suffix == ".png":
            self.figure.savefig(path, format="png", facecolor=PAGE, metadata={"Software": "Railhead"})
            return
        text = io.StringIO()
        self.figure.savefig(text, format="svg", facecolor=PAGE, metadata={"Date": None, "Creator": "Railhead"})
        path.write_text(_plain(text.getvalue()), encoding="utf-8")

    def close(self):
        plt.close(self.figure)


def _plain(svg):
    """Returns an equivalent smaller SVG: coordinates rounded to hundredths of a point, and short internal names."""
    names = {name: f"{name[0]}{index}" for index, name in enumerate(dict.fromkeys(re.findall(r'id="([a-z]+[0-9a-f]{10})"', svg)))}
    svg = re.sub(r"\b[a-z]+[0-9a-f]{10}\b", lambda match: names.get(match[0], match[0]), svg)
    svg = re.sub(r"-?\d+\.\d{3,}(?:e-\d+)?", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r' id="(?:text|patch|line2d|matplotlib\.axis|axes|figure|xtick|ytick|FillBetweenPolyCollection)_\d+"', "", svg)
    svg = re.sub(r"\s*<!--.*?-->\s*", "\n", svg, flags=re.S)
    return re.sub(r"\n\s+", "\n", svg)


def clock(axes, start, end):
    """Gives a time axis in UTC about five marks."""
    span = end - start
    every = next((s for s in (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
                  if span / s <= 6), 86400)
    marks = [t for t in range(int(math.ceil(start / every) * every), int(end) + 1, every)]
    form = "%H:%M:%S" if every < 60 else "%H:%M" if span <= 2 * 86400 else "%m-%d"
    axes.set_xticks(marks)
    axes.set_xticklabels([datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime(form) for t in marks])
    axes.set_xlim(start, end)
    axes.tick_params(axis="x", pad=6)


def nice_steps(low, high, count, whole=False):
    """Returns round marks between two numbers, about `count` of them; with `whole`, whole numbers only."""
    raw = ((high - low) or 1) / max(1, count)
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * m for m in ((1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)) if size * m >= raw * 0.999)
    step = max(step, 1) if whole else step
    first = math.ceil(low / step - 1e-9) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]


class Drawing:
    """One dashboard with its data: for each panel, for each target, [(labels, times, values)]."""

    def __init__(self, board, answers, start, end, chosen):
        self.board, self.answers, self.start, self.end = board, answers, start, end
        panels = [panel for panel in board.panels if not isinstance(panel, tuple)]
        # A row of the grid is UNIT high; a row that holds a title is lower.
        self._rows = sorted(panel[1] for panel in board.panels if isinstance(panel, tuple))
        bottom = max(self.top(panel.place["y"] + panel.place["h"]) for panel in panels)
        self.canvas = Canvas(WIDTH + GAP, int(bottom + GAP))
        self._header(chosen)
        for entry in board.panels:
            if isinstance(entry, tuple):
                self.canvas.text(GAP + 4, self.top(entry[1]) + ROW / 2 + 2, entry[0], 14, weight="bold")
            else:
                self._panel(entry)

    def top(self, y):
        return HEADER + y * UNIT - sum(UNIT - ROW for row in self._rows if row < y)

    def _header(self, chosen):
        self.canvas.text(GAP + 4, 24, self.board.title, 18, weight="bold")
        form = "%Y-%m-%d %H:%M:%S"
        times = [datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime(form) for t in (self.start, self.end)]
        self.canvas.text(WIDTH - 4, 24, f"{times[0]} to {times[1]} UTC", 12, FAINT, align="right")
        x = GAP + 4
        for name, value in chosen.items():
            self.canvas.text(x, 46, name, 11, FAINT)
            x += text_width(name, 11) + 6
            self.canvas.text(x, 46, value, 11, weight="bold")
            x += text_width(value, 11, "bold") + 18

    def _panel(self, panel):
        at = panel.place
        x, y = GAP + at["x"] * COLUMN, self.top(at["y"])
        w, h = at["w"] * COLUMN - GAP, self.top(at["y"] + at["h"]) - y - GAP
        self.canvas.panel(x, y, w, h)
        self.canvas.text(x + 10, y + 15, panel.title, 12.5, weight="bold", room=w - 20)
        answers = self.answers[panel.title]
        if not any(answers):
            self.canvas.text(x + w / 2, y + h / 2 + 6, "No data", 13, FAINT, align="center")
            return
        {"stat": self._stat, "timeseries": self._time, "state-timeline": self._states, "bargauge": self._bars,
         "table": self._table, "heatmap": self._heat}[panel.kind](panel, answers, x + 10, y + 30, w - 20, h - 38)

    # -- series ----------------------------------------------------------------------------------

    @staticmethod
    def _series(panel, answers):
        found = []
        for target, answer in zip(panel.targets, answers):
            found += [(name_of(target.legend, labels), times, values) for labels, times, values in answer]
        return found

    # -- panel types -----------------------------------------------------------------------------

    def _stat(self, panel, answers, x, y, w, h):
        series = sorted(self._series(panel, answers), key=lambda one: natural(one[0]))
        each = w / len(series)
        named = len(series) > 1 or panel.options.get("textMode") == "value_and_name"
        for index, (name, times, values) in enumerate(series):
            left = x + index * each
            last = next((v for v in reversed(values) if not math.isnan(v)), math.nan)
            color = COLORS[panel.color(last)] if not math.isnan(last) else FAINT
            text = units.text(last, panel.unit, panel.decimals)
            size = min(38, h * 0.42)
            while size > 14 and text_width(text, size, "bold") > each - 12:
                size -= 1
            real = [(t, v) for t, v in zip(times, values) if not math.isnan(v)]
            if len(real) > 2:
                axes = self.canvas.axes(left, y + h * 0.52, each - 4, h * 0.5)
                axes.axis("off")
                low, high = min(v for _, v in real), max(v for _, v in real)
                floor = min(0, low) if low <= 0 or (high - low) > 0.5 * high else low - 0.2 * (high - low or high or 1)
                axes.fill_between([t for t, _ in real], [v for _, v in real], floor, color=color, alpha=0.12, linewidth=0)
                axes.plot([t for t, _ in real], [v for _, v in real], color=color, alpha=0.5, linewidth=0.9)
                axes.set_xlim(self.start, self.end)
                axes.set_ylim(floor, max(high, floor + 1e-12) + 0.05 * (high - floor or 1))
            self.canvas.text(left + each / 2, y + h * 0.35, text, size, color, "bold",
                             "center")
            if named:
                self.canvas.text(left + each / 2, y + h * 0.78, name, 12, FAINT, align="center", room=each - 6)

    def _time(self, panel, answers, x, y, w, h):
        series = self._series(panel, answers)
        series.sort(key=lambda one: natural(one[0]))
        legend = self._legend_height(series, panel, h)
        plot_h = h - legend - 26
        low, high, stacked = self._extent(panel, series)
        scale = units.scale(high, panel.unit)
        marks = [scale * mark for mark in nice_steps(low / scale, high / scale, max(2, round(plot_h / 27)), panel.decimals == 0)]
        texts = self._mark_texts(marks, panel)
        margin = max(text_width(text, 10.5) for text in texts) + 8
        axes = self.canvas.axes(x + margin, y + 4, w - margin - 16, plot_h)
        axes.set_ylim(low, high)
        axes.set_yticks(marks)
        axes.set_yticklabels(texts)
        axes.grid(axis="y", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        clock(axes, self.start, self.end)
        below = [0.0] * len(series[0][1])
        for index, (name, times, values) in enumerate(series):
            color = PALETTE[index % len(PALETTE)]
            if stacked:
                above = [b + (0 if math.isnan(v) else v) for b, v in zip(below, values)]
                axes.fill_between(times, below, above, color=color, alpha=0.35, linewidth=0)
                axes.plot(times, above, color=color, linewidth=0.9)
                below = above
            else:
                axes.plot(times, values, color=color, linewidth=1.1, solid_joinstyle="round")
                if len(series) <= 3:
                    axes.fill_between(times, values, low, color=color, alpha=0.08, linewidth=0)
        self._legend(series, panel, x, y + h - legend, w, legend)

    @staticmethod
    def _mark_texts(marks, panel):
        """Returns the marks' texts, with enough decimals to distinguish them."""
        for decimals in ((panel.decimals,) if panel.decimals is not None else ()) + (None, 2, 3):
            texts = [units.text(mark, panel.unit, decimals) for mark in marks]
            if len(set(texts)) == len(texts):
                return texts
        return texts

    @staticmethod
    def _extent(panel, series):
        stacked = panel.custom.get("stacking", {}).get("mode") == "normal" and len({len(one[1]) for one in series}) == 1
        values = [v for _, _, found in series for v in found if not math.isnan(v) and not math.isinf(v)]
        if stacked:
            sums = [sum(v for v in column if not math.isnan(v)) for column in zip(*(one[2] for one in series))]
            values += sums
        low = min(values, default=0)
        high = max(values, default=1)
        low = panel.minimum if panel.minimum is not None else low
        high = panel.maximum if panel.maximum is not None else high
        if high <= low:
            high = low + (abs(low) or 1)
        return low, high + 0.06 * (high - low), stacked

    LINE = 15

    def _legend_height(self, series, panel, h):
        lines = len(series) + 1
        return min(lines, max(3, int(h * 0.45 / self.LINE))) * self.LINE

    def _legend(self, series, panel, x, y, w, h):
        calcs = panel.options.get("legend", {}).get("calcs", [])
        room = int(h / self.LINE) - 1
        # With two columns there is no room for figures.
        columns = 1 if len(series) <= room else min(3, math.ceil(len(series) / room))
        each = w / columns
        shown = series[: room * columns]
        if len(shown) < len(series):
            shown = series[: room * columns - 1]
        gap = 6 if columns == 1 else 24
        with_calcs = calcs if columns == 1 or each > 330 else []
        for column in range(columns):
            for index, calc in enumerate(reversed(with_calcs)):
                self.canvas.text(x + (column + 1) * each - gap - index * 82, y + self.LINE / 2, calc, 10.5, COLORS["blue"],
                                 align="right")
        for index, (name, _, values) in enumerate(shown):
            column, line = divmod(index, room)
            left, middle = x + column * each, y + (line + 1.5) * self.LINE
            self.canvas.box(left, middle - 1.5, 12, 3, PALETTE[index % len(PALETTE)])
            self.canvas.text(left + 17, middle, name, 10.5, room=each - gap - 17 - 82 * len(with_calcs))
            real = [v for v in values if not math.isnan(v)]
            for place, calc in enumerate(reversed(with_calcs)):
                figure = {"mean": lambda: sum(real) / len(real), "max": lambda: max(real),
                          "lastNotNull": lambda: real[-1]}[calc]() if real else math.nan
                self.canvas.text(left + each - gap - place * 82, middle, units.text(figure, panel.unit, panel.decimals), 10.5,
                                 align="right")
        if len(shown) < len(series):
            column, line = divmod(len(shown), room)
            self.canvas.text(x + column * each + 17, y + (line + 1.5) * self.LINE, f"and {len(series) - len(shown)} more", 10.5,
                             FAINT)

    def _states(self, panel, answers, x, y, w, h):
        series = sorted(self._series(panel, answers), key=lambda one: natural(one[0]))
        plot_h = h - 44
        room = max(1, int(plot_h / 13))
        more = len(series) - room
        if more > 0:
            series = series[: room - 1]
        # A row is only as high as it needs to be.
        row_h = min(30, plot_h / len(series)) if more <= 0 else plot_h / room
        margin = min(w * 0.45, max(text_width(name, 10.5) for name, _, _ in series) + 10)
        axes = self.canvas.axes(x + margin, y + 2, w - margin - 16, row_h * len(series))
        axes.set_yticks([])
        clock(axes, self.start, self.end)
        axes.set_ylim(len(series), 0)
        for row, (name, times, values) in enumerate(series):
            self.canvas.text(x + margin - 8, y + 2 + (row + 0.5) * row_h, name, 10.5, align="right", room=margin - 8)
            for begin, until, value in self._spans(times, values):
                color = COLORS[self._state(panel, value)[1]]
                axes.add_patch(Rectangle((begin, row + 0.08), until - begin, 0.84, facecolor=color, alpha=0.85, linewidth=0))
        if more > 0:
            self.canvas.text(x + margin - 8, y + 2 + (len(series) + 0.5) * row_h, f"and {more + 1} more", 10.5, FAINT, align="right")
        left = x
        for text, color in dict.fromkeys(panel.mappings.values()):
            self.canvas.box(left, y + h - 9, 12, 3, COLORS[color])
            self.canvas.text(left + 17, y + h - 7, text, 10.5)
            left += text_width(text, 10.5) + 40

    @staticmethod
    def _state(panel, value):
        """Returns the text and the color of a value. A value between two states has the lower one."""
        if value in panel.mappings:
            return panel.mappings[value]
        return units.text(value, panel.unit), panel.color(value)

    def _spans(self, times, values):
        """Returns (from, until, value) of each interval in which the value does not change."""
        step = times[1] - times[0] if len(times) > 1 else 1
        begin, now = None, None
        for t, value in zip(times, values):
            if begin is not None and (math.isnan(value) or value != now):
                yield begin, t, now
                begin = None
            if begin is None and not math.isnan(value):
                begin, now = t, value
        if begin is not None:
            yield begin, min(self.end, times[-1] + step), now

    def _bars(self, panel, answers, x, y, w, h):
        bars = [(name, values[-1]) for name, _, values in self._series(panel, answers)]
        bars.sort(key=lambda bar: (-bar[1], natural(bar[0])))
        row_h = min(30, h / len(bars))
        names = min(w * 0.4, max(text_width(name, 11) for name, _ in bars) + 8)
        texts = [units.text(value, panel.unit, panel.decimals) for _, value in bars]
        figures = max(text_width(text, 12, "bold") for text in texts) + 10
        most = panel.maximum if panel.maximum is not None else max(max(value for _, value in bars), 0) or 1
        width = w - names - figures
        for row, ((name, value), text) in enumerate(zip(bars, texts)):
            middle = y + (row + 0.5) * row_h
            color = COLORS[panel.color(value)]
            self.canvas.text(x, middle, name, 11, room=names - 8)
            self.canvas.box(x + names, middle - row_h * 0.36, width, row_h * 0.72, "#eff0f2")
            share = min(1, max(0, (value - (panel.minimum or 0)) / (most - (panel.minimum or 0))))
            if share > 0:
                self.canvas.box(x + names, middle - row_h * 0.36, max(1.5, width * share), row_h * 0.72, color)
            self.canvas.text(x + w, middle, text, 12, color, "bold", "right")

    def _table(self, panel, answers, x, y, w, h):
        columns, rows = rows_of(panel, [[(labels, values[-1]) for labels, _, values in answer] for answer in answers])
        texts = [column for column in columns if all(isinstance(row.get(column, ""), str) for row in rows)]
        rows.sort(key=lambda row: [natural(row.get(column, "")) for column in texts])
        for order in reversed(panel.options.get("sortBy", [])):
            key = order["displayName"]
            numeric = key not in texts
            rows.sort(key=lambda row: row.get(key, -math.inf) if numeric else natural(row.get(key, "")), reverse=order.get("desc", False))
        colored = panel.custom["cellOptions"]["type"] == "color-background"
        line = 20 if colored else 21
        room = int((h - 22) / line)
        more = len(rows) - room
        shown = rows if more <= 0 else rows[: room - 1]

        def cell(row, column):
            value = row.get(column, "")
            if isinstance(value, str):
                return value
            return units.text(value, panel.overrides.get(column, panel.unit), panel.decimals)

        numbers = {column for column in columns if any(not isinstance(row.get(column, ""), str) for row in rows)}
        needed = [max([text_width(column, 11, "bold"), *(text_width(cell(row, column), 11) for row in shown)]) + 18
                  for column in columns]
        spare = w - sum(needed)
        if colored:
            widths = [needed[0]] + [(w - needed[0]) / (len(columns) - 1)] * (len(columns) - 1)
        elif spare >= 0:
            widths = [one + spare / len(columns) for one in needed]
        else:
            # The widest column shrinks.
            widest = needed.index(max(needed))
            widths = [one + (spare if i == widest else 0) for i, one in enumerate(needed)]
        values = [row[c] for row in rows for c in numbers if c in row] + ([] if panel.minimum is None else [panel.minimum])
        left = x
        for column, width in zip(columns, widths):
            right = column in numbers
            self.canvas.text(left + (width / 2 if colored and right else width - 8 if right else 4), y + 8, column, 11, COLORS["blue"],
                             "bold", "center" if colored and right else "right" if right else "left", room=width - 6)
            for index, row in enumerate(shown):
                middle = y + 22 + (index + 0.5) * line
                if colored and right and column in row:
                    self.canvas.box(left, middle - line / 2 + 0.5, width - 1, line - 1, heat_color(row[column], values))
                ink = FAINT if column not in row else INK
                self.canvas.text(left + (width / 2 if colored and right else width - 8 if right else 4), middle, cell(row, column), 11,
                                 ink, align="center" if colored and right else "right" if right else "left", room=width - 6)
            left += width
        if not colored:
            for index in range(len(shown) + 1):
                self.canvas.box(x, y + 21 + index * line, w, 0.7, GRID)
        if more > 0:
            self.canvas.text(x + 4, y + 22 + (len(shown) + 0.5) * line, f"and {more + 1} more", 11, FAINT)

    def _heat(self, panel, answers, x, y, w, h):
        rows = sorted(((float(labels["le"].replace("+Inf", "inf")), times, values) for labels, times, values in answers[0]),
                      key=lambda row: row[0])
        # Prometheus's buckets are cumulative.
        cells, before = [], None
        for _, _, values in rows:
            cells.append([0 if math.isnan(v) else max(0, v - (0 if before is None or math.isnan(b) else b))
                          for v, b in zip(values, before or [0] * len(values))])
            before = values
        most = max((max(row) for row in cells), default=1) or 1
        used = [index for index, row in enumerate(cells) if max(row) > most * 0.004]
        first, last = (max(0, used[0] - 1), min(len(rows), used[-1] + 2)) if used else (0, len(rows))
        rows, cells = rows[first:last], cells[first:last]
        names = [("> " if math.isinf(bound) else "") + units.text(rows[-2][0] if math.isinf(bound) and len(rows) > 1 else bound, panel.unit)
                 for bound, _, _ in rows]
        margin = max(text_width(name, 10.5) for name in names) + 8
        axes = self.canvas.axes(x + margin, y + 4, w - margin - 16, h - 50)
        times = rows[0][1]
        # Cells of about twelve pixels: sums of adjacent samples.
        every = max(1, round(12 * len(times) / (w - margin)))
        step = times[1] - times[0] if len(times) > 1 else 1
        for index, row in enumerate(cells):
            for begin in range(0, len(row), every):
                value = sum(row[begin:begin + every]) / len(row[begin:begin + every])
                if value > most * 0.004:
                    axes.add_patch(Rectangle((times[begin], index + 0.04), step * every * 0.94, 0.92, linewidth=0,
                                             facecolor=_shade(matplotlib.colormaps["Oranges"](0.1 + 0.9 * (value / most) ** 0.5))))
        axes.set_ylim(0, len(rows))
        axes.set_yticks([index + 0.5 for index in range(len(rows))])
        axes.set_yticklabels(names)
        clock(axes, self.start, self.end)
        left, bottom = x + margin, y + h - 14
        for part in range(24):
            self.canvas.box(left + part * 6, bottom, 6.5, 8, _shade(matplotlib.colormaps["Oranges"](0.1 + 0.9 * ((part + 0.5) / 24) ** 0.5)))
        self.canvas.text(left - 6, bottom + 4, "0", 10.5, FAINT, align="right")
        self.canvas.text(left + 24 * 6 + 6, bottom + 4, units.text(most, "short"), 10.5, FAINT)


def _shade(color):
    return matplotlib.colors.to_hex(color)


def heat_color(value, values):
    """Returns a color from red (lowest) by yellow to green (highest), pale enough for a text on it."""
    low, high = min(values), max(values)
    share = (value - low) / (high - low) if high > low else 1
    red, green, blue, _ = matplotlib.colormaps["RdYlGn"](0.08 + 0.84 * share)
    return _shade([1 - 0.72 * (1 - part) for part in (red, green, blue)])
