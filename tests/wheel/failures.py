# SPDX-License-Identifier: Apache-2.0
"""One of three ranks: prints a line for each exception that it gets when ranks fail.

usage: failures.py abort|killed|raised|mismatch|forked
"""

import array
import os
import signal
import sys
import threading
import time

import railhead


def main():
    what = sys.argv[1]
    values = array.array("f", [1.0]) * 1000
    comm = railhead.init()
    comm.all_reduce(values)
    try:
        if what == "abort":
            if comm.rank == 0:
                threading.Timer(0.3, comm.abort).start()  # while the main thread is in the call
                comm.barrier()
            while comm.error() is None:  # make no calls: only the abort can end rank 0's call
                time.sleep(0.01)
            raise comm.error()
        elif what == "killed":
            if comm.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            for _ in range(3):
                comm.all_reduce(values)
        elif what == "raised":
            with comm:
                if comm.rank == 2:
                    raise KeyError("a bug of the script")
                for _ in range(3):
                    comm.all_reduce(values)
        elif what == "forked":
            with comm:
                for _ in range(10):  # on a busy machine some children are late
                    child = os.fork()
                    if child == 0:
                        sys.exit(7)  # leaves the body by an exception
                    begin = time.monotonic()
                    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    at_once = time.monotonic() - begin < 4
                    if at_once or code != 7:
                        break
                comm.all_reduce(values)
                print(f"child: exit {code}, at once: {at_once}; sum {values[0]:g}")
            return
        elif what == "mismatch":
            for _ in range(3):
                comm.all_reduce(values[:10 + comm.rank])
    except (railhead.Error, KeyError) as error:
        print(f"{type(error).__name__}: {error}")
    comm.abort()


if __name__ == "__main__":
    main()
