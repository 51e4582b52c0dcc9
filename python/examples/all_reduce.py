# SPDX-License-Identifier: Apache-2.0
"""A verified all-reduce over all ranks. Uses NumPy if it is installed.

usage: RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 python all_reduce.py      and RANK=1 in another shell
       python all_reduce.py 2                                              starts both ranks itself
"""

import array
import os
import subprocess
import sys

import railhead

COUNT = 1 << 20

if len(sys.argv) == 2:  # start this number of ranks on this machine
    ranks = [subprocess.Popen([sys.executable, __file__], env={
        "MASTER_ADDR": "127.0.0.1", "RAILHEAD_METRICS_PORT": "0", **os.environ, "RANK": str(rank),
        "WORLD_SIZE": sys.argv[1]}) for rank in range(int(sys.argv[1]))]
    sys.exit(max([abs(rank.wait()) for rank in ranks]))

with railhead.init() as comm:
    try:
        import numpy
        values = numpy.full(COUNT, comm.rank + 1, numpy.float32)
    except ImportError:
        values = array.array("f", [comm.rank + 1]) * COUNT
    comm.all_reduce(values)
    expected = comm.size * (comm.size + 1) / 2
    assert all(value == expected for value in values), "wrong sums"
    print(f"rank {comm.rank} of {comm.size}: {COUNT} sums of {expected:g} are right, over {comm.info.transport}")
