# SPDX-License-Identifier: Apache-2.0
"""Tests of the reader of railhead.h. Needs neither compiler nor library."""

import ctypes
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
import c_api  # pylint: disable=wrong-import-position

SMALL = """
typedef enum RH_INT_ENUM {
  rhOk = 0, /* fine, = 5 */
  rhTwoWords8e4m3 = 11
} rhThing_t;
typedef struct rhPlace* rhPlace_t;
typedef struct {
  size_t struct_size;
  char name[16];
  const int* list;
} rhPart_t;
typedef void (*rhEach_t)(const rhPart_t* part, void* context);
RH_EXPORT rhThing_t rhDo(const void* from, const size_t* counts, rhPlace_t* out, rhPart_t part,
                         rhThing_t thing, rhEach_t each);
RH_EXPORT const char* rhName(void);
"""


def load(text):
    space = {}
    exec(c_api.module(text), space)  # pylint: disable=exec-used
    return space


class CApiTest(unittest.TestCase):
    def test_a_small_header(self):
        api = load(SMALL)
        self.assertEqual([(member.name, member.value) for member in api["Thing"]], [("OK", 0), ("TWO_WORDS8E4M3", 11)])
        self.assertEqual([name for name, _ in api["Part"]._fields_], ["struct_size", "name", "list"])
        self.assertEqual(ctypes.sizeof(api["Part"]), 32)
        self.assertEqual(api["FUNCTIONS"], {
            "rhDo": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_void_p),
                                    api["Part"], ctypes.c_int, api["Each"]]),
            "rhName": (ctypes.c_char_p, [])})

    def test_what_is_not_understood_is_an_error(self):
        for more in ("RH_EXPORT float rhFloat(void);", "RH_EXPORT int rhMany(int values[3]);",
                     "typedef union { int a; } rhUnion_t;", "RH_EXPORT struct foo rhFoo(int a);",
                     "RH_EXPORT int rhUnknown(rhMissing_t a);",
                     "typedef enum RH_INT_ENUM { rhNoNumber } rhCounted_t;"):
            with self.subTest(more), self.assertRaises(ValueError):
                c_api.module(SMALL + more + "\n")

    def test_the_header(self):
        text = (HERE.parent / "runtime/include/railhead/railhead.h").read_text("utf-8")
        api = load(text)
        self.assertEqual(text.count("\nRH_EXPORT "), len(api["FUNCTIONS"]))
        self.assertEqual(api["Result"].REMOTE_ERROR, 6)
        self.assertEqual(api["DataType"].FLOAT8E4M3, 10)
        self.assertEqual(api["FUNCTIONS"]["rhBarrier"], (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]))


if __name__ == "__main__":
    unittest.main()
