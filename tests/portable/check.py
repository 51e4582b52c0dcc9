# SPDX-License-Identifier: Apache-2.0
"""One rank of a verified all-reduce by ctypes. Rank 0 also reads its metrics page.

usage: check.py LIBRARY [OTHER...]    loads OTHER first: Python modules, or lib*.so in their packages
"""

import ctypes
import importlib
import os
import pathlib
import sys
import urllib.request

COUNT = 100003

for other in sys.argv[2:]:
    if other.endswith(".so"):
        [path] = [path for folder in sys.path for path in pathlib.Path(folder).glob("*/lib/" + other)]
        ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    else:
        importlib.import_module(other)
rh = ctypes.CDLL(sys.argv[1])
rh.rhGetLastError.restype = ctypes.c_char_p
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
comm = ctypes.c_void_p()


def must(result):
    if result != 0:
        sys.exit(rh.rhGetLastError(comm).decode())


must(rh.rhCommInitFromEnv(ctypes.byref(comm)))
values = (ctypes.c_int64 * COUNT)(*(i + rank for i in range(COUNT)))
# 4: rhInt64, 0: rhSum
must(rh.rhAllReduce(values, values, ctypes.c_size_t(COUNT), 4, 0, comm, None))
assert all(value == ranks * i + ranks * (ranks - 1) // 2 for i, value in enumerate(values)), "wrong sums"
if rank == 0:
    url = "http://127.0.0.1:%s/metrics" % os.environ["RAILHEAD_METRICS_PORT"]
    for tries_left in range(20, -1, -1):
        try:
            page = urllib.request.urlopen(url, timeout=120).read()
            break
        except OSError:  # the rank ends connections of clients that do not ask within seconds, as on a busy machine
            if not tries_left:
                raise
    assert b"railhead_runtime_info{" in page, page
must(rh.rhBarrier(comm, None))
must(rh.rhCommDestroy(comm))
