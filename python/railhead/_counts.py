# SPDX-License-Identifier: Apache-2.0
"""Counts and displacements of a buffer that has one part for each rank.

Callers pass integers of any type, whose own arithmetic may wrap around (NumPy's int16: 20000 + 20000 = -25536). They
become Python's integers here, before any arithmetic.
"""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Sequence

MAX = 2**63 - 1  # no memory has more elements


def _whole(numbers: Sequence[Any], ranks: int, what: str) -> List[int]:
    """Returns Python's integers of equal values. TypeError: not all are integers. ValueError: too few, many or large."""
    try:
        whole = [operator.index(number) for number in numbers]
    except TypeError:
        raise TypeError(f"{what}: {numbers!r} must be {ranks} integers, one for each rank") from None
    if len(whole) != ranks or not all(0 <= number <= MAX for number in whole):
        raise ValueError(f"{what}: {whole} must be {ranks} numbers from 0 to 2**63-1, one for each rank")
    return whole


class Parts:
    """The parts of one buffer, in elements. Without displacements they are adjacent."""

    def __init__(self, what: str, counts: Sequence[Any], displacements: Optional[Sequence[Any]], ranks: int) -> None:
        """`what` precedes "counts" and "displacements" in the texts of errors: "", "send_" or "recv_"."""
        self.counts = _whole(counts, ranks, f"{what}counts")
        self._begins = None if displacements is None else _whole(displacements, ranks, f"{what}displacements")

    @property
    def end(self) -> int:
        """The number of elements up to the end of the last part."""
        if self._begins is None:
            return sum(self.counts)
        return max((begin + count for begin, count in zip(self._begins, self.counts) if count > 0), default=0)

    def sizes(self, each: int) -> List[int]:
        """The counts, for elements that the C API counts as `each`."""
        return [count * each for count in self.counts]

    def begins(self, each: int) -> Optional[List[int]]:
        """The displacements, likewise. Parts without elements begin at 0, so that every number fits the C type."""
        if self._begins is None:
            return None
        return [begin * each if count > 0 else 0 for begin, count in zip(self._begins, self.counts)]
