# SPDX-License-Identifier: Apache-2.0
"""Formats the measurements as Markdown: times, ratios and goals. Pure functions."""

import dataclasses
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

from neighbours import QUIET  # noqa: E402
from tables import reached, size_text  # noqa: E402

C_API, LIBMPI, OPEN_MPI, MPICH = "C API", "libmpi", "Open MPI", "MPICH"
OURS = (C_API, LIBMPI)
LIBRARIES = (*OURS, OPEN_MPI, MPICH)
# torch, both backends in the same processes, and the C API with the library of its wheel.
WHEEL, TORCH_OURS, TORCH_GLOO = "C API of the wheel", "torch, railhead", "torch, gloo"
TORCH = (WHEEL, TORCH_OURS, TORCH_GLOO)

TRANSPORTS = {"memory": "Memory", "tcp": "TCP"}
GOALS = {"memory": 2.0, "tcp": 1.2}  # maximum of our time / Open MPI's


@dataclasses.dataclass
class Results:
    """Times of one condition over one transport."""
    times: dict  # (library, bytes) -> [(best us, median us) of each pass's rounds]
    best: bool   # the figure of a table: the best round of all passes, or the median of the passes' medians

    def of_passes(self, library, size):
        return [pair[0 if self.best else 1] for pair in self.times.get((library, size), [])]

    def us(self, library, size):
        """Returns the figure in microseconds; None if it was not measured."""
        found = self.of_passes(library, size)
        return (min if self.best else statistics.median)(found) if found else None

    def ratio(self, library, other, size):
        one, two = self.us(library, size), self.us(other, size)
        return one / two if one is not None and two is not None else None

    def sizes(self, of=LIBRARIES + TORCH):
        return sorted({size for library, size in self.times if library in of})

    def libraries(self, of=LIBRARIES + TORCH):
        """Returns the libraries that were measured, in the order of columns."""
        return [name for name in of if any(library == name for library, _ in self.times)]


@dataclasses.dataclass
class Section:
    """One condition."""
    title: str
    about: str
    results: dict  # transport -> Results
    not_measured: str = ""  # the reason


def us_text(us):
    if us is None:
        return "-"
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def ratio_text(ratio, goal=None):
    if ratio is None:
        return "-"
    return f"**{ratio:.2f}**" if goal is not None and ratio > goal else f"{ratio:.2f}"


def table(header, rows):
    return [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def compared(results):
    """Returns our libraries that can be compared with Open MPI."""
    return [name for name in results.libraries(OURS) if results.libraries((OPEN_MPI,))]


def main_table(results, transport):
    names, ours = results.libraries(LIBRARIES), compared(results)
    return table(
        ["size", *(f"{name}, us" for name in names), *(f"{name} / {OPEN_MPI}" for name in ours)],
        ([size_text(size), *(us_text(results.us(name, size)) for name in names),
          *(ratio_text(results.ratio(name, OPEN_MPI, size), GOALS[transport]) for name in ours)]
         for size in results.sizes(LIBRARIES)))


def goal_lines(results, transport):
    words = []
    for name in compared(results):
        ratios = {size: ratio for size in results.sizes(LIBRARIES)
                  if (ratio := results.ratio(name, OPEN_MPI, size)) is not None}
        if ratios:
            missed = [size_text(size) for size, ratio in ratios.items() if ratio > GOALS[transport]]
            words.append(f"{name}: {reached(not missed)}{' at ' if missed else ''}{', '.join(missed)} "
                         f"(largest {max(ratios.values()):.2f}).")
    goal = f"Goal: at most {GOALS[transport]} times Open MPI's time at every size."
    return [" ".join([goal, *words])] if words else []


def torch_table(results):
    rows = []
    for size in results.sizes(TORCH):
        call, ours, gloo = (results.us(name, size) for name in TORCH)
        more = None if call is None or ours is None else ours - call
        rows.append([size_text(size), us_text(call), us_text(ours), us_text(gloo),
                     ratio_text(results.ratio(TORCH_OURS, TORCH_GLOO, size)), us_text(more)])
    return table(["size", "C API, us", "railhead, us", "gloo, us", "railhead / gloo", "more than the C API, us"], rows)


def every_figure(results):
    def cell(name, size):
        passes = results.times.get((name, size))
        if not passes:
            return "-"
        return (f"{us_text(min(best for best, _ in passes))} / "
                f"{us_text(statistics.median(median for _, median in passes))}")

    names = results.libraries()
    return table(["size", *names],
                 ([size_text(size), *(cell(name, size) for name in names)] for size in results.sizes()))


def spread(all_results):
    """Returns how much the figure of a typical pass is above the lowest pass, as a share of that, in a typical cell."""
    above = []
    for results in all_results:
        for library, size in results.times:
            passes = results.of_passes(library, size)
            above.append(statistics.median(passes) / min(passes) - 1)
    return statistics.median(above)


def noise(all_results, others):
    """Describes how reliable the figures are. `others`: the share of the cores that others used in each run."""
    share = statistics.mean(others)
    text = f"Other programs took {share:.0%} of the cores' time ({min(others):.0%} to {max(others):.0%} of a run's)"
    if share > QUIET:
        text = f"**{text}: measure again on a quiet machine**"
    passes = max(len(found) for results in all_results for found in results.times.values())
    if passes == 1:
        return f"{text}."
    return (f"{text}.\nThe figure of a typical pass is {spread(all_results):.0%} above that of the lowest pass: "
            "smaller differences mean nothing.")


def document(sections):
    lines = []
    for section in sections:
        lines += [f"## {section.title}", ""]
        if section.about:
            lines += [section.about, ""]
        if section.not_measured:
            lines += [f"Not measured: {section.not_measured}.", ""]
            continue
        for transport, results in section.results.items():
            if results.libraries(LIBRARIES):
                lines += [f"### {TRANSPORTS[transport]}", "", *main_table(results, transport), ""]
                lines += [line for goal in goal_lines(results, transport) for line in (goal, "")]
            if results.libraries(TORCH):
                lines += [f"### torch.distributed, {TRANSPORTS[transport].replace('Memory', 'memory')}", "",
                          *torch_table(results), ""]
        lines += ["### Best and median", "",
                  "Microseconds: the best round of all passes / the median of the passes' medians.", ""]
        for transport, results in section.results.items():
            lines += [f"#### {TRANSPORTS[transport]}", "", *every_figure(results), ""]
    return "\n".join(lines).rstrip()
