# SPDX-License-Identifier: Apache-2.0
"""Exchanges the id of a group over a store that contains data of earlier starts of the job, as torchrun's does. Ranks
arrive in any order, and must never use an id of another start. Prints the number of starts."""

import random
import secrets
import threading
import time

import torch.distributed as dist
from railhead import torch_backend

RANKS, STARTS, PATIENCE = 4, 30, 300
KEY = torch_backend._ID_KEY


def start(store, order):
    """Returns the ids that ranks used which arrived in this order."""
    taken = {}

    def rank(number):
        taken[number] = torch_backend._exchange(store, number, RANKS, PATIENCE)

    threads = [threading.Thread(target=rank, args=(number,)) for number in order]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    return taken


def refusal(store, rank):
    try:
        torch_backend._exchange(store, rank, 2, 3)
    except TimeoutError as late:
        return str(late)
    raise AssertionError("there was none to wait for")


def main():
    whole = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store = dist.PrefixStore("default_pg", whole)
    choose, seen = random.Random(1), set()
    for _ in range(STARTS):
        if choose.random() < 0.5:
            # Data of a start whose rank 0 died after publishing its id, and whose rank 2 died after requesting it.
            store.set(KEY, f"dead 1000 {secrets.token_hex(128)}")
            store.set(f"{KEY}/dead/2", "word")
        order = list(range(RANKS))
        choose.shuffle(order)
        taken = start(store, order)
        assert len(taken) == RANKS, "a rank failed"
        [one] = set(taken.values())
        assert one not in seen, "an id of an earlier start"
        seen.add(one)
    print(f"{STARTS} starts over one store: each has an id of its own", flush=True)
    torch_backend._WARN_SECONDS = 0
    assert refusal(dist.PrefixStore("one", whole), 0).endswith("rank 1 of 2 has not come")
    assert refusal(dist.PrefixStore("two", whole), 1).endswith("rank 0 has not come")
    assert refusal(dist.PrefixStore("one", whole), 1).endswith("rank 0 does not answer")


main()
