# SPDX-License-Identifier: Apache-2.0
"""Formats the measurements of all collectives as Markdown. Pure functions."""

import dataclasses

from tables import OPEN_MPI, OURS, WINDOWS, figure, size_text

# Their sizes are those of a block; the larger buffer has one block for each rank.
OF_BLOCKS = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")


def title(collective):
    names = {"all_reduce": "All-reduce", "all_gather": "All-gather",
             "reduce_scatter": "Reduce-scatter", "all_to_all": "All-to-all",
             "send_receive": "Send and receive"}
    return names.get(collective, collective.capitalize())


def size_title(size):
    return size_text(size) if size else "no data"


@dataclasses.dataclass
class Results:
    cells: dict       # (collective, ranks, bytes, candidate) -> Cell
    candidates: list  # names, in the order of columns

    def best(self, collective, ranks, size, name):
        cell = self.cells.get((collective, ranks, size, name))
        return cell.best_us if cell else None

    def ratio(self, collective, ranks, size, ours=OURS):
        """Returns our time divided by Open MPI's; None if either was not measured."""
        mine, theirs = (self.best(collective, ranks, size, name) for name in (ours, OPEN_MPI))
        return mine / theirs if mine is not None and theirs else None

    def groups(self):
        """Returns (collective, ranks), in the order of measurement and then of ranks."""
        order = list(dict.fromkeys(key[0] for key in self.cells))
        return sorted({key[:2] for key in self.cells}, key=lambda g: (order.index(g[0]), g[1]))

    def sizes(self, group=None):
        return sorted({key[2] for key in self.cells if group in (None, key[:2])})


def is_slower(ratio):
    """Compares the ratio as the tables show it: with two decimals."""
    return ratio is not None and round(ratio, 2) > 1


def marked(ratio):
    text = figure(ratio, ".2f")
    return f"**{text}**" if is_slower(ratio) else text


def summary_table(results):
    sizes = results.sizes()
    lines = [f"| collective | ranks | {' | '.join(map(size_title, sizes))} |",
             "|---" * (len(sizes) + 2) + "|"]
    for collective, ranks in results.groups():
        cells = []
        for size in sizes:
            anywhere, windows = (results.ratio(collective, ranks, size, ours)
                                 for ours in (OURS, WINDOWS))
            cells.append(marked(anywhere)
                         + (f" ({windows:.2f})" if windows is not None else ""))
        lines.append(f"| {title(collective)} | {ranks} | {' | '.join(cells)} |")
    return lines


def slower_rows(results):
    """Returns a line for each row in which we take longer than Open MPI, with buffers outside windows."""
    lines = []
    for collective, ranks in results.groups():
        for size in results.sizes((collective, ranks)):
            anywhere, windows = (results.ratio(collective, ranks, size, ours)
                                 for ours in (OURS, WINDOWS))
            if not is_slower(anywhere):
                continue
            mine, theirs = (results.best(collective, ranks, size, name)
                            for name in (OURS, OPEN_MPI))
            what = f"{title(collective)}, {ranks} ranks, {size_title(size)}"
            also = f"; in windows {windows:.2f}" if windows is not None else ""
            lines.append(f"- {what}: {anywhere:.2f} ({mine:.1f} us, Open MPI {theirs:.1f} us{also})")
    return lines


def table(results, collective, ranks):
    names = [n for n in results.candidates
             if any(key[:2] == (collective, ranks) and key[3] == n for key in results.cells)]
    lines = [f"| size | {' | '.join(f'{n}, us' for n in names)} | ours / Open MPI | in windows |",
             "|---" * (len(names) + 3) + "|"]
    for size in results.sizes((collective, ranks)):
        times = [figure(results.best(collective, ranks, size, n), ".1f") for n in names]
        lines.append(f"| {size_title(size)} | {' | '.join(times)} "
                     f"| {marked(results.ratio(collective, ranks, size))} "
                     f"| {marked(results.ratio(collective, ranks, size, WINDOWS))} |")
    return lines


def document(results):
    slower = slower_rows(results)
    lines = ["## Ours / Open MPI", "",
             "Our time over shared memory through Open MPI's: below 1, we are faster. Buffers from "
             "anywhere, and in brackets in windows.", "", *summary_table(results), ""]
    lines += ["Slower than Open MPI, with buffers from anywhere:", "", *slower] if slower else [
        "No row is slower than Open MPI's."]
    last = None
    for collective, ranks in results.groups():
        if collective != last:
            lines += ["", f"## {title(collective)}"]
            last = collective
        lines += ["", f"{title(collective)}, {ranks} ranks:", "",
                  *table(results, collective, ranks)]
    return "\n".join(lines)
