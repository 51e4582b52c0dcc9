# SPDX-License-Identifier: Apache-2.0
"""Ranks in processes that are forked from one that has had a group itself. One of them does not make the second call,
so the group's timeout must end it on the others.

usage: forked.py     starts two ranks itself; prints what rank 0 gets
"""

import datetime
import multiprocessing
import os
import time

import torch
import torch.distributed as dist


def start(rank, ranks, port, seconds):
    dist.init_process_group("railhead", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=seconds))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == ranks


def child(rank):
    start(rank, 2, 29601, 300)
    dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(datetime.timedelta(seconds=5))
    if rank == 1:
        time.sleep(30)
        os._exit(0)
    try:
        dist.all_reduce(torch.ones(1))
    except dist.DistBackendError as error:
        print(f"rank 0: {error}", flush=True)
    os._exit(0)


def main():
    start(0, 1, 29600, 60)
    dist.destroy_process_group()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child, args=(rank,)) for rank in range(2)]
    for one in children:
        one.start()
    for one in children:
        one.join()


if __name__ == "__main__":
    main()
