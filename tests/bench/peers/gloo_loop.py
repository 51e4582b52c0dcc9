# SPDX-License-Identifier: Apache-2.0
"""The loop of loop.c for gloo, through PyTorch. Change both together.

usage: gloo_loop.py TYPES ROUNDS ROUND_MS COLLECTIVE:BYTES...
       (RANK, WORLD_SIZE; MEETING: a new file's path)

PyTorch's all_reduce and reduce are in place. The loop copies nothing back between calls, inside or outside the
measured time: it checks the sums once beforehand, and measures with zeros, whose sums stay finite.
"""

import datetime
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

PERIOD = 11
PIECE = PERIOD << 16
LATE_SECONDS = 0.005
ROOT = 0
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
IN_PLACE = ("all_reduce", "reduce")

rank = int(os.environ["RANK"])
ranks = int(os.environ["WORLD_SIZE"])


def send_receive(send, receive):
    sent = dist.isend(send, (rank + 1) % ranks)
    dist.recv(receive, (rank - 1) % ranks)
    sent.wait()


# Number of blocks in the (send, receive) tensors of each collective.
CALLS = {
    "all_reduce": lambda send, receive: dist.all_reduce(receive),
    "reduce": lambda send, receive: dist.reduce(receive, ROOT),
    "broadcast": lambda send, receive: dist.broadcast(send if rank == ROOT else receive, ROOT),
    "all_gather": lambda send, receive: dist.all_gather_into_tensor(receive, send),
    "reduce_scatter": lambda send, receive: dist.reduce_scatter_tensor(receive, send),
    "all_to_all": lambda send, receive: dist.all_to_all_single(receive, send),
    "gather": lambda send, receive: dist.gather(
        send, list(receive.chunk(ranks)) if rank == ROOT else None, ROOT),
    "scatter": lambda send, receive: dist.scatter(
        receive, list(send.chunk(ranks)) if rank == ROOT else None, ROOT),
    "send_receive": send_receive,
    "barrier": lambda send, receive: dist.barrier(),
}
SEND_ALL = ("reduce_scatter", "all_to_all", "scatter")
RECEIVE_ALL = ("all_gather", "all_to_all", "gather")


def given(of_rank, offset=0):
    """Returns a rank's input from an index on, up to the length of a piece."""
    return torch.arange(offset % PERIOD, offset % PERIOD + PIECE,
                        dtype=torch.int32).remainder_(PERIOD).add_(of_rank + 1)


def sums(offset=0):
    return given(0, offset).mul_(ranks).add_(ranks * (ranks - 1) // 2)


def right(name, block, count):
    """Returns the expected block that this rank receives; None if it receives none."""
    own = rank * count
    if name in ("reduce", "gather") and rank != ROOT or name == "broadcast" and rank == ROOT:
        return None
    if name in ("all_reduce", "reduce"):
        return sums()
    if name == "reduce_scatter":
        return sums(own)
    if name == "broadcast":
        return given(ROOT)
    if name in ("all_gather", "gather"):
        return given(block)
    if name == "all_to_all":
        return given(block, own)
    if name == "scatter":
        return given(ROOT, own)
    return given((rank - 1) % ranks)


def largest(mine):
    """Returns the largest number of all ranks, on all ranks. No rank returns before all have arrived."""
    numbers = torch.zeros(ranks, dtype=torch.float32)
    numbers[rank] = mine
    dist.all_reduce(numbers)
    return numbers.max().item()


def round_of(call, iterations):
    """Returns the seconds that `iterations` calls took."""
    largest(0.0)
    begin = time.perf_counter()
    for _ in range(iterations):
        call()
    return largest(time.perf_counter() - begin)


def left_early(call):
    """Returns whether a barrier releases this rank before the last rank, which arrives late."""
    begin = time.perf_counter()
    largest(0.0)
    if rank == ranks - 1:
        time.sleep(LATE_SECONDS)
    call()
    return time.perf_counter() - begin < LATE_SECONDS


def count_wrong(name, receive, blocks):
    wrong = 0
    for block, values in enumerate(receive.chunk(blocks)):
        expected = right(name, block, len(values))
        if expected is None:
            continue
        expected = expected.to(receive.dtype)
        for piece in values.split(PIECE):
            wrong += int((piece != expected[:len(piece)]).sum())
    return wrong


def measure(name, kind, size, rounds, round_seconds):
    count = size // TYPES[kind].itemsize
    send = torch.empty(count * (ranks if name in SEND_ALL else 1), dtype=TYPES[kind])
    blocks = ranks if name in RECEIVE_ALL else 1
    receive = torch.full([count * blocks], -1, dtype=TYPES[kind])
    mine = given(rank).to(send.dtype)
    for piece in (receive if name in IN_PLACE else send).split(PIECE):
        piece.copy_(mine[:len(piece)])

    def call():
        CALLS[name](send, receive)

    if name == "barrier":
        wrong = left_early(call)
    else:
        call()
        wrong = count_wrong(name, receive, blocks)
    wrong = largest(float(wrong))
    if name in IN_PLACE:
        receive.zero_()
    iterations = 1
    while min(round_of(call, iterations) for _ in range(3)) < round_seconds / 2:
        iterations *= 2
    times = [round_of(call, iterations) / iterations * 1e6 for _ in range(rounds)]
    if rank == 0:
        print(json.dumps({"collective": name, "type": kind, "bytes": size, "iterations": iterations,
                          "best_us": min(times), "median_us": statistics.median(times),
                          "wrong": int(wrong)}), flush=True)


def main():
    types, rounds, round_ms, *works = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.environ['MEETING']}", rank=rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=60))
    if rank == 0:
        print(json.dumps({"library": f"gloo of PyTorch {torch.__version__}", "ranks": ranks}),
              flush=True)
    for kind in types.split(","):
        for work in works:
            name, size = work.split(":")
            measure(name, kind, int(size), int(rounds), float(round_ms) / 1e3)
    dist.destroy_process_group()


main()
