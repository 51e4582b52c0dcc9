# SPDX-License-Identifier: Apache-2.0
"""Tests the supported functions of MPI with mpi4py and known results. Prints the number of checks."""

import sys

import mpi4py
import numpy as np

mpi4py.rc.recv_mprobe = False  # messages of objects: MPI_Mprobe is not supported
from mpi4py import MPI  # noqa: E402

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
KINDS = tuple(np.dtype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"))
checked = 0


def check(what, found, known):
    global checked
    same = np.array_equal(found, known)
    assert same, f"rank {RANK}: {what}: {found} in place of {known}"
    checked += 1


def values(of, kind, count):
    return ((np.arange(count) * 3 + of) % 11 + 1).astype(kind)


def reductions():
    """Each operator that MPI defines for a type, with counts that are not multiples of the number of ranks."""
    numbers = [(MPI.SUM, np.add), (MPI.PROD, np.multiply), (MPI.MAX, np.maximum), (MPI.MIN, np.minimum)]
    logical = [(MPI.LAND, np.logical_and), (MPI.LOR, np.logical_or), (MPI.LXOR, np.logical_xor)]
    bits = [(MPI.BAND, np.bitwise_and), (MPI.BOR, np.bitwise_or), (MPI.BXOR, np.bitwise_xor)]
    kinds = (*KINDS, *map(np.dtype, ("c8", "c16", "?", np.longdouble, np.clongdouble)))
    of_kinds = {"i": numbers + bits + logical, "u": numbers + bits + logical, "f": numbers, "c": numbers[:2], "b": logical}
    for kind in kinds:
        for op, function in of_kinds[kind.kind]:
            for count in (0, 1, 7, 1000):
                everyone = [values(r, kind, count) for r in range(RANKS)]
                if kind == bool:
                    everyone = [values(r, "i4", count) % 2 == 0 for r in range(RANKS)]
                known = everyone[0]
                for other in everyone[1:]:
                    known = function(known, other).astype(kind)
                found = np.empty(count, kind)
                WORLD.Allreduce(everyone[RANK], found, op)
                check(f"Allreduce {op} {kind} {count}", found, known)
                in_place = everyone[RANK].copy()
                WORLD.Allreduce(MPI.IN_PLACE, in_place, op)
                check("Allreduce in place", in_place, known)
                root = count % RANKS
                WORLD.Reduce(everyone[RANK], found if RANK == root else None, op, root)
                check("Reduce", found, known)
                counts = [count // RANKS + (r < count % RANKS) for r in range(RANKS)]
                begin = sum(counts[:RANK])
                mine = np.empty(counts[RANK], kind)
                WORLD.Reduce_scatter(everyone[RANK], mine, counts, op)
                check("Reduce_scatter", mine, known[begin:begin + counts[RANK]])


def extremes():
    """MAXLOC and MINLOC: an extreme value and its rank; the lowest rank if values are equal."""
    for pair, kind in ((MPI.FLOAT_INT, "f4,i4"), (MPI.DOUBLE_INT, "f8,i4"), (MPI.LONG_INT, "i8,i4"),
                       (MPI.SHORT_INT, "i2,i4"), (MPI.TWOINT, "i4,i4")):
        count, layout = 9, np.dtype(kind, align=True)
        values_ = np.stack([(np.arange(count) * (r + 2)) % 5 for r in range(RANKS)])
        mine = np.zeros(count, layout)
        mine["f0"], mine["f1"] = values_[RANK], RANK
        found = np.zeros(count, layout)
        for op, best, at in ((MPI.MAXLOC, values_.max(0), values_.argmax(0)), (MPI.MINLOC, values_.min(0), values_.argmin(0))):
            WORLD.Allreduce([mine, count, pair], [found, count, pair], op)
            check(f"{op} of {kind}", np.stack([found["f0"], found["f1"]]), np.stack([best, at]))


def programs_operators():
    """An operator that does not commute, on a derived type."""
    def affine(one, other, _):
        """other = one o other, of functions x -> a x + b modulo 251."""
        f, g = (np.frombuffer(part, np.uint8).reshape(-1, 2).astype(int) for part in (one, other))
        both = np.stack([f[:, 0] * g[:, 0] % 251, (f[:, 0] * g[:, 1] + f[:, 1]) % 251], 1)
        np.frombuffer(other, np.uint8)[:] = both.astype(np.uint8).reshape(-1)

    op, pair = MPI.Op.Create(affine, commute=False), MPI.BYTE.Create_contiguous(2).Commit()
    for count in (1, 5, 999):
        everyone = [(np.arange(2 * count) * 7 + 5 * r + 3) % 251 for r in range(RANKS)]
        everyone = [part.astype(np.uint8) for part in everyone]
        known = everyone[-1].copy()
        for r in range(RANKS - 2, -1, -1):
            affine(everyone[r], known, None)
        found = np.empty(2 * count, np.uint8)
        WORLD.Allreduce([everyone[RANK], count, pair], [found, count, pair], op)
        check("Allreduce by the program's operator", found, known)
        WORLD.Reduce([everyone[RANK], count, pair], [found, count, pair], op, RANKS - 1)
        check("Reduce by the program's operator", found, known)
    op.Free()
    pair.Free()


def movement():
    for kind in KINDS:
        for count in (1, 13, 4000):
            everyone = [values(r, kind, count) for r in range(RANKS)]
            all_ = np.concatenate(everyone)
            found = np.empty_like(all_)
            WORLD.Allgather(everyone[RANK], found)
            check("Allgather", found, all_)
            found[:] = 0
            found[RANK * count:(RANK + 1) * count] = everyone[RANK]
            WORLD.Allgather(MPI.IN_PLACE, found)
            check("Allgather in place", found, all_)
            root = count % RANKS
            copy = everyone[RANK].copy()
            WORLD.Bcast(copy, root)
            check("Bcast", copy, everyone[root])
            found[:] = 0
            WORLD.Gather(everyone[RANK], found if RANK == root else None, root)
            check("Gather", found, all_ if RANK == root else 0 * all_)
            part = np.empty(count, kind)
            WORLD.Scatter(all_ if RANK == root else None, part, root)
            check("Scatter", part, everyone[RANK])
            crossed = np.empty(RANKS * count, kind)
            WORLD.Alltoall(np.tile(everyone[RANK], RANKS), crossed)
            check("Alltoall", crossed, all_)
            crossed = np.tile(everyone[RANK], RANKS)
            WORLD.Alltoall(MPI.IN_PLACE, crossed)
            check("Alltoall in place", crossed, all_)
            parts_of_different_sizes(kind, count, root)


def parts_of_different_sizes(kind, count, root):
    counts = [count + r for r in range(RANKS)]
    gaps = [sum(counts[:r]) + 2 * r for r in range(RANKS)]  # two elements between parts do not change
    parts = [values(r, kind, counts[r]) for r in range(RANKS)]
    known = np.zeros(gaps[-1] + counts[-1], kind)
    for r in range(RANKS):
        known[gaps[r]:gaps[r] + counts[r]] = parts[r]
    there = [np.zeros_like(known), counts, gaps, MPI._typedict[kind.char]]
    WORLD.Allgatherv(parts[RANK], there)
    check("Allgatherv", there[0], known)
    there[0] = np.zeros_like(known)
    WORLD.Gatherv(parts[RANK], there if RANK == root else None, root)
    check("Gatherv", there[0], known if RANK == root else 0 * known)
    mine = np.empty(counts[RANK], kind)
    WORLD.Scatterv([known, counts, gaps, there[3]] if RANK == root else None, mine, root)
    check("Scatterv", mine, parts[RANK])
    # Rank a sends rank b a + b + 1 elements of value a.
    sent = [RANK + r + 1 for r in range(RANKS)]
    out = np.full(sum(sent), RANK, kind)
    got = np.empty_like(out)
    WORLD.Alltoallv([out, sent], [got, sent])
    check("Alltoallv", got, np.concatenate([np.full(RANK + r + 1, r, kind) for r in range(RANKS)]))


def layouts():
    """Parts at random places before and behind the buffer; every other byte of its memory stays as it is."""
    random = np.random.default_rng(RANKS)  # the same cases on all ranks
    for kind in KINDS * 4:
        root = int(random.integers(RANKS))
        table = random.integers(0, 3, (RANKS, RANKS)) * random.integers(0, 40, (RANKS, RANKS))
        counts, own = table[0], np.random.default_rng([RANK, *table.flat])
        sent, arriving = table[RANK], table[:, RANK]

        def lay(sizes):
            """Returns memory, where its buffer begins, and displacements from there in random order."""
            begins, end = np.zeros(RANKS, int), 9
            for part in own.permutation(RANKS):
                end += int(own.integers(4))
                begins[part], end = end, end + sizes[part]
            base = int(own.integers(end + 9))
            return np.full(end + 9, 100, kind), base, begins - base

        def put(memory, base, begins, parts):
            for begin, part in zip(begins, parts):
                memory[base + begin:base + begin + len(part)] = part

        def at(memory, base, sizes, begins):
            # MPI gets the address of the buffer, and displacements that lead out of this view of it.
            return [memory[base:], list(map(int, sizes)), list(map(int, begins)), MPI._typedict[kind.char]]

        def fill(of, to, count):
            return values(of * RANKS + to, kind, count)

        memory, base, begins = lay(counts)
        known = memory.copy()
        put(known, base, begins, [fill(r, 0, counts[r]) for r in range(RANKS)])
        WORLD.Allgatherv(fill(RANK, 0, counts[RANK]), at(memory, base, counts, begins))
        check("Allgatherv before the buffer", memory, known)
        memory[:] = 100
        WORLD.Gatherv(fill(RANK, 0, counts[RANK]), at(memory, base, counts, begins) if RANK == root else None, root)
        check("Gatherv before the buffer", memory, known if RANK == root else np.full_like(known, 100))
        part = np.full(counts[RANK], 100, kind)
        WORLD.Scatterv(at(known, base, counts, begins) if RANK == root else None, part, root)
        check("Scatterv before the buffer", part, fill(RANK, 0, counts[RANK]))
        out, out_base, out_begins = lay(sent)
        put(out, out_base, out_begins, [fill(RANK, r, sent[r]) for r in range(RANKS)])
        memory, base, begins = lay(arriving)
        known = memory.copy()
        put(known, base, begins, [fill(r, RANK, arriving[r]) for r in range(RANKS)])
        WORLD.Alltoallv(at(out, out_base, sent, out_begins), at(memory, base, arriving, begins))
        check("Alltoallv before the buffer", memory, known)
        # Several ranks may get the same elements.
        same = [fill(RANK, 0, 40), [20] * RANKS, [3] * RANKS, MPI._typedict[kind.char]]
        crossed = np.empty(20 * RANKS, kind)
        WORLD.Alltoallv(same, crossed)
        check("Alltoallv of the same elements", crossed, np.concatenate([fill(r, 0, 40)[3:23] for r in range(RANKS)]))


def messages():
    right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    for count in (0, 1, 100_000):
        status, got = MPI.Status(), np.zeros(count + 3, np.int32)
        WORLD.Sendrecv(np.full(count, RANK, np.int32), right, 5, got, left, 5, status)
        check("Sendrecv", got, np.concatenate([np.full(count, left), np.zeros(3)]))
        check("its status", [status.source, status.tag, status.Get_count(MPI.INT)], [left, 5, count])
        # Tags select messages, whatever their order.
        got = [np.zeros(count, np.int32) for _ in range(2)]
        requests = [WORLD.Irecv(got[0], left, 1), WORLD.Irecv(got[1], left, 2)]
        requests += [WORLD.Isend(np.full(count, 2, np.int32), right, 2), WORLD.Isend(np.full(count, 1, np.int32), right, 1)]
        MPI.Request.Waitall(requests)
        check("tags", np.concatenate(got), np.repeat([1, 2], count))
        swapped = np.full(count, RANK, np.int32)
        WORLD.Sendrecv_replace(swapped, right, 6, left, 6)
        check("Sendrecv_replace", swapped, np.full(count, left))
        requests = [WORLD.Irecv(got[0], left, 1), WORLD.Irecv(got[1], left, 2)]
        WORLD.Send(np.full(count, 4, np.int32), right, 2)
        check("Waitany", MPI.Request.Waitany(requests), 1)
        WORLD.Barrier()
        WORLD.Send(np.full(count, 3, np.int32), right, 1)
        while not MPI.Request.Testall(requests):
            pass
        check("Testall", np.concatenate(got), np.repeat([3, 4], count))
    if RANK == 0:
        seen, status, one = set(), MPI.Status(), np.zeros(1, np.int32)
        for _ in range(RANKS - 1):
            WORLD.Recv(one, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            check("who has sent it", [one[0], status.tag], [status.source, status.source + 100])
            seen.add(status.source)
        check("all have", sorted(seen), list(range(1, RANKS)))
    else:
        WORLD.Send(np.full(1, RANK, np.int32), 0, RANK + 100)
    # A receive that is posted before a collective gets a message that is sent after it.
    got = np.zeros(50_000)
    request = WORLD.Irecv(got, left, 3)
    WORLD.Barrier()
    assert not request.Test()
    WORLD.Barrier()
    WORLD.Send(np.full(50_000, RANK, float), right, 3)
    request.Wait()
    check("an early receive", got, np.full(50_000, left, float))
    nothing = np.zeros(1, np.int32)
    WORLD.Sendrecv(nothing, MPI.PROC_NULL, 0, nothing, MPI.PROC_NULL, 0)
    check("PROC_NULL", nothing, [0])


def communicators():
    half = WORLD.Split(RANK % 2, -RANK)
    members = [r for r in range(RANKS - 1, -1, -1) if r % 2 == RANK % 2]
    check("Split", [half.Get_size(), half.Get_rank()], [len(members), members.index(RANK)])
    check("in it", half.allreduce(RANK), sum(members))
    check("no color", WORLD.Split(MPI.UNDEFINED) == MPI.COMM_NULL, RANK >= 0)
    copy, shared = WORLD.Dup(), WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    check("Dup", copy.allgather(RANK), list(range(RANKS)))
    apart = WORLD.Split_type(MPI.UNDEFINED if RANK == 0 else MPI.COMM_TYPE_SHARED)
    check("some want none", apart == MPI.COMM_NULL or apart.Get_size() == RANKS - 1, True)
    check("ranks that share memory", shared.Get_size(), RANKS)
    check("SELF", MPI.COMM_SELF.allreduce(RANK), RANK)
    reverse = copy.Split(0, -RANK)
    compared = [MPI.Comm.Compare(WORLD, other) for other in (WORLD, copy, reverse, half)]
    check("Compare", compared, [MPI.IDENT, MPI.CONGRUENT, *([MPI.SIMILAR, MPI.UNEQUAL] if RANKS > 1 else [MPI.CONGRUENT] * 2)])
    reverse.Free()
    check("objects", WORLD.bcast({"from": 0} if RANK == 0 else None), {"from": 0})
    gathered = WORLD.gather("x" * RANK, root=RANKS - 1)
    check("gathered objects", gathered, ["x" * r for r in range(RANKS)] if RANK == RANKS - 1 else None)
    check("scattered objects", WORLD.scatter([[r] for r in range(RANKS)] if RANK == 0 else None), [RANK])
    freed_early(WORLD.Dup())
    attributes(copy)
    for comm in (half, copy, shared, *([apart] if RANK > 0 else [])):
        comm.Free()


def freed_early(comm):
    """A communicator ends with its last request."""
    out, got = np.full(100_000, RANK), np.zeros(100_000, int)
    requests = [comm.Irecv(got, (RANK - 1) % RANKS, 1), comm.Isend(out, (RANK + 1) % RANKS, 1)]
    comm.Free()
    MPI.Request.Waitall(requests)
    check("a communicator that was freed early", got, np.full(100_000, (RANK - 1) % RANKS))


def attributes(comm):
    deleted = []
    key = MPI.Comm.Create_keyval(lambda _comm, _key, value: value + 1, lambda _comm, _key, value: deleted.append(value))
    comm.Set_attr(key, 1)
    comm.Set_attr(key, 5)
    check("an attribute that is replaced", deleted, [1])
    other = comm.Dup()
    check("an attribute that is copied", other.Get_attr(key), 6)
    other.Free()
    comm.Delete_attr(key)
    check("attributes that are deleted", deleted, [1, 6, 5])
    MPI.Comm.Free_keyval(key)


def errors():
    """Errors are reported, and an error of one call does not affect the next."""
    def refused(error_class, words, call, *arguments):
        try:
            call(*arguments)
        except MPI.Exception as error:
            check("class", error.Get_error_class(), error_class)
            assert words in error.Get_error_string(), f"{words!r} is not in {error.Get_error_string()!r}"
            return
        raise AssertionError(f"{call} {arguments} was not refused")

    one = np.zeros(1)
    refused(MPI.ERR_ROOT, f"the root is {RANKS}; it may be 0 to {RANKS - 1}", WORLD.Bcast, one, RANKS)
    refused(MPI.ERR_RANK, f"the destination is {RANKS}", WORLD.Send, one, RANKS, 0)
    refused(MPI.ERR_TAG, "the tag is -5", WORLD.Send, one, 0, -5)
    refused(MPI.ERR_OP, "not defined for this type", WORLD.Allreduce, one, one.copy(), MPI.BXOR)
    refused(MPI.ERR_UNSUPPORTED_OPERATION, "does not have it", MPI.Win.Create, one)
    # Messages that do not fit are not written, on any rank: all are wrong alike.
    four, sixteen, memory = np.zeros(4, "u1"), np.zeros(16, "u1"), np.full(16 * RANKS, 7, "u1")
    room = [memory, 4, MPI.BYTE]
    for call in (WORLD.Allgather, WORLD.Alltoall):
        refused(MPI.ERR_TRUNCATE, "16 bytes goes into a buffer of 4", call, [sixteen, 16, MPI.BYTE], room)
    some = [memory, [4] * RANKS, [4 * r for r in range(RANKS)], MPI.BYTE]
    many = [np.zeros(16 * RANKS, "u1"), [16] * RANKS, [0] * RANKS, MPI.BYTE]
    refused(MPI.ERR_TRUNCATE, "16 bytes goes into a buffer of 4", WORLD.Allgatherv, sixteen, some)
    refused(MPI.ERR_TRUNCATE, "16 bytes goes into a buffer of 4", WORLD.Alltoallv, many, some)
    alone = MPI.COMM_SELF
    for call in (alone.Gather, alone.Gatherv, alone.Scatter):
        refused(MPI.ERR_TRUNCATE, "16 bytes goes into a buffer of 4", call, [sixteen, 16, MPI.BYTE], room)
    refused(MPI.ERR_TRUNCATE, "16 bytes goes into a buffer of 4", alone.Scatterv, [sixteen, [16], [0], MPI.BYTE], room)
    refused(MPI.ERR_COUNT, "4 bytes goes into a buffer of 16", WORLD.Allgather, four, [memory, 16, MPI.BYTE])
    check("memory of calls that were refused", memory, np.full_like(memory, 7))
    large = MPI.INT.Create_contiguous(2**31 - 1)
    larger = large.Create_contiguous(2**20)
    refused(MPI.ERR_COUNT, "more memory than a process can have", larger.Create_contiguous, 2**31 - 1)
    # A failed call does not consume the message of the next one either.
    refused_buffer, got, to, from_ = np.zeros(1), np.zeros(1), (RANK + 1) % RANKS, (RANK - 1) % RANKS
    refused(MPI.ERR_RANK, f"the destination is {RANKS}", WORLD.Sendrecv, one, RANKS, 8, refused_buffer)
    WORLD.Sendrecv(np.full(1, RANK + 1.0), to, 8, got, from_, 8)
    check("the buffer of a Sendrecv that was refused", refused_buffer, np.zeros(1))
    check("Sendrecv after one that was refused", got, np.full(1, from_ + 1.0))
    check("afterwards", WORLD.allreduce(1), RANKS)


def main():
    for part in (reductions, extremes, programs_operators, movement, layouts, messages, communicators, errors):
        if len(sys.argv) == 1 or part.__name__ in sys.argv[1:]:
            part()
    print(f"rank {RANK} of {RANKS}: {checked} results are right, by {MPI.Get_library_version()}", flush=True)


main()
