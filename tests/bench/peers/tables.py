# SPDX-License-Identifier: Apache-2.0
"""Formats the measurements as Markdown: goals, ratios, and every figure. Pure functions."""

import dataclasses
import statistics

KI, MI = 1 << 10, 1 << 20
OURS, WINDOWS, OURS_TCP = "Railhead shm", "Railhead windows", "Railhead TCP"
OPEN_MPI, GLOO = "Open MPI", "gloo"


@dataclasses.dataclass
class Cell:
    """The best round of all passes, and the median of the passes' medians."""
    best_us: float
    median_us: float


@dataclasses.dataclass
class Results:
    cells: dict       # (ranks, type, bytes, candidate) -> Cell
    bandwidth: dict   # ranks -> bytes that as many threads read and write per second, for each pass
    candidates: list  # names, in the order of columns

    def best(self, ranks, kind, size, name):
        cell = self.cells.get((ranks, kind, size, name))
        return cell.best_us if cell else None

    def peers(self, ranks, kind, size):
        """Returns (microseconds, name) of the other libraries, the fastest first."""
        names = [n for n in self.candidates if n not in (OURS, WINDOWS, OURS_TCP)]
        times = [(self.best(ranks, kind, size, n), n) for n in names]
        return sorted(t for t in times if t[0] is not None)

    def ratio(self, ranks, kind, size, ours=OURS):
        """Returns the fastest peer's time divided by ours; None if either was not measured."""
        time, peers = self.best(ranks, kind, size, ours), self.peers(ranks, kind, size)
        return peers[0][0] / time if time and peers else None

    def against_fp16_of_gloo(self, kind, size, ours=OURS):
        """Returns the same ratio between 2 ranks, relative to gloo's fp16 with the same number of bytes."""
        time, gloo = self.best(2, kind, size, ours), self.best(2, "fp16", size, GLOO)
        return gloo / time if time and gloo else None

    def of_limit(self, ranks, kind, size, ours=OURS):
        """Returns the share of our time that memory needs: every rank reads `size` and writes `size`."""
        ours = self.best(ranks, kind, size, ours)
        return 2 * ranks * size / max(self.bandwidth[ranks]) / (ours * 1e-6) if ours else None

    def sizes(self, ranks, kind):
        return sorted({key[2] for key in self.cells if key[:2] == (ranks, kind)})

    def groups(self):
        """Returns (ranks, type) in the order of the tables: fp32 first."""
        return sorted({key[:2] for key in self.cells}, key=lambda g: (g[1] != "fp32", g[1], g[0]))


def reached(good):
    return "reached" if good else "**missed**"


def size_text(size):
    for unit, name in ((MI, "MiB"), (KI, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def goals(results):
    """Returns rows (what, goal, measured, measured in windows) of the project's goals. None was not measured; rows of
    None only are left out."""
    def against_best(ranks, kind, size, goal):
        return (f"{kind}, {ranks} ranks, {size_text(size)}: times as fast as the best peer", goal,
                *(results.ratio(ranks, kind, size, ours) for ours in (OURS, WINDOWS)))

    rows = [against_best(2, "fp32", size, goal)
            for size, goal in ((64 * MI, 6.0), (16 * MI, 3.5), (4 * MI, 1.8), (MI, 1.8),
                               (16 * KI, 1.0), (KI, 1.0), (8, 1.0))]
    rows += [(f"{kind}, 2 ranks, 64 MiB: times as fast as gloo's fp16", 10.0,
              *(results.against_fp16_of_gloo(kind, 64 * MI, ours) for ours in (OURS, WINDOWS)))
             for kind in ("fp16", "bf16")]
    rows += [against_best(ranks, "fp32", size, 3.0)
             for ranks in (4, 8) for size in (64 * MI, 16 * MI, 4 * MI, MI)]
    rows += [(f"{kind}, 2 ranks, 64 MiB: part of what memory allows", 0.8,
              *(results.of_limit(2, kind, 64 * MI, ours) for ours in (OURS, WINDOWS)))
             for kind in ("fp32", "fp16", "bf16")]
    return [row for row in rows if row[2:] != (None, None)]


def figure(value, form):
    return "-" if value is None else format(value, form)


def goal_table(results):
    lines = ["| goal | at least | any memory | in windows | reached |", "|---|---|---|---|---|"]
    for what, goal, anywhere, windows in goals(results):
        reached = "**no**"
        if windows is not None and windows >= goal:
            reached = "in windows"
        if anywhere is not None and anywhere >= goal:
            reached = "yes"
        lines.append(f"| {what} | {goal:.1f} | {figure(anywhere, '.2f')} | {figure(windows, '.2f')} "
                     f"| {reached} |")
    return lines


def noise(times, others):
    """Describes how reliable the figures are. `times`: (best, median) of each cell's passes; `others`: the share of
    the cores that other programs used, for each run."""
    above = [statistics.median(best for best, _ in of) / min(best for best, _ in of) - 1
             for of in times.values()]
    return (f"Other programs took {statistics.mean(others):.0%} of the cores' time during the\n"
            f"runs, {min(others):.0%} in the quietest and {max(others):.0%} in the loudest. The "
            f"best round of a typical pass took\n{statistics.median(above):.0%} longer than the best of "
            "all passes: smaller differences than that mean nothing.")


def ratio_table(results, ranks, kind):
    names = [n for n in results.candidates
             if any(key[:2] == (ranks, kind) and key[3] == n for key in results.cells)]
    lines = [f"| size | {' | '.join(f'{n}, us' for n in names)} | best peer | times as fast "
             "| in windows | of the limit | in windows |", "|---" * (len(names) + 6) + "|"]
    for size in results.sizes(ranks, kind):
        times = [results.best(ranks, kind, size, n) for n in names]
        peers = results.peers(ranks, kind, size)
        ratios = [figure(results.ratio(ranks, kind, size, ours), ".2f") for ours in (OURS, WINDOWS)]
        parts = [figure(results.of_limit(ranks, kind, size, ours) if size >= MI else None, ".0%")
                 for ours in (OURS, WINDOWS)]
        lines.append(
            f"| {size_text(size)} | {' | '.join(figure(t, '.1f') for t in times)} "
            f"| {peers[0][1] if peers else '-'} | {' | '.join(ratios)} | {' | '.join(parts)} |")
    return lines


def full_table(results, ranks, kind):
    lines = ["| size | library | best us | median us | algbw GB/s | busbw GB/s |",
             "|---|---|---|---|---|---|"]
    for size in results.sizes(ranks, kind):
        for name in results.candidates:
            cell = results.cells.get((ranks, kind, size, name))
            if cell is None:
                continue
            algbw = size / cell.best_us / 1e3
            lines.append(f"| {size_text(size)} | {name} "
                         f"| {cell.best_us:.1f} | {cell.median_us:.1f} "
                         f"| {algbw:.3f} | {algbw * 2 * (ranks - 1) / ranks:.3f} |")
    return lines


def document(results):
    lines = ["## The project's goals", "", *goal_table(results)]
    for ranks, kind in results.groups():
        memory = [passed / 1e9 for passed in results.bandwidth[ranks]]
        lines += ["", f"## {kind}, {ranks} ranks", "",
                  f"Memory with {ranks} threads: {max(memory):.1f} GB/s read and written in the "
                  f"best pass, which is the limit here; {min(memory):.1f} GB/s in the worst.", "",
                  *ratio_table(results, ranks, kind)]
    lines += ["", "## Every figure", "", "Bandwidths are those of the best round."]
    for ranks, kind in results.groups():
        lines += ["", f"### {kind}, {ranks} ranks: every figure", "",
                  *full_table(results, ranks, kind)]
    return "\n".join(lines)
