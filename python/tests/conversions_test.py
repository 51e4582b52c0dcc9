# SPDX-License-Identifier: Apache-2.0
"""Tests of the conversions of numbers and texts: _c_types.py and _counts.py. Needs neither compiler nor library."""

import ctypes
import operator
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "railhead"))
import _c_types  # pylint: disable=wrong-import-position
import _counts  # pylint: disable=wrong-import-position


class Small:
    """An integer whose arithmetic wraps around, as NumPy's."""

    def __init__(self, value, bits):
        self._value, self._bits = (value + 2**(bits - 1)) % 2**bits - 2**(bits - 1), bits

    def __index__(self):
        return self._value

    def _with(self, other, function):
        return Small(function(self._value, operator.index(other)), self._bits)

    def __add__(self, other):
        return self._with(other, operator.add)

    def __mul__(self, other):
        return self._with(other, operator.mul)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other):
        return self._value < other

    def __gt__(self, other):
        return self._value > other


class ConversionsTest(unittest.TestCase):
    def test_an_integer_is_exact_or_an_error(self):
        kinds = {_c_types.INT: (-2**31, 2**31 - 1), _c_types.UINT: (0, 2**32 - 1),
                 _c_types.SIZE: (0, 2**64 - 1), _c_types.UINT64: (0, 2**64 - 1)}
        for kind, (least, most) in kinds.items():
            for number in (least, most, 0, 1, *(2**bits + more for bits in range(7, 66) for more in (-1, 0, 1)),
                           *(-2**bits + more for bits in range(7, 66) for more in (-1, 0, 1))):
                if least <= number <= most:
                    self.assertEqual(kind.ctype(kind.from_param(Small(number, 80))).value, number)
                else:
                    with self.assertRaisesRegex(ValueError, str(number)):
                        kind.from_param(number)
            for other in (1.0, 1.9, "1", None, b"1", [1]):
                with self.subTest(other), self.assertRaises(TypeError):
                    kind.from_param(other)

    def test_addresses_texts_and_arrays(self):
        pointer = ctypes.c_void_p(5)
        for value in (None, 5, pointer):
            self.assertEqual(_c_types.ADDRESS.from_param(value), value)
        for value, kind in ((2**64, ValueError), (-1, ValueError), ("5", TypeError)):
            with self.subTest(value), self.assertRaises(kind):
                _c_types.ADDRESS.from_param(value)
        self.assertEqual([_c_types.TEXT.from_param(value) for value in (None, "\u00e4", b"a")], [None, b"\xc3\xa4", b"a"])
        for value, kind in (("a\0b", ValueError), (b"\0", ValueError), (5, TypeError), ("\udc00", ValueError)):
            with self.subTest(value), self.assertRaises(kind):
                _c_types.TEXT.from_param(value)
        sizes = _c_types.Array(_c_types.SIZE)
        self.assertEqual((sizes.from_param(None), list(sizes.from_param(range(3)))), (None, [0, 1, 2]))
        for value, kind in (([1, -1], ValueError), ([2**64], ValueError), ([1.5], TypeError), (5, TypeError)):
            with self.subTest(value), self.assertRaises(kind):
                sizes.from_param(value)

    def test_an_error_says_where(self):
        with self.assertRaisesRegex(ValueError, "^rhBroadcast: root: 4294967297 is out of range; it must be "
                                                "-2147483648 to 2147483647$"):
            _c_types.convert("rhBroadcast: root", _c_types.INT, 2**32 + 1)
        with self.assertRaisesRegex(TypeError, "^rhCommExplain: collective: it must be a str, not int$"):
            _c_types.convert("rhCommExplain: collective", _c_types.TEXT, 1)
        self.assertEqual(_c_types.convert("", ctypes.c_int, "any"), "any")

    def test_parts_are_those_of_exact_arithmetic(self):
        draw = random.Random(1)
        for _ in range(2000):
            ranks, bits = draw.randint(1, 6), draw.choice((8, 16, 32, 64))
            counts = [draw.choice((0, draw.randrange(2**(bits - 1)))) for _ in range(ranks)]
            begins = draw.choice((None, [draw.randrange(2**(bits - 1)) for _ in range(ranks)]))
            parts = _counts.Parts("", [Small(count, bits) for count in counts],
                                  None if begins is None else [Small(begin, bits) for begin in begins], ranks)
            each = draw.choice((1, 2, 16))
            self.assertEqual(parts.counts, counts)
            self.assertEqual(parts.sizes(each), [count * each for count in counts])
            if begins is None:
                self.assertEqual((parts.end, parts.begins(each)), (sum(counts), None))
                continue
            ends = [begin + count for begin, count in zip(begins, counts) if count > 0]
            self.assertEqual(parts.end, max(ends, default=0))
            self.assertEqual(parts.begins(each), [begin * each * (count > 0) for begin, count in zip(begins, counts)])

    def test_other_counts_are_refused(self):
        for counts, begins, kind, words in (
                ([1.0, 2], None, TypeError, "^send_counts: "), (["1", 2], None, TypeError, "send_counts"),
                (5, None, TypeError, "send_counts"), (None, None, TypeError, "2 integers"),
                ([1], None, ValueError, r"^send_counts: \[1\] must be 2 numbers"), ([1, 2, 3], None, ValueError, "2 numbers"),
                ([1, -1], None, ValueError, "from 0"), ([1, 2**63], None, ValueError, "from 0"),
                ([1, 1], [0, -1], ValueError, "^send_displacements: "), ([1, 1], [0, 1.5], TypeError, "displacements")):
            with self.subTest(counts=counts, begins=begins), self.assertRaisesRegex(kind, words):
                _counts.Parts("send_", counts, begins, 2)


if __name__ == "__main__":
    unittest.main()
