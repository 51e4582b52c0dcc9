# SPDX-License-Identifier: Apache-2.0
"""Generates railhead/_api.py, the C API for ctypes, from railhead.h, its only source.

usage: python/c_api.py HEADER     prints the module

Parses that header's style only. An unknown declaration is an error, so that no part of the API is left out or
guessed.
"""

import re
import sys

SCALARS = {"int": "c_int", "unsigned int": "c_uint", "size_t": "c_size_t", "uint64_t": "c_uint64",
           "char": "c_char", "void": "None"}
# How railhead/_c_types.py converts an argument of a type. Values of other types are passed as they are.
CHECKED = {"c_int": "INT", "c_uint": "UINT", "c_size_t": "SIZE", "c_uint64": "UINT64", "c_void_p": "ADDRESS"}
POINTERS = {"void": "c_void_p", "char": "c_char_p"}
HANDLE = re.compile(r"typedef struct rh\w+\* (\w+);")
ENUM = re.compile(r"typedef enum RH_INT_ENUM \{(.*?)\} (\w+);", re.DOTALL)
STRUCT = re.compile(r"typedef struct(?: \w+)? \{(.*?)\} (\w+);", re.DOTALL)
CALLBACK = re.compile(r"typedef void \(\*(\w+)\)\((.*?)\);", re.DOTALL)
FUNCTION = re.compile(r"RH_EXPORT ((?:const )?\w+\*?) (\w+)\(([^)]*)\);")
CONSTANT = re.compile(r"#define RH_(VERSION_CODE|CONFIG_MAGIC|UNIQUE_ID_BYTES|SPLIT_NOCOLOR) \(?(-?\w+)\)?")


class HeaderError(ValueError):
    """The header has a declaration that this reader does not know."""


def class_of(name):
    """rhDataType_t -> DataType."""
    return re.sub(r"^rh|_t$", "", name)


def constant_of(name):
    """rhSystemError -> SYSTEM_ERROR; digits stay with the preceding word."""
    words = re.findall(r"[A-Z][a-z]*[0-9]*[a-z0-9]*", name.removeprefix("rh"))
    return "_".join(words).upper()


class Header:
    """The declarations of a header's text."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        self.constants = {name: int(value.rstrip("U"), 0) for name, value in CONSTANT.findall(text)}
        self.handles = HANDLE.findall(text)
        self.enums = {name: self._values(name, body) for body, name in ENUM.findall(text)}
        self.structs = {name: body for body, name in STRUCT.findall(text)}
        self.callbacks = dict(CALLBACK.findall(text))
        self.functions = [(name, result, arguments) for result, name, arguments in FUNCTION.findall(text)]
        declared = len(re.findall(r"^RH_EXPORT ", text, re.MULTILINE))
        typedefs = len(re.findall(r"^typedef ", text, re.MULTILINE))
        known = len(self.handles) + len(self.enums) + len(self.structs) + len(self.callbacks)
        if declared != len(self.functions) or typedefs != known:
            raise HeaderError(f"{declared} functions and {typedefs} types are declared, "
                              f"{len(self.functions)} and {known} of them understood")

    @staticmethod
    def _values(enum, body):
        values = {}
        for item in filter(None, (part.strip() for part in body.split(","))):
            match = re.fullmatch(r"(rh\w+) = (\d+)", item)
            if not match:
                raise HeaderError(f"{enum}: '{item}' has no number")
            values[match[1]] = int(match[2])
        return values

    def ctype(self, text):
        """Returns the ctypes expression of a C type."""
        text = " ".join(text.replace("const ", "").split())
        base = text.rstrip("*")
        stars = len(text) - len(base)
        if base in POINTERS and stars > 0:
            expression, stars = POINTERS[base], stars - 1
        elif base in SCALARS:
            expression = SCALARS[base]
        elif base in self.handles:
            expression = "c_void_p"
        elif base in self.enums:
            expression = "c_int"
        elif base in self.structs or base in self.callbacks:
            expression = class_of(base)
        else:
            raise HeaderError(f"unknown type '{text}'")
        for _ in range(stars):
            expression = f"POINTER({expression})"
        return expression

    def _argument_type(self, text):
        """Returns the expression of an argument's type, which converts its values without a loss."""
        expression = self.ctype(text)
        if text.startswith("const ") and text.count("*") == 1:  # what it points to is read
            element = CHECKED.get(self.ctype(text.rstrip("* ")))
            if expression == "c_char_p":
                return "TEXT"
            if element is not None:
                return f"Array({element})"
        return CHECKED.get(expression, expression)

    def _declaration(self, text, read_type=None):
        """Returns (type, name) of a field or argument."""
        match = re.fullmatch(r"(.*?[ *])(\w+)(?:\[(\w+)\])?", " ".join(text.split()))
        if not match:
            raise HeaderError(f"cannot read '{text}'")
        expression = (read_type or self.ctype)(match[1].strip())
        if match[3]:
            size = match[3] if match[3].isdigit() else str(self.constants[match[3].removeprefix("RH_")])
            expression = f"{expression} * {size}"
        return expression, match[2]

    def fields(self, struct):
        return [self._declaration(field) for field in self.structs[struct].split(";") if field.strip()]

    def arguments(self, text):
        if "[" in text:  # an array argument would be a pointer
            raise HeaderError(f"an array among the arguments ({text})")
        if text.strip() in ("", "void"):
            return []
        return [self._declaration(item, self._argument_type) for item in text.split(",")]

    def callback_types(self, text):
        return [self._declaration(item)[0] for item in text.split(",")]


def module(text):
    """Returns the text of railhead/_api.py."""
    header = Header(text)
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             '"""The C API for ctypes. Generated from railhead.h by python/c_api.py: do not edit."""', "",
             "import enum",
             "from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p", "",
             "from ._c_types import ADDRESS, INT, SIZE, TEXT, UINT, UINT64, Array, Struct", ""]
    lines += [f"{name} = {value}" for name, value in header.constants.items()]
    for name, values in header.enums.items():
        lines += ["", "", f"class {class_of(name)}(enum.IntEnum):", f'    """{name}."""', ""]
        lines += [f"    {constant_of(value)} = {number}" for value, number in values.items()]
    for name in header.structs:
        lines += ["", "", f"class {class_of(name)}(Struct):", f'    """{name}."""', "", "    _fields_ = ["]
        lines += [f'        ("{field}", {kind}),' for kind, field in header.fields(name)]
        lines += ["    ]"]
    lines += ["", ""]
    for name, arguments in header.callbacks.items():
        kinds = ", ".join(["None", *header.callback_types(arguments)])
        lines += [f"{class_of(name)} = CFUNCTYPE({kinds})"]
    lines += ["", "# Name: (type of the result, name and type of each argument).", "FUNCTIONS = {"]
    for name, result, arguments in header.functions:
        kinds = ", ".join(f'("{argument}", {kind})' for kind, argument in header.arguments(arguments))
        lines += [f'    "{name}": ({header.ctype(result)}, [{kinds}]),']
    lines += ["}", ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        print(module(file.read()), end="")


if __name__ == "__main__":
    main()
