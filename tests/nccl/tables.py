#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls the plugin's environment table as NCCL does, in any version, and prints what it got as JSON.

usage: tables.py LIBRARY env VERSION NAME...

The output is {"values": {NAME: value or null}, "log": [...], "threads": number}.
"""

import ctypes
import json
import sys
import threading
from ctypes import c_char_p, c_int, c_uint8, c_void_p

# NCCL's logger has a variable number of arguments; the plugin's formats have at most three.
LOGGER = ctypes.CFUNCTYPE(None, c_int, ctypes.c_ulong, c_char_p, c_int, c_char_p, c_void_p, c_void_p, c_void_p)
WARN = 2


def symbol(library, name):
    """The address that dlsym returns; None if there is none."""
    find = ctypes.CDLL(None).dlsym
    find.restype, find.argtypes = c_void_p, (c_void_p, c_char_p)
    return find(library._handle, name.encode())  # pylint: disable=protected-access


def table_at(address, fields):
    return type("Table", (ctypes.Structure,), {"_fields_": fields}).from_address(address)


class Log:
    """NCCL's logger. Texts are formatted if all arguments are strings."""

    def __init__(self):
        self.lines = []
        self.function = LOGGER(self._add)

    def _add(self, level, _flags, _file, _line, form, *arguments):
        text = form.decode()
        if "%.1f" not in text:
            text %= tuple(ctypes.string_at(argument).decode() for argument in arguments[:text.count("%s")])
        self.lines.append(("WARN " if level == WARN else "") + text)


def env(library, version, names):
    log = Log()
    init = [c_uint8, c_uint8, c_uint8, c_char_p] + ([LOGGER] if version >= 2 else [])
    table = table_at(symbol(library, f"ncclEnvPlugin_v{version}"), [
        ("name", c_char_p), ("init", ctypes.CFUNCTYPE(c_int, *init)), ("finalize", ctypes.CFUNCTYPE(c_int)),
        ("get_env", ctypes.CFUNCTYPE(c_void_p, c_char_p))])
    for _ in range(2):  # a second NCCL of the process, such as one that is linked statically
        assert table.init(2, 30, 7, b"", *([log.function] if version >= 2 else [])) == 0
    with open("/proc/self/status", encoding="ascii") as status:
        threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
    places = {name: table.get_env(name.encode()) for name in names}

    def ask():
        for _ in range(1000):
            for name in names:
                assert table.get_env(name.encode()) == places[name], "a text has moved"
    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    values = {name: place and ctypes.string_at(place).decode() for name, place in places.items()}
    assert table.finalize() == 0 and table.get_env(None) is None
    half = len(log.lines) // 2
    assert log.lines[:half] == log.lines[half:]
    return {"values": values, "log": log.lines[:half], "threads": threads, "name": table.name.decode()}


def main():
    print(json.dumps(env(ctypes.CDLL(sys.argv[1]), int(sys.argv[3]), sys.argv[4:])))


if __name__ == "__main__":
    main()
