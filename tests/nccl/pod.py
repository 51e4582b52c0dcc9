#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of two of a job that finds the network plugin by its pod's environment, as NCCL does.

usage: pod.py ROUNDS     RANK, MASTER_ADDR, MASTER_PORT, NCCL_NET_PLUGIN and NCCL_NET as the operator sets them

In each round both ranks send and receive a message of 64 KiB, and check it.
"""

import ctypes
import os
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from end import content, wait  # noqa: E402
from net_abi import HANDLE_BYTES, Plugin  # noqa: E402

SIZE = 1 << 16
PAUSE = 0.02  # seconds, as a rank computes between messages


def neighbour(rank):
    """Returns a socket to the other rank, on which handles are exchanged."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(("", address[1])) as server:
            server.settimeout(60)
            return server.accept()[0]

    def connect():
        try:
            return socket.create_connection(address, timeout=60)
        except OSError:
            return None
    return wait("rank 0", connect)


def exchange(plugin, rank):
    """Returns a comm to send to the other rank, and one to receive from it."""
    listener, handle = plugin.listen(0)
    with neighbour(rank) as other:
        other.sendall(handle)
        theirs = b""
        while len(theirs) < HANDLE_BYTES:
            part = other.recv(HANDLE_BYTES - len(theirs))
            if not part:
                sys.exit("the other rank has gone")
            theirs += part
        sender = receiver = None

        def both():
            nonlocal sender, receiver
            sender = sender or plugin.connect(theirs)
            receiver = receiver or plugin.accept(listener)
            return sender and receiver and (sender, receiver)
        both = wait("connections", both)
    plugin.close("listen", listener)
    return both


def main():
    rank, rounds = int(os.environ["RANK"]), int(sys.argv[1])
    plugin = Plugin(os.environ["NCCL_NET_PLUGIN"], 11)
    plugin.init()
    wanted = os.environ.get("NCCL_NET", plugin.name)
    if wanted != plugin.name:
        sys.exit(f"NCCL_NET is {wanted}, the plugin's network is {plugin.name}: NCCL would not use it")
    sender, receiver = exchange(plugin, rank)
    buffer = ctypes.create_string_buffer(SIZE)
    for number in range(rounds):
        data = ctypes.create_string_buffer(content(rank, number, SIZE), SIZE)
        requests = [plugin.irecv(receiver, [buffer], [SIZE], [0], None), plugin.isend(sender, data, SIZE, 0, None)]
        for request in requests:
            wait(f"round {number}", lambda request=request: plugin.test(request))
        if buffer.raw != content(1 - rank, number, SIZE):
            sys.exit(f"rank {rank}: round {number}: wrong bytes")
        time.sleep(PAUSE)
    plugin.close("send", sender)
    plugin.close("receive", receiver)
    plugin.finalize()
    print(f"rank {rank}: {rounds} messages are right", flush=True)


if __name__ == "__main__":
    main()
