# SPDX-License-Identifier: Apache-2.0
"""Tests of the reader of railhead.h. Needs neither compiler nor library."""

import ctypes
import pathlib
import sys
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
import c_api  # pylint: disable=wrong-import-position

# The package without its __init__.py, which needs the generated module.
package = types.ModuleType("railhead")
package.__path__ = [str(HERE / "railhead")]
sys.modules["railhead"] = package
from railhead import _c_types  # pylint: disable=wrong-import-position

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
  int many;
} rhPart_t;
typedef void (*rhEach_t)(const rhPart_t* part, void* context);
RH_EXPORT rhThing_t rhDo(const void* from, const size_t* counts, rhPlace_t* out, rhPart_t part,
                         rhThing_t thing, rhEach_t each);
RH_EXPORT rhThing_t rhSay(rhPlace_t place, const char* what, char* out, size_t size, int* found,
                          const rhPart_t* part);
RH_EXPORT const char* rhName(void);
"""


def load(text):
    space = {"__name__": "railhead._api", "__package__": "railhead"}
    exec(c_api.module(text), space)  # pylint: disable=exec-used
    return space


class CApiTest(unittest.TestCase):
    def test_a_small_header(self):
        api = load(SMALL)
        self.assertEqual([(member.name, member.value) for member in api["Thing"]], [("OK", 0), ("TWO_WORDS8E4M3", 11)])
        self.assertEqual([name for name, _ in api["Part"]._fields_], ["struct_size", "name", "list", "many"])
        self.assertEqual(ctypes.sizeof(api["Part"]), 40)
        self.assertEqual(api["FUNCTIONS"], {
            "rhDo": (ctypes.c_int, [
                ("from", _c_types.ADDRESS), ("counts", api["FUNCTIONS"]["rhDo"][1][1][1]),
                ("out", ctypes.POINTER(ctypes.c_void_p)), ("part", api["Part"]), ("thing", _c_types.INT),
                ("each", api["Each"])]),
            "rhSay": (ctypes.c_int, [
                ("place", _c_types.ADDRESS), ("what", _c_types.TEXT), ("out", ctypes.c_char_p),
                ("size", _c_types.SIZE), ("found", ctypes.POINTER(ctypes.c_int)),
                ("part", ctypes.POINTER(api["Part"]))]),
            "rhName": (ctypes.c_char_p, [])})
        self.assertEqual(api["FUNCTIONS"]["rhDo"][1][1][1].ctype, ctypes.POINTER(ctypes.c_size_t))

    def test_fields_are_converted_without_a_loss(self):
        part = load(SMALL)["Part"](7, b"name", None, -2)
        self.assertEqual((part.struct_size, part.name, part.many), (7, b"name", -2))
        for field, value in (("many", 2**31), ("many", 2**32 + 1), ("struct_size", -1), ("struct_size", 2**64)):
            with self.subTest(field), self.assertRaisesRegex(ValueError, rf"^Part\.{field}: {value} is out of range"):
                setattr(part, field, value)
        with self.assertRaisesRegex(TypeError, r"^Part\.many: "):
            part.many = 1.5
        self.assertEqual((part.struct_size, part.many), (7, -2))

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
        self.assertEqual(api["FUNCTIONS"]["rhBarrier"],
                         (ctypes.c_int, [("comm", _c_types.ADDRESS), ("stream", _c_types.ADDRESS)]))
        # What ctypes would cut off is converted by one of _c_types.
        plain = {ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p}
        for name, (_, arguments) in api["FUNCTIONS"].items():
            self.assertFalse(plain & {kind for _, kind in arguments}, name)
        for field in ("commName", "transport"):
            with self.assertRaisesRegex(ValueError, f"Config.{field}: .*NUL"):
                setattr(api["Config"](), field, "a\0b")


if __name__ == "__main__":
    unittest.main()
