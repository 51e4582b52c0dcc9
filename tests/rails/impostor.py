#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Answers ranks that connect with what it has just heard from them, the two tokens swapped, and then
sends frames. It knows no key of the job.

usage: impostor.py PORT     prints a line for each rank that it has answered
"""

import socket
import struct
import sys
import threading

# What a rank says first: a magic number, its own token, the other's, and more.
MAGIC = 4
TOKEN = 16


def frame(transfer, payload):
    """One of a TCP rail, without a signature."""
    return struct.pack("<4sIQQQQIIII", b"RLH5", len(payload), transfer, 0, 0, len(payload), 0, 0, 0,
                       0) + payload


def serve(connection):
    with connection:
        connection.settimeout(0.5)
        heard = b""
        try:
            while len(heard) < 4096:
                heard += connection.recv(4096)
                if len(heard) >= MAGIC + 2 * TOKEN:
                    break
            mine, theirs = heard[MAGIC:MAGIC + TOKEN], heard[MAGIC + TOKEN:MAGIC + 2 * TOKEN]
            connection.sendall(heard[:MAGIC] + theirs + mine + heard[MAGIC + 2 * TOKEN:])
            print("answered", flush=True)
            for transfer in range(1000):
                connection.sendall(frame(transfer, b"\xff" * 1024))
            connection.recv(1)
        except OSError:
            pass


def main():
    listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
