# SPDX-License-Identifier: Apache-2.0
"""Formats numbers as Grafana does, by the unit of a panel."""

import math

_SI = ("", "K", "M", "G", "T", "P")
_SECONDS = ((86400 * 365, "years"), (86400 * 7, "weeks"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"),
            (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
# Unit to (text after a number with its SI prefix, whether a blank separates them).
_SCALED = {"short": ("", False), "Bps": ("B/s", True), "ops": (" ops/s", False), "cps": (" /s", False),
           "reqps": (" req/s", False)}
KNOWN = {*_SCALED, "s", "percentunit"}


def _digits(value, decimals):
    """Formats at most three significant digits, unless the panel sets the number of decimals."""
    if decimals is None:
        size = abs(value)
        decimals = 0 if size >= 100 or value == round(value) else 1 if size >= 10 else 2
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def scale(value, unit):
    """Returns the number of which the marks of an axis up to this value should be multiples."""
    if unit != "s":
        return 1
    return next((size for size, _ in _SECONDS if abs(value) >= size), 1)


def text(value, unit, decimals=None):
    """Formats a number with its unit. Raises KeyError if the unit is not in KNOWN."""
    if unit not in KNOWN:
        raise KeyError(unit)
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if unit == "percentunit":
        return _digits(value * 100, 1 if decimals is None else decimals) + "%"
    if unit == "s":
        if value == 0:
            return "0 s"
        for size, name in _SECONDS:
            if abs(value) >= size * 0.9995:
                break
        number = _digits(value / size, decimals)
        return f"{number} {name.rstrip('s') if number == '1' and size >= 86400 else name}"
    behind, blank = _SCALED[unit]
    power = 0
    while abs(value) >= 999.5 and power < len(_SI) - 1:
        value, power = value / 1000, power + 1
    # A count is a whole number; a count in thousands is not.
    number = _digits(value, decimals if power == 0 else None)
    return f"{number}{' ' if blank or (power and behind == '') else ''}{_SI[power]}{behind}"
