# SPDX-License-Identifier: Apache-2.0
"""One rank that runs every collective of torch with the backend "railhead" and with gloo, on the same inputs.

usage: conformance.py [DEVICE]     cpu or cuda; with torchrun's variables. Rank 0 prints the number of comparisons.

Results of all ranks are compared with those of gloo, if gloo supports the call, and for reductions with results
that torch computes in one process.
"""

import collections
import datetime
import sys

import torch
import torch.distributed as dist

T = torch
FLOATS = {T.float32: 1e-5, T.float64: 1e-12, T.float16: 2e-2, T.bfloat16: 1e-1, T.float8_e4m3fn: 3e-1,
          T.float8_e5m2: 5e-1, T.complex64: 1e-5, T.complex128: 1e-12}
TYPES = [*FLOATS, T.int8, T.uint8, T.int16, T.uint16, T.int32, T.uint32, T.int64, T.uint64, T.bool]
OPERATORS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
DEVICE = (sys.argv[1:] or ["cpu"])[0]
T.set_default_device(DEVICE)
# In some calls gloo of torch 2.11 uses GPU addresses as CPU addresses, and crashes.
GLOO_CAN = DEVICE == "cpu"
counts = collections.Counter()


def data(dtype, shape, seed):
    """Returns equal numbers on any device."""
    chance = {"generator": T.Generator("cpu").manual_seed(seed), "device": "cpu"}
    if dtype.is_complex:
        made = T.randn(shape, dtype=dtype, **chance)
    elif dtype == T.bool:
        made = T.rand(shape, **chance) > 0.5
    else:
        made = T.randint(1, 4, shape, **chance)  # products of 4 ranks fit in int8
        made = made.to(T.float32).to(dtype) if dtype in FLOATS else made.to(dtype)
    return made.to(DEVICE)


def wide(tensor):
    return tensor.to(T.complex128 if tensor.is_complex() else T.float64)


def reduced(op, tensors):
    """Returns the reduction that torch computes in one process; None if it has none."""
    dtype = tensors[0].dtype
    if dtype == T.bool:
        stack = T.stack(tensors).to(T.int64)
        return {"SUM": stack.amax, "MAX": stack.amax, "BOR": stack.amax, "PRODUCT": stack.amin, "MIN": stack.amin,
                "BAND": stack.amin, "BXOR": lambda _: stack.sum(0) % 2}[op](0) if op != "AVG" else None
    if op in ("BAND", "BOR", "BXOR"):
        if dtype in FLOATS:
            return None
        result = tensors[0].to(T.int64)
        for tensor in tensors[1:]:
            other = tensor.to(T.int64)
            result = {"BAND": result & other, "BOR": result | other, "BXOR": result ^ other}[op]
        return result
    if dtype.is_complex and op not in ("SUM", "AVG"):
        return None
    stack = T.stack([wide(tensor) for tensor in tensors])
    if op == "AVG":
        return stack.mean(0) if dtype in FLOATS else stack.sum(0).to(T.int64) // len(tensors)
    return {"SUM": stack.sum, "PRODUCT": stack.prod, "MIN": stack.amin, "MAX": stack.amax}[op](0)


def attempt(call, group):
    """Returns the call's tensors, or the text of its exception."""
    try:
        result = call(group)
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return list(result) if isinstance(result, (list, tuple)) else [result]


def check(name, call, exact=True, tolerance=0.0, want=None, gloo=True):
    """Compares the call with gloo and with the known result. If `want` is None, the call must be rejected."""
    mine = attempt(call, None)
    other = attempt(call, GLOO) if gloo else "not asked"
    if want is None and not exact:
        assert isinstance(mine, str), f"{name}: is not refused: {mine}"  # by torch or by the backend
        counts["refused"] += 1
        return
    assert not isinstance(mine, str), f"{name}: {mine}"
    for known, what in ((want, "known"), (None if isinstance(other, str) else other, "gloo")):
        if known is None:
            continue
        counts[what] += 1
        assert len(mine) == len(known), f"{name}: {len(mine)} tensors, {what} {len(known)}"
        for one, two in zip(mine, known):
            same = one.shape == two.shape and T.allclose(wide(one), wide(two), rtol=tolerance, atol=tolerance)
            assert same, f"{name}: {one.flatten()[:4]}, {what} {two.flatten()[:4]}"


def reductions(rank, size):
    for dtype in TYPES:
        tolerance = FLOATS.get(dtype, 0.0)
        for op in OPERATORS:
            number = getattr(dist.ReduceOp, op)
            inputs = [data(dtype, (33,), seed) for seed in range(size)]
            known = reduced(op, inputs)
            want = None if known is None else [known]

            def all_reduce(group):
                tensor = data(dtype, (33,), rank)
                dist.all_reduce(tensor, number, group=group)
                return tensor
            check(f"all_reduce {dtype} {op}", all_reduce, False, tolerance, want)
            if want is None:
                continue

            def reduce(group):
                tensor = data(dtype, (33,), rank)
                dist.reduce(tensor, 1, number, group=group)
                return tensor if rank == 1 else []
            check(f"reduce {dtype} {op}", reduce, False, tolerance, want if rank == 1 else [])

            def scatter(group):
                out = T.empty(3, 2, dtype=dtype)
                dist.reduce_scatter_tensor(out, data(dtype, (3 * size, 2), rank), number, group=group)
                return out
            parts = [data(dtype, (3 * size, 2), seed)[3 * rank:3 * rank + 3] for seed in range(size)]
            check(f"reduce_scatter_tensor {dtype} {op}", scatter, False, tolerance, [reduced(op, parts)])


def moves(rank, size):
    for dtype in TYPES:
        def data_of(shape, seed=rank, dtype=dtype):
            return data(dtype, shape, seed)

        def empty(*shape, dtype=dtype):
            return T.zeros(shape, dtype=dtype)

        def all_gather(group):
            out = [empty(5, 3) for _ in range(size)]
            dist.all_gather(out, data_of((5, 3)), group=group)
            return out
        every = [data_of((5, 3), seed) for seed in range(size)]
        check(f"all_gather {dtype}", all_gather, want=every)

        def into_tensor(group):
            out = empty(5 * size, 3)
            dist.all_gather_into_tensor(out, data_of((5, 3)), group=group)
            return out
        check(f"all_gather_into_tensor {dtype}", into_tensor, want=[T.cat(every)])

        def uneven(group):
            out = [empty(seed + 1, 2) for seed in range(size)]
            dist.all_gather(out, data_of((rank + 1, 2)), group=group)
            return out
        check(f"all_gather uneven {dtype}", uneven, want=[data_of((seed + 1, 2), seed) for seed in range(size)])

        def broadcast(group):
            tensor = data_of((5, 3))
            dist.broadcast(tensor, size - 1, group=group)
            return tensor
        check(f"broadcast {dtype}", broadcast, want=[every[-1]])

        def gather(group):
            out = [empty(5, 3) for _ in range(size)] if rank == 1 else None
            dist.gather(data_of((5, 3)), out, 1, group=group)
            return out or []
        check(f"gather {dtype}", gather, want=every if rank == 1 else [])

        def scatter(group):
            out = empty(5, 3)
            dist.scatter(out, every if rank == 0 else None, 0, group=group)
            return out
        check(f"scatter {dtype}", scatter, want=[every[rank]])

        def all_to_all_single(group):
            out = empty(2 * size, 2)
            dist.all_to_all_single(out, data_of((2 * size, 2)), group=group)
            return out
        check(f"all_to_all_single {dtype}", all_to_all_single,
              want=[T.cat([data_of((2 * size, 2), seed)[2 * rank:2 * rank + 2] for seed in range(size)])])

        def single_uneven(group):
            out = empty(size * (rank + 1), 2)
            dist.all_to_all_single(out, data_of((size * (size + 1) // 2, 2)), [rank + 1] * size,
                                   list(range(1, size + 1)), group=group)
            return out
        begin = rank * (rank + 1) // 2
        check(f"all_to_all_single uneven {dtype}", single_uneven,
              want=[T.cat([data_of((size * (size + 1) // 2, 2), seed)[begin:begin + rank + 1] for seed in range(size)])])

        def all_to_all(group):
            out = [empty(seed + rank + 1) for seed in range(size)]
            dist.all_to_all(out, [data_of((rank + to + 1,), 10 * rank + to) for to in range(size)], group=group)
            return out
        check(f"all_to_all {dtype}", all_to_all,
              want=[data_of((rank + seed + 1,), 10 * seed + rank) for seed in range(size)])


def forms(rank, size):
    """Tests lists, objects, coalesced calls, futures, odd tensors."""
    def value(seed, *shape):
        return data(T.float32, shape, seed)

    def lists(group):
        out = T.empty(rank + 1)
        dist.reduce_scatter(out, [value(rank, to + 1) for to in range(size)], group=group)
        return out
    check("reduce_scatter uneven", lists, tolerance=1e-5,
          want=[sum(value(seed, rank + 1) for seed in range(size))])

    def objects(group):
        out = [None] * size
        dist.all_gather_object(out, {"rank": rank, "text": "y" * rank}, group=group)
        one = [("from", rank)]
        dist.broadcast_object_list(one, 1, group=group)
        some = [None]
        dist.scatter_object_list(some, [f"part {to}" for to in range(size)] if rank == 0 else None, 0, group=group)
        all_of = [None] * size if rank == 0 else None
        dist.gather_object(rank * 7, all_of, 0, group=group)
        assert out == [{"rank": seed, "text": "y" * seed} for seed in range(size)]
        assert one == [("from", 1)] and some == [f"part {rank}"]
        assert all_of is None or all_of == [7 * seed for seed in range(size)]
        return []
    check("objects", objects)

    def strided(group):
        tensor = value(rank, 6, 4).t()
        dist.all_reduce(tensor, group=group)
        return tensor
    want = sum(value(seed, 6, 4).t() for seed in range(size))
    check("all_reduce of a transposed tensor", strided, tolerance=1e-5, want=[want])

    def strided_results(group):
        out = T.zeros(3, 2 * size).t()
        dist.all_gather_into_tensor(out, value(rank, 2, 3), group=group)
        return out
    mine = attempt(strided_results, None)
    assert T.equal(mine[0], T.cat([value(seed, 2, 3) for seed in range(size)])), mine

    def conjugate(group):
        tensor = data(T.complex64, (5,), rank).conj()
        group._get_backend(T.device(DEVICE)).allreduce([tensor]).wait()  # torch itself rejects it
        return tensor
    mine = attempt(conjugate, dist.group.WORLD)
    want = sum(data(T.complex64, (5,), seed).conj() for seed in range(size))
    assert T.allclose(mine[0], want), mine

    def nothing(group):
        tensor = T.empty(0)
        dist.all_reduce(tensor, group=group)
        return tensor
    check("all_reduce of nothing", nothing, want=[T.empty(0)])

    def scaled(group):
        tensor = T.ones(4, dtype=T.float16)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.25), group=group)
        return tensor
    mine = attempt(scaled, None)
    assert T.equal(mine[0], T.full((4,), 0.25 * size, dtype=T.float16)), mine

    def coalesced(group):
        tensors = [value(rank, 4), value(rank, 5), T.full((3,), rank, dtype=T.int64)]
        with dist._coalescing_manager(group=group, async_ops=True) as manager:
            for tensor in tensors[:2]:
                dist.all_reduce(tensor, group=group)
        manager.wait()
        return tensors[:2]
    check("coalesced all_reduce", coalesced, tolerance=1e-5,
          want=[sum(value(seed, count) for seed in range(size)) for count in (4, 5)])

    def coalesced_forms(group):
        outs = [T.empty(4 * size), T.empty(5 * size)]
        parts = [T.empty(4), T.empty(5)]
        with dist._coalescing_manager(group=group):
            for out, count in zip(outs, (4, 5)):
                dist.all_gather_into_tensor(out, value(rank, count), group=group)
        with dist._coalescing_manager(group=group):
            for part, count in zip(parts, (4, 5)):
                dist.reduce_scatter_tensor(part, value(rank, count * size), group=group)
        return [*outs, *parts]
    want = [T.cat([value(seed, count) for seed in range(size)]) for count in (4, 5)]
    want += [sum(value(seed, count * size) for seed in range(size))[count * rank:count * rank + count] for count in (4, 5)]
    check("coalesced all_gather and reduce_scatter", coalesced_forms, tolerance=1e-5, want=want, gloo=GLOO_CAN)

    def list_at_once(group):
        tensors = [value(rank, 4), value(rank, 5)]
        group._get_backend(T.device(DEVICE)).allreduce_coalesced(tensors).wait()
        return tensors
    mine = attempt(list_at_once, dist.group.WORLD)
    assert T.allclose(mine[1], sum(value(seed, 5) for seed in range(size))), mine

    def future(group):
        tensor = T.ones(4)
        work = dist.all_reduce(tensor, group=group, async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * 2).wait()
    check("future.then", future, want=[T.full((4,), 2.0 * size)])

    def many(group):
        tensors = [T.full((100,), float(rank + number)) for number in range(50)]
        for work in [dist.all_reduce(tensor, group=group, async_op=True) for tensor in tensors]:
            work.wait()
            assert work.is_completed() and work.is_success()
        return tensors
    check("50 calls at once", many, want=[T.full((100,), float(sum(range(size)) + size * n)) for n in range(50)])


def groups(rank, size):
    """Tests groups of some ranks, with their own rank numbers; sequence numbers; barriers."""
    dist.barrier()
    backend = dist.group.WORLD._get_backend(T.device(DEVICE))
    backend.monitored_barrier() if hasattr(backend, "monitored_barrier") else dist.barrier()
    assert backend.name() == "railhead"
    before = backend._get_sequence_number_for_group()
    dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 1
    some = list(range(size - 1, -1, -2))
    part = dist.new_group(some)
    if rank in some:
        tensor = T.ones(3)
        dist.all_reduce(tensor, group=part)
        assert tensor[0] == len(some)
        dist.destroy_process_group(part)
    left = T.ones(2)
    dist.all_reduce(left)
    assert left[0] == size


def split_groups(rank, size):
    """Tests split groups: with ranks in another order, of some ranks only, of a group that was split itself, and
    during a call."""
    if tuple(int(number) for number in T.__version__.split(".")[:2]) < (2, 15):
        return  # needs NCCL's device
    before = T.full((100000,), float(rank))
    work = dist.all_reduce(before, async_op=True)
    lists = [list(range(size - 1, -1, -2)), list(range(size - 2, -1, -2))]
    half = dist.split_group(split_ranks=lists, timeout=datetime.timedelta(seconds=77))
    work.wait()
    assert T.equal(before, T.full((100000,), float(sum(range(size)))))
    mine = lists[0] if rank in lists[0] else lists[1]
    assert dist.get_rank(half) == mine.index(rank) and dist.get_world_size(half) == len(mine)
    backend = half._get_backend(T.device(DEVICE))
    assert backend.name() == "railhead" and backend.options._timeout == datetime.timedelta(seconds=77), backend.options
    everyone = [T.empty(1) for _ in mine]
    dist.all_gather(everyone, T.full((1,), float(rank)), group=half)
    assert [int(one) for one in everyone] == mine, everyone
    # Ranks are those of the group that is split.
    quarter = dist.split_group(half, split_ranks=[[len(mine) - 1]])
    assert (quarter is dist.GroupMember.NON_GROUP_MEMBER) == (rank != mine[-1])
    if rank == mine[-1]:
        alone = T.ones(2)
        dist.all_reduce(alone, group=quarter)
        assert T.equal(alone, T.ones(2))
        dist.destroy_process_group(quarter)
    # Also transfers and objects.
    if len(mine) > 1:
        into = T.empty(3)
        here = dist.get_rank(half)
        work = dist.irecv(into, mine[here - 1], group=half)
        dist.send(T.full((3,), float(rank)), mine[(here + 1) % len(mine)], group=half)
        work.wait()
        assert T.equal(into, T.full((3,), float(mine[here - 1])))
    dist.destroy_process_group(half)
    dist.barrier()


def refusals(size):
    """Tests invalid arguments: torch's exceptions contain the backend's text, and the group stays usable."""
    def refuses(kind, word, call):
        try:
            call()
        except kind as error:
            assert "railhead: " in str(error) and word in str(error), error
            counts["refused"] += 1
            return
        raise AssertionError(f"not refused: {word}")
    backend = dist.group.WORLD._get_backend(T.device(DEVICE))
    refuses(TypeError, "dense", lambda: backend.allreduce([T.eye(3).to_sparse()]))
    refuses(TypeError, "on meta", lambda: backend.allreduce([T.empty(3, device="meta")]))
    refuses(ValueError, "one for this process", lambda: backend.allreduce([T.ones(1), T.ones(1)]))
    refuses(ValueError, "times the input", lambda: backend._allgather_base(T.empty(3 * size + 1), T.empty(3)))
    refuses(ValueError, "split sizes", lambda: dist.all_to_all_single(T.empty(size), T.empty(size + 1)))
    dist.barrier()


def main():
    global GLOO  # pylint: disable=global-variable-undefined
    T.set_num_threads(1)
    dist.init_process_group("railhead")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() in ("railhead", "cpu:railhead"), dist.get_backend()
    GLOO = dist.new_group(backend="gloo")
    reductions(rank, size)
    moves(rank, size)
    forms(rank, size)
    groups(rank, size)
    split_groups(rank, size)
    refusals(size)
    dist.barrier()
    if rank == 0:
        print(f"torch {T.__version__}, {size} ranks, {DEVICE}: {counts['gloo']} results as gloo's, {counts['known']} as known, "
              f"{counts['refused']} refusals", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
