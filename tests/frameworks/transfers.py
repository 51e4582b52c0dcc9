# SPDX-License-Identifier: Apache-2.0
"""One rank that sends and receives with the backend "railhead" and with gloo, whose results must be equal.

usage: transfers.py [DEVICE]     cpu or cuda; with torchrun's variables and at least 2 ranks. Rank 0 prints the number
                                 of comparisons.
"""

import collections
import gc
import random
import sys
import time

import torch
import torch.distributed as dist

T = torch
DEVICE = (sys.argv[1:] or ["cpu"])[0]
T.set_default_device(DEVICE)
counts = collections.Counter()


def same(one, two):
    if isinstance(one, T.Tensor):
        return one.dtype == two.dtype and one.shape == two.shape and T.equal(one.contiguous().view(T.uint8), two.contiguous().view(T.uint8))
    return one == two


def check(name, call, want, gloo=True):
    """Compares the call's results (tensors, numbers) in this backend's group and in gloo's with the known results."""
    for group in (dist.group.WORLD, GLOO) if gloo and DEVICE == "cpu" else (dist.group.WORLD,):
        got = call(group)
        fits = len(got) == len(want) and all(same(one, two) for one, two in zip(got, want))
        assert fits, f"{name}, {dist.get_backend(group)}: {got}, not {want}"
        counts[dist.get_backend(group).removeprefix("cpu:")] += 1
        dist.barrier()


def full(value, count=1):
    return T.full((count,), float(value))


def beside_each_other(rank, size):
    to, source = (rank + 1) % size, (rank - 1) % size

    def ring(group):
        out = T.empty(8 << 20)
        works = [dist.isend(full(rank, 8 << 20), to, group=group), dist.irecv(out, source, group=group)]
        for work in works:
            work.wait()
        return [out]
    check("32 MiB each way, waited for later", ring, [full(source, 8 << 20)])

    def early(group):
        out = T.empty(3)
        work = dist.irecv(out, source, group=group)
        total = full(rank)
        for _ in range(3):
            dist.all_reduce(total, group=group)
        dist.barrier(group)
        assert not work.is_completed()
        dist.barrier(group)
        dist.send(full(rank, 3), to, group=group)
        work.wait()
        return [out, total]
    check("a receive before collectives, its send after them", early,
          [full(source, 3), full(sum(range(size)) * size ** 2)])

    def many(group):
        outs = [T.empty(1000) for _ in range(100)]
        works = [dist.irecv(out, source, group=group) for out in outs]
        works += [dist.isend(full(1000 * rank + i, 1000), to, group=group) for i in range(100)]
        for work in reversed(works):
            work.wait()
        return outs
    check("100 messages stay in order", many, [full(1000 * source + i, 1000) for i in range(100)])


def matching(rank, size):
    def tags(group):
        if rank == 0:
            works = [dist.isend(full(10 * peer + tag), peer, tag=tag, group=group)
                     for peer in range(1, size) for tag in (1, 2, 1 << 20)]
            for work in works:
                work.wait()
            return []
        outs = {tag: T.zeros(1) for tag in (1 << 20, 1, 2)}
        works = [dist.irecv(out, 0, tag=tag, group=group) for tag, out in outs.items()]
        for work in works:
            work.wait()
        return [outs[1], outs[2], outs[1 << 20]]
    want = [full(10 * rank + tag) for tag in (1, 2, 1 << 20)]
    check("tags that are received in another order", tags, want if rank else [])

    def any_source(group):
        if rank > 0:
            later = dist.isend(full(rank, rank), 0, tag=5, group=group)
            dist.send(full(100 * rank, 40000), 0, tag=6, group=group)
            later.wait()
            return []
        values = {}
        for _ in range(1, size):
            out = T.empty(40000)
            source = dist.recv(out, tag=6, group=group)
            values[source] = out
        for source in range(1, size):
            dist.recv(T.empty(source), source, tag=5, group=group)
        return [value for source in sorted(values) for value in (source, values[source])]
    want = [value for peer in range(1, size) for value in (peer, full(100 * peer, 40000))]
    check("any source", any_source, [] if rank else want)

    def source_of_work(group):
        if rank > 0:
            dist.send(full(rank), 0, group=group)
            return []
        works = [dist.irecv(T.empty(1), group=group) for _ in range(1, size)]
        for work in works:
            work.wait()
        return sorted(work._source_rank() for work in works)
    check("the source of a work", source_of_work, [] if rank else list(range(1, size)))

    def objects(group):
        if rank == 1:
            dist.send_object_list([{"rank": rank}, "x" * 50000], 0, group=group)
        if rank > 0:
            return []
        some = [None, None]
        source = dist.recv_object_list(some, 1, group=group)
        return [source, *some]
    check("objects", objects, [] if rank else [1, {"rank": 1}, "x" * 50000])

    def batch(group):
        outs = {(peer, tag): T.empty(50) for peer in range(size) if peer != rank for tag in (2, 1)}
        ops = [dist.P2POp(dist.isend, full(100 * rank + tag, 50), peer, group, tag)
               for peer in range(size) if peer != rank for tag in (1, 2)]
        ops += [dist.P2POp(dist.irecv, out, peer, group, tag) for (peer, tag), out in outs.items()]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return list(outs.values())
    check("a batch with tags", batch, [full(100 * peer + tag, 50) for peer in range(size) if peer != rank for tag in (2, 1)])


def to_itself(rank):
    for count in (3, 1 << 20):
        works = [dist.isend(full(rank, count), rank), dist.irecv(out := T.empty(count), rank)]
        for work in works:
            work.wait()
        assert T.equal(out, full(rank, count))
        counts["railhead"] += 1


def part_of_the_ranks(rank, size):
    """Tests a group whose rank numbers differ from those of the job."""
    some = list(range(size - 1, 0, -1))[:2]
    if len(some) < 2:
        return
    for backend in (None, "gloo") if DEVICE == "cpu" else (None,):
        part = dist.new_group(some, backend=backend)
        if rank == some[0]:
            dist.send(full(7), some[1], group=part)
        elif rank == some[1]:
            out = T.empty(1)
            assert dist.recv(out, group=part) == some[0]
            assert T.equal(out, full(7))
        counts["in a group"] += 1


def kinds_of_tensors(rank, size):
    def moved(tensor):
        """Returns what rank 1 receives from rank 0."""
        def call(group):
            if rank == 0:
                dist.send(tensor, 1, group=group)
            elif rank == 1:
                out = T.zeros_like(tensor)
                dist.recv(out, 0, group=group)
                return [out]
            return []
        return call

    for dtype in (T.float32, T.float64, T.float16, T.bfloat16, T.float8_e4m3fn, T.int8, T.uint8, T.int16, T.uint16, T.int32,
                  T.int64, T.uint64, T.bool, T.complex64):
        tensor = T.arange(40, device="cpu").to(dtype).to(DEVICE)
        check(f"{dtype}", moved(tensor), [tensor] if rank == 1 else [], gloo=False)
    nothing = T.empty(0, 3)
    check("nothing", moved(nothing), [nothing] if rank == 1 else [])

    def strided(group):
        if rank == 0:
            dist.send(T.arange(12.0).view(3, 4).t(), 1, group=group)
        elif rank == 1:
            out = T.zeros(8, 3)[::2]
            dist.recv(out, 0, group=group)
            return [out]
        return []
    check("strided tensors", strided, [T.arange(12.0).view(3, 4).t()] if rank == 1 else [], gloo=False)


def works(rank, size):
    """Tests the properties of c10d works, of which gloo's works have fewer."""
    to, source = (rank + 1) % size, (rank - 1) % size

    def futures(group):
        out = T.empty(5)
        received = dist.irecv(out, source, group=group)
        doubled = received.get_future().then(lambda done: done.value()[0] * 2)
        sent = dist.isend(full(rank, 5), to, group=group)
        return [doubled.wait(), len(sent.get_future().wait())]  # neither work is waited for
    check("futures", futures, [full(2 * source, 5), 1], gloo=False)

    def polled(group):
        out = T.empty(5)
        received = dist.irecv(out, source, group=group)
        assert not received.is_completed()
        dist.barrier(group)
        sent = dist.isend(full(rank, 5), to, group=group)
        while not (received.is_completed() and sent.is_completed()):
            time.sleep(0.001)
        assert received.is_success()
        return [out, *received.result()]
    check("polled works", polled, [full(source, 5)] * 2, gloo=False)

    def at_once(group):
        # A send is not done at once while another thread performs transfers.
        batches = 100 if DEVICE == "cpu" else 0
        fast = False
        for _ in range(batches):
            sent = [dist.isend(full(rank, 5), to, group=group) for _ in range(20)]
            fast = fast or sum(work.is_completed() for work in sent) >= 10
            for out in [T.empty(5) for _ in sent]:
                dist.recv(out, source, group=group)
                assert T.equal(out, full(source, 5))
            for work in sent:
                work.wait()
                assert work.is_success()
        return [fast]
    check("small sends are done when they have begun", at_once, [DEVICE == "cpu"], gloo=False)

    def dropped(group):
        for number in range(20):
            dist.isend(full(100 * rank + number, 30000), to, group=group)  # its tensor is dropped, too
            gc.collect()
            full(-1, 30000)
        outs = [T.empty(30000) for _ in range(20)]
        for out in outs:
            dist.recv(out, source, group=group)
        return outs
    check("works that are dropped", dropped, [full(100 * source + number, 30000) for number in range(20)], gloo=False)


def program(rank, size, seed):
    """Sends random messages between all ranks, and waits for them in random order, with collectives between them."""
    chance = random.Random(seed)  # the same on all ranks
    rounds = []
    for _ in range(6):
        messages = [(chance.randrange(size), chance.randrange(size), chance.randrange(3),
                     chance.choice((1, 100, 5000, 100000))) for _ in range(12)]
        rounds.append([message for message in messages if message[0] != message[1]])

    def value(number, index):
        return 1000 * number + index

    def call(group):
        mine = random.Random(seed + rank)
        outs, pending = {}, []
        for number, messages in enumerate(rounds):
            for index, (source, to, tag, count) in enumerate(messages):
                if source == rank:
                    pending.append(dist.isend(full(value(number, index), count), to, tag=tag, group=group))
                if to == rank:
                    out = outs[number, index] = T.zeros(count)
                    pending.append(dist.irecv(out, source, tag=tag, group=group))
            dist.all_reduce(full(1, 100), group=group)
            mine.shuffle(pending)
            while len(pending) > 8:  # both sides have called all that is pending, or will do so without this rank
                pending.pop().wait()
        for work in pending:
            work.wait()
        return list(outs.values())
    want = [full(value(number, index), count) for number, messages in enumerate(rounds)
            for index, (_, to, _, count) in enumerate(messages) if to == rank]
    check(f"program {seed}", call, want)


def refusals(rank, size):
    backend = dist.group.WORLD._get_backend(T.device(DEVICE))
    peer = (rank + 1) % size
    for kind, word, call in (
            (ValueError, "tag -1 is not from 0 to", lambda: backend.send([T.ones(1)], peer, -1)),
            (ValueError, "rank 9 does not exist", lambda: backend.recv([T.ones(1)], 9, 0)),
            (ValueError, "one for this process", lambda: backend.send([T.ones(1), T.ones(1)], peer, 0)),
            (TypeError, "on meta", lambda: backend.recv([T.empty(3, device="meta")], peer, 0))):
        try:
            call()
        except kind as error:
            assert "railhead: " in str(error) and word in str(error), error
            counts["refused"] += 1
            continue
        raise AssertionError(f"not refused: {word}")
    backend._start_coalescing()
    work = backend.recv([out := T.empty(1)], peer, 0)
    assert work is None
    try:
        backend.allreduce([T.ones(1)])
        raise AssertionError("not refused: a collective in a group of transfers")
    except NotImplementedError as error:
        assert "make two groups" in str(error), error
    backend.send([full(rank)], (rank - 1) % size, 0)
    backend._end_coalescing().wait()
    assert T.equal(out, full(peer))


def main():
    global GLOO  # pylint: disable=global-variable-undefined
    T.set_num_threads(1)
    dist.init_process_group("railhead")
    rank, size = dist.get_rank(), dist.get_world_size()
    GLOO = dist.new_group(backend="gloo")
    beside_each_other(rank, size)
    matching(rank, size)
    to_itself(rank)
    part_of_the_ranks(rank, size)
    kinds_of_tensors(rank, size)
    works(rank, size)
    for seed in range(3):
        program(rank, size, seed)
    refusals(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"torch {T.__version__}, {size} ranks, {DEVICE}: transfers: {counts['railhead']} results, {counts['gloo']} "
              f"as gloo's, {counts['refused']} refusals", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
