# SPDX-License-Identifier: Apache-2.0
"""One rank that runs every collective of the wheel on NumPy arrays, and compares the results with NumPy's own.

usage: collectives.py
"""

import array

import ml_dtypes
import numpy as np
import railhead

FLOATS = {np.dtype(np.float16): 2e-2, np.dtype(ml_dtypes.bfloat16): 1e-1, np.dtype(ml_dtypes.float8_e4m3fn): 3e-1,
          np.dtype(ml_dtypes.float8_e5m2): 5e-1, np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12,
          np.dtype(np.complex64): 1e-5, np.dtype(np.complex128): 1e-12}
INTEGERS = [np.dtype(kind + str(size)) for kind in "iu" for size in (1, 2, 4, 8)]
TYPES = [*FLOATS, *INTEGERS, np.dtype(bool)]
COUNT = 37


def values(rank, dtype, count=COUNT):
    """Returns a rank's input."""
    random = np.random.default_rng(rank)
    if dtype == bool:
        return random.random(count) > 0.5
    if dtype.kind == "c":
        return (random.standard_normal(count) + 1j * random.standard_normal(count)).astype(dtype)
    return random.integers(1, 4, count).astype(dtype)


def wide(dtype):
    return np.complex128 if dtype.kind == "c" else np.float64 if dtype in FLOATS else dtype


def expected(op, inputs, dtype):
    """Returns NumPy's reduction; None if there is none."""
    stack = np.stack([np.asarray(one).astype(wide(dtype)) for one in inputs])
    if dtype == bool:
        return {"SUM": stack.any(0), "MAX": stack.any(0), "BOR": stack.any(0), "PROD": stack.all(0),
                "MIN": stack.all(0), "BAND": stack.all(0), "BXOR": np.logical_xor.reduce(stack)}.get(op)
    if op in ("BAND", "BOR", "BXOR"):
        if dtype in FLOATS:
            return None
        return {"BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}[op].reduce(stack)
    if op == "AVG":
        return stack.mean(0) if dtype in FLOATS else (stack.sum(0, dtype=np.int64) // len(inputs)).astype(dtype)
    if dtype.kind == "c" and op != "SUM":
        return None
    return {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}[op].reduce(stack)


def same(got, want, dtype, what):
    got = np.asarray(got)
    if dtype in FLOATS:
        close = np.allclose(got.astype(wide(dtype)), want, rtol=FLOATS[dtype], atol=FLOATS[dtype])
    else:
        close = np.array_equal(got, want)
    assert close, f"{what}: {got[:5]}, not {want[:5]}"


def refuses(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), f"another reason: {error}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def reductions(comm, dtype):
    """Tests all operators, in place and out of place."""
    inputs = [values(rank, dtype) for rank in range(comm.size)]
    mine = inputs[comm.rank]
    for op in railhead.RedOp:
        want = expected(op.name, inputs, dtype)
        if want is None:
            if dtype.kind == "c" or dtype == bool:
                refuses(TypeError, lambda op=op: comm.all_reduce(mine.copy(), op=op), op.name)
            continue
        what = f"{dtype} {op.name}"
        out = np.empty_like(mine)
        comm.all_reduce(mine, out, op)
        same(out, want, dtype, f"all_reduce {what}")
        out = mine.copy()
        comm.all_reduce(out, op=op)
        same(out, want, dtype, f"all_reduce in place {what}")
        out = np.zeros_like(mine)
        comm.reduce(mine, out, op, root=1)
        if comm.rank == 1:
            same(out, want, dtype, f"reduce {what}")
        parts = [np.concatenate([values(10 * to + rank, dtype) for to in range(comm.size)]) for rank in range(comm.size)]
        comm.reduce_scatter(parts[comm.rank], out, op)
        begin = comm.rank * COUNT
        want = expected(op.name, [part[begin:begin + COUNT] for part in parts], dtype)
        same(out, want, dtype, f"reduce_scatter {what}")
        place = parts[comm.rank].copy()
        comm.reduce_scatter(place, None, op)
        same(place[begin:begin + COUNT], want, dtype, f"reduce_scatter in place {what}")
    counts = [rank + 1 for rank in range(comm.size)]
    if dtype != bool:
        source = values(comm.rank, dtype, sum(counts))
        out = np.empty(counts[comm.rank], dtype)
        comm.reduce_scatterv(source, out, counts)
        begin = sum(counts[:comm.rank])
        want = expected("SUM", [values(rank, dtype, sum(counts))[begin:begin + len(out)] for rank in range(comm.size)],
                        dtype)
        same(out, want, dtype, f"reduce_scatterv {dtype}")


def moves(comm, dtype):
    """Tests all calls that only move elements, also with a type that the library does not know."""
    size, rank = comm.size, comm.rank
    def of(who, count=COUNT):
        return values(who, dtype, count) if dtype.kind not in "VM" else np.frombuffer(
            np.random.default_rng(who).bytes(count * dtype.itemsize), dtype)
    def equal(got, want, what):
        assert got.tobytes() == want.tobytes(), f"{what} {dtype}"
    every = np.concatenate([of(who) for who in range(size)])
    out = np.zeros(size * COUNT, dtype)
    comm.all_gather(of(rank), out)
    equal(out, every, "all_gather")
    out = np.zeros(size * COUNT, dtype)
    out[rank * COUNT:(rank + 1) * COUNT] = of(rank)
    comm.all_gather(None, out)
    equal(out, every, "all_gather in place")
    one = np.array(of(rank))
    comm.broadcast(one, root=size - 1)
    equal(one, of(size - 1), "broadcast")
    counts = [2 * who + 1 for who in range(size)]
    gaps = [sum(counts[:who]) + who for who in range(size)]
    out = np.zeros(sum(counts) + size, dtype)
    comm.all_gatherv(of(rank, counts[rank]), out, counts, gaps)
    for who in range(size):
        equal(out[gaps[who]:gaps[who] + counts[who]], of(who, counts[who]), "all_gatherv")
    out = np.zeros(size * COUNT, dtype)
    comm.all_to_all(of(100 + rank, size * COUNT), out)
    equal(out, np.concatenate([of(100 + who, size * COUNT)[rank * COUNT:(rank + 1) * COUNT] for who in range(size)]),
          "all_to_all")
    sent = [rank + to + 1 for to in range(size)]
    out = np.zeros(sum(sent), dtype)
    comm.all_to_allv(of(rank, sum(sent)), sent, out, sent)
    want = []
    for who in range(size):
        lengths = [who + to + 1 for to in range(size)]
        begin = sum(lengths[:rank])
        want.append(of(who, sum(lengths))[begin:begin + lengths[rank]])
    equal(out, np.concatenate(want), "all_to_allv")
    out = np.zeros(size * COUNT, dtype)
    comm.gather(of(rank), out if rank == 1 else None, root=1)
    if rank == 1:
        equal(out, every, "gather")
    out = np.zeros(COUNT, dtype)
    comm.scatter(every if rank == 0 else None, out, root=0)
    equal(out, of(rank), "scatter")
    out = np.zeros(COUNT, dtype)
    with railhead.group():
        comm.send(of(rank), (rank + 1) % size)
        comm.recv(out, (rank - 1) % size)
    equal(out, of((rank - 1) % size), "send and recv")


def others(comm):
    """Tests the buffer protocol, bytes of another type, empty arrays, groups of collectives."""
    numbers = array.array("d", [comm.rank] * 5)
    comm.all_reduce(numbers, op=railhead.MAX)
    assert list(numbers) == [comm.size - 1] * 5
    raw = bytearray(np.full(4, comm.rank, ml_dtypes.bfloat16).tobytes())
    comm.all_reduce(railhead.memory(raw).cast("bfloat16"))
    assert list(np.frombuffer(raw, ml_dtypes.bfloat16)) == [sum(range(comm.size))] * 4
    comm.all_reduce(np.empty(0))
    one, two = np.ones(3), np.full(70000, 2.0)
    with railhead.group():
        comm.all_reduce(one)
        with railhead.group():
            comm.all_reduce(two)
    assert list(one) == [comm.size] * 3 and (two == 2 * comm.size).all()
    part = comm.split(comm.rank % 2, key=-comm.rank, config=railhead.Config(name="half"))
    assert part.size == len(range(comm.rank % 2, comm.size, 2)) and part.rank == part.size - 1 - comm.rank // 2
    part.barrier()
    part.destroy()
    assert comm.split(None if comm.rank == 0 else 7) is None or comm.rank > 0
    assert comm.info.transport in ("shm", "tcp") and len(comm.rails) == comm.info.rails and comm.error() is None
    assert "all_reduce" in comm.explain("all_reduce", 1 << 20)


GUARD = 64  # elements before and behind a buffer


class Guarded:
    """An array between elements that no call may change."""

    def __init__(self, count):
        self.all = np.full(count + 2 * GUARD, -7, np.int32)
        self.inner = self.all[GUARD:GUARD + count]

    def check(self, want, what):
        assert (self.inner == want).all(), f"{what}: {self.inner[:5]}, not {want[:5]}"
        assert (self.all[:GUARD] == -7).all() and (self.all[len(self.all) - GUARD:] == -7).all(), f"{what}: guards"


def as_caller(random, numbers):
    """Returns the numbers in one of the types in which callers pass counts."""
    kinds = [dtype for dtype in INTEGERS if max(numbers, default=0) <= np.iinfo(dtype).max]
    chosen = random.integers(len(kinds) + 3)
    if chosen < len(kinds):
        return np.array(numbers, kinds[chosen])
    return (list, tuple, lambda several: [np.uint8(one % 256) if one < 256 else one for one in several])[
        chosen - len(kinds)](numbers)


def gapped(random, counts):
    """Returns random displacements for the counts, in the order of ranks or not, and the end of the last part."""
    begins, end = [0] * len(counts), 0
    for rank in random.permutation(len(counts)):
        end += int(random.integers(20))
        begins[rank], end = end, end + counts[rank]
    return begins, end


def counts_of_any_type(comm):
    """Tests that counts mean the same in every integer type, also if their sum is too large for the type; and that no
    call writes before or behind a buffer."""
    random = np.random.default_rng(7)  # the same cases on all ranks
    for turn in range(120):
        most = (3, 100, 127, 255, 20000)[turn % 5]
        table = [[int(count) for count in random.integers(most // 2, most + 1, comm.size)] for _ in range(comm.size)]
        counts, displaced, rank = table[0], turn % 2 == 0, comm.rank
        begins, end = gapped(random, counts) if displaced else (None, sum(counts))
        given = as_caller(random, counts), None if begins is None else as_caller(random, begins)
        starts = begins or [sum(counts[:who]) for who in range(comm.size)]
        want = np.full(end, -7)
        for who in range(comm.size):
            want[starts[who]:starts[who] + counts[who]] = np.arange(counts[who]) + who
        recv = Guarded(end)
        comm.all_gatherv(np.arange(counts[rank], dtype=np.int32) + rank, recv.inner, *given)
        recv.check(want, f"all_gatherv {given}")
        recv = Guarded(counts[rank])
        comm.reduce_scatterv(np.arange(sum(counts), dtype=np.int32), recv.inner, given[0])
        recv.check((np.arange(counts[rank]) + sum(counts[:rank])) * comm.size, f"reduce_scatterv {given}")
        # table[a][b]: what rank a sends to rank b.
        to, from_ = table[rank], [row[rank] for row in table]
        kinds = as_caller(random, to), as_caller(random, from_)
        send = np.concatenate([np.arange(count, dtype=np.int32) + rank + who for who, count in enumerate(to)])
        recv = Guarded(sum(from_))
        comm.all_to_allv(send, kinds[0], recv.inner, kinds[1])
        recv.check(np.concatenate([np.arange(count) + rank + who for who, count in enumerate(from_)]),
                   f"all_to_allv {kinds}")
        # One element less than the parts need: refused on every rank, and nothing is written.
        for call in (lambda out: comm.all_gatherv(np.zeros(counts[rank], np.int32), out, *given),
                     lambda out: comm.all_to_allv(send, kinds[0], out, kinds[1]),
                     lambda out: comm.reduce_scatterv(np.zeros(sum(counts), np.int32), out, given[0])):
            recv = Guarded(min(counts) - 1)
            refuses(ValueError, lambda call=call, recv=recv: call(recv.inner), "elements")
            recv.check(np.full(min(counts) - 1, -7), "a refused call")


def numbers_that_c_cannot_hold(comm):
    """Tests that no number is cut off on its way to the library, in any call, and no text."""
    fine, wide = np.zeros(comm.size, np.int32), 2**32
    for root in (wide, wide + 1, -wide, 2**31, 2**63, 2**64 + 1):
        for call in (lambda root: comm.broadcast(fine, root), lambda root: comm.reduce(fine, fine, root=root),
                     lambda root: comm.gather(fine, root=root), lambda root: comm.scatter(None, fine, root=root),
                     lambda root: comm.send(fine, root), lambda root: comm.recv(fine, root),
                     lambda root: comm.split(0, key=root), lambda root: comm.shrink([root]),
                     lambda root: railhead.Communicator(bytes(128), root, 0),
                     lambda root: railhead.Communicator(bytes(128), 1, root),
                     lambda root: railhead.Communicator.join(bytes(128), 2, root), lambda root: comm.grow(bytes(128), root)):
            refuses(ValueError, lambda root=root, call=call: call(root), str(root), "out of range")
    for color in (-1, 2**31, wide + 1, hash("a") | 2**40):
        refuses(ValueError, lambda color=color: comm.split(color), "modulo 2**31")
    for number in (1.0, "1", None, np.float32(1)):
        refuses(TypeError, lambda number=number: comm.send(fine, number), "rhSend: peer")
        refuses(TypeError, lambda number=number: comm.all_gatherv(fine[:1], fine, [number] * comm.size), "counts")
    refuses(ValueError, lambda: comm.all_gatherv(fine[:1], fine, [1] * comm.size, [2**63] * comm.size), "displacements")
    refuses(ValueError, lambda: comm.explain("all_reduce", 2**64), "bytes", "out of range")
    refuses(ValueError, lambda: comm.explain("all\0", 1), "NUL")
    for options in ({"timeout_seconds": 2**40}, {"start_timeout_seconds": -(2**32)}, {"metrics": 2**32 + 1},
                    {"name": "a\0b"}, {"rails": "0\0"}):
        refuses(ValueError, lambda options=options: railhead.Config(**options), "Config.")
    refuses(TypeError, lambda: railhead.Config(timeout_seconds=1.9), "timeoutSeconds")
    comm.barrier()  # nothing of this has begun


class Pixels:
    """As PIL's images: the interface contains an object with the buffer protocol in place of an address."""

    def __init__(self, raw):
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (4,), "data": raw, "offset": 2}


def scalars(comm):
    """Tests NumPy's scalars, whose elements only their interface keeps alive: inputs, but no results."""
    out = np.empty(comm.size)
    for turn in range(20):
        keep = [np.float64(turn + comm.rank)]
        memory = railhead.memory(keep[0])
        noise = [np.full((), -1.0) for _ in range(50)]
        comm.all_gather(memory, out)
        assert list(out) == [turn + who for who in range(comm.size)], (out, noise[0])
    refuses(ValueError, lambda: comm.all_reduce(np.float64(1)), "read-only")
    raw = bytearray(range(6))
    comm.all_reduce(Pixels(raw))
    assert list(raw) == [0, 1, *(comm.size * value for value in range(2, 6))]


def refusals(comm):
    """Tests invalid arguments: the call has no effect, and no rank waits for another."""
    fine = np.zeros(6, np.float32)
    refuses(ValueError, lambda: comm.all_reduce(fine[::2]), "contiguous")
    refuses(ValueError, lambda: comm.all_reduce(fine.astype(">f4")), "byte order")
    refuses(TypeError, lambda: comm.all_reduce(fine, fine.astype(np.float64)), "float32", "float64")
    refuses(ValueError, lambda: comm.all_gather(fine, np.zeros(6, np.float32)), f"must have {6 * comm.size}")
    refuses(ValueError, lambda: comm.all_gatherv(fine, fine, [1] * comm.size, [1 << 40] * comm.size), "send")
    refuses(ValueError, lambda: comm.all_reduce(b"constant"), "read-only")
    refuses(TypeError, lambda: comm.all_reduce([1, 2]), "list")
    refuses(TypeError, lambda: comm.all_reduce(np.zeros(3, "V3")), "cast")
    refuses(TypeError, lambda: comm.all_reduce(np.array([object()])), "pickle")
    refuses(railhead.InvalidArgumentError, lambda: comm.broadcast(fine, root=99), "root 99 does not exist")
    refuses(ValueError, lambda: railhead.Communicator(b"short", 1, 0), "128")
    fine.flags.writeable = False
    refuses(ValueError, lambda: comm.all_reduce(fine), "read-only")


def main():
    with railhead.init() as comm:
        for dtype in TYPES:
            reductions(comm, dtype)
        for dtype in [*TYPES, np.dtype("V3"), np.dtype("M8[ns]")]:
            moves(comm, dtype)
        others(comm)
        scalars(comm)
        counts_of_any_type(comm)
        numbers_that_c_cannot_hold(comm)
        refusals(comm)
        comm.barrier()
        comm.finalize()
    refuses(railhead.InvalidUsageError, comm.barrier, "destroyed")


if __name__ == "__main__":
    main()
