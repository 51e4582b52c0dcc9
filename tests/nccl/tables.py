#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls the plugin's environment or tuner table as NCCL does, in any version, and prints what it got as JSON.

usage: tables.py LIBRARY env VERSION NAME...
       tables.py LIBRARY tuner VERSION RANKS NODES COLLECTIVE BYTES COST...

The environment's: {"values": {NAME: value or null}, "log": [...], "threads": number}. The tuner's: {"costs": [...],
"log": [...]}, or {"costs": null} if the library has no such table for this process.
"""

import ctypes
import json
import sys
import threading
from ctypes import c_char_p, c_float, c_int, c_size_t, c_uint8, c_uint64, c_void_p

# NCCL's logger has a variable number of arguments; the plugin's formats have at most three.
LOGGER = ctypes.CFUNCTYPE(None, c_int, ctypes.c_ulong, c_char_p, c_int, c_char_p, c_void_p, c_void_p, c_void_p)
ALGORITHMS, PROTOCOLS = 7, 3
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


def tuner(library, version, ranks, nodes, collective, size, *costs):
    address = symbol(library, f"ncclTunerPlugin_v{version}")
    if not address:
        return {"costs": None}
    log, context, chosen = Log(), c_void_p(), [c_int(-7), c_int(-7), c_int(0)]
    pointer = ctypes.POINTER(c_void_p)
    if version >= 5:
        init = [pointer, c_uint64, c_size_t, c_size_t, LOGGER, c_void_p, c_void_p]
    else:
        init = [c_size_t, c_size_t, LOGGER, pointer]
    choose = {2: [c_int, c_int, c_int] + [c_void_p] * 3, 3: [c_int, c_void_p, c_int, c_int, c_void_p]}.get(
        version, [c_int, c_void_p, c_int, c_int, c_int, c_void_p])
    table = table_at(address, [
        ("name", c_char_p), ("init", ctypes.CFUNCTYPE(c_int, *init)),
        ("get", ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_size_t, *choose)),
        ("close", ctypes.CFUNCTYPE(c_int, c_void_p))] + ([("get_chunk_size", c_void_p)] if version >= 6 else []))
    reference = ctypes.byref(context)
    first = [reference, 7, ranks, nodes, log.function, None, None] if version >= 5 else [ranks, nodes, log.function, reference]
    assert table.init(*first) == 0
    entries = (c_float * (ALGORITHMS * PROTOCOLS))(*costs)
    shape, channels = [entries, ALGORITHMS, PROTOCOLS], ctypes.byref(chosen[2])
    rest = {2: [0, 0, 1, *map(ctypes.byref, chosen)], 3: [1, *shape, channels]}.get(version, [1, *shape, 0, channels])
    assert table.get(context, collective, size, *rest) == 0
    assert [choice.value for choice in chosen] == [-7, -7, 0], "the tuner has chosen itself"
    assert table.close(context) == 0 and (version < 6 or table.get_chunk_size is None)
    return {"costs": list(entries), "log": log.lines}


def main():
    library, version = ctypes.CDLL(sys.argv[1]), int(sys.argv[3])
    if sys.argv[2] == "env":
        print(json.dumps(env(library, version, sys.argv[4:])))
    else:
        numbers = [int(word) for word in sys.argv[4:8]]
        print(json.dumps(tuner(library, version, *numbers, *map(float, sys.argv[8:]))))


if __name__ == "__main__":
    main()
