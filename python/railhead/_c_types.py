# SPDX-License-Identifier: Apache-2.0
"""Conversions of Python values to C, for the arguments and structs of _api.py.

ctypes alone cuts off the upper bits of an integer, and a text at its first NUL, without an error. Every conversion
here is exact, or raises TypeError or ValueError.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any, Dict


class Integer:
    """A C integer type. Accepts whole numbers of any Python type (operator.index) in its range."""

    def __init__(self, ctype: Any) -> None:
        self.ctype = ctype
        bits, is_signed = 8 * ctypes.sizeof(ctype), ctype(-1).value < 0
        self._min = -(1 << (bits - 1)) if is_signed else 0
        self._max = (1 << (bits - is_signed)) - 1

    def from_param(self, value: Any) -> int:
        number = operator.index(value)
        if not self._min <= number <= self._max:
            raise ValueError(f"{number} is out of range; it must be {self._min} to {self._max}")
        return number


class Address:
    """A pointer to memory or to an object of the library: a number, None, or one of ctypes' pointers."""

    ctype = ctypes.c_void_p

    def from_param(self, value: Any) -> Any:
        return value if value is None or isinstance(value, ctypes.c_void_p) else SIZE.from_param(value)


class Text:
    """A text that C reads: str, UTF-8 as bytes, or None."""

    ctype = ctypes.c_char_p

    def from_param(self, value: Any) -> Any:
        if value is not None and not isinstance(value, (str, bytes)):
            raise TypeError(f"it must be a str, not {type(value).__name__}")
        text = value.encode() if isinstance(value, str) else value
        if text is not None and b"\0" in text:
            raise ValueError(f"{value!r} contains a NUL character: remove it")
        return text


class Array:
    """An array of integers that C reads: a sequence, or None."""

    def __init__(self, element: Integer) -> None:
        self.ctype = ctypes.POINTER(element.ctype)
        self._element = element

    def from_param(self, value: Any) -> Any:
        if value is None:
            return None
        numbers = [self._element.from_param(one) for one in value]
        return (self._element.ctype * len(numbers))(*numbers)


INT, UINT = Integer(ctypes.c_int), Integer(ctypes.c_uint)
SIZE, UINT64 = Integer(ctypes.c_size_t), Integer(ctypes.c_uint64)
ADDRESS, TEXT = Address(), Text()
_OF_FIELDS: Dict[Any, Any] = {kind.ctype: kind for kind in (UINT64, UINT, SIZE, INT, ADDRESS, TEXT)}


def convert(where: str, kind: Any, value: Any) -> Any:
    """Returns `value` for the type `kind`: one of this module, or one of ctypes, which takes the value as it is.

    `where` begins the text of an error.
    """
    if isinstance(kind, type):
        return value
    try:
        return kind.from_param(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from None


class Struct(ctypes.Structure):
    """A struct of the library. Fields that Python sets are converted as arguments are."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind = dict(self._fields_).get(name)
        super().__setattr__(name, convert(f"{type(self).__name__}.{name}", _OF_FIELDS.get(kind, kind), value))
