#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Listens at a rank's address and responds to ranks that connect. It does not know the job's key.

usage: impostor.py PORT HOW     prints a line for each response
  swap    responds with the bytes that it received, with the two tokens swapped, and then sends frames
  replay  responds with the real rank's response to the first connection, and then sends frames
  relay   passes on the real rank's responses, and changes a byte of the frames now and then
"""

import socket
import struct
import sys
import threading

# The beginning of a rank's handshake: a magic number, its own token, the peer's token, and more.
MAGIC = 4
TOKEN = 16
SO_ORIGINAL_DST = 80
recorded = []


def frame(transfer, payload):
    """Returns a frame of a TCP rail, without a signature."""
    return struct.pack("<4sIQQQQIIII", b"RLH5", len(payload), transfer, 0, 0, len(payload), 0, 0, 0,
                       0) + payload


def send_frames(connection):
    for transfer in range(1000):
        connection.sendall(frame(transfer, b"\xff" * 1024))
    connection.recv(1)


def swap(connection):
    heard = b""
    while len(heard) < 4096:
        heard += connection.recv(4096)
        if len(heard) >= MAGIC + 2 * TOKEN:
            break
    mine, theirs = heard[MAGIC:MAGIC + TOKEN], heard[MAGIC + TOKEN:MAGIC + 2 * TOKEN]
    connection.sendall(heard[:MAGIC] + theirs + mine + heard[MAGIC + 2 * TOKEN:])
    print("answered", flush=True)
    send_frames(connection)


def rank_behind(connection):
    """Returns a connection to the address that the other side meant to reach."""
    address = connection.getsockopt(socket.IPPROTO_IP, SO_ORIGINAL_DST, 16)
    port, host = struct.unpack("!2xH4s8x", address)
    return socket.create_connection((socket.inet_ntoa(host), port))


def replay(connection):
    if not recorded:
        with rank_behind(connection) as rank:
            rank.settimeout(0.5)
            rank.sendall(connection.recv(4096))
            recorded.append(rank.recv(4096))
        return
    connection.recv(4096)
    connection.sendall(recorded[0])
    print("answered", flush=True)
    send_frames(connection)


def pump(source, target):
    passed = 0
    try:
        while data := source.recv(65536):
            if passed // (1 << 20) != (passed + len(data)) // (1 << 20):
                print("changed", flush=True)
                data = data[:-1] + bytes([data[-1] ^ 4])
            passed += len(data)
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def relay(connection):
    connection.settimeout(None)
    with rank_behind(connection) as rank:
        print("answered", flush=True)
        back = threading.Thread(target=pump, args=(rank, connection), daemon=True)
        back.start()
        pump(connection, rank)
        back.join()


def serve(connection, how):
    with connection:
        connection.settimeout(0.5)
        try:
            how(connection)
        except OSError:
            pass


def main():
    how = {"swap": swap, "replay": replay, "relay": relay}[sys.argv[2]]
    listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, how), daemon=True).start()


if __name__ == "__main__":
    main()
