# SPDX-License-Identifier: Apache-2.0
"""One rank whose kernels and calls are on several streams: a call sees what was queued before it, and all that
comes after it sees its results.

usage: streams.py     with torchrun's variables
"""

import railhead
import torch
import torch.distributed as dist

LONG = 200_000_000  # cycles of a GPU: 0.1 s
COUNT = 1 << 20


def late(stream, value):
    """A tensor that has its value long after this returns."""
    with torch.cuda.stream(stream):
        tensor = torch.zeros(COUNT, device="cuda")
        torch.cuda._sleep(LONG)
        tensor.fill_(value)
    return tensor


def of_torch(rank, size):
    total = sum(range(1, size + 1))
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    # In the caller's thread, and in that of the group.
    for asynchronous in (False, True):
        tensor = late(stream, rank + 1.0)
        assert not stream.query(), "the kernel was over too early to show anything"
        with torch.cuda.stream(stream):
            work = dist.all_reduce(tensor, async_op=asynchronous)
        if asynchronous:
            work.wait()
        with torch.cuda.stream(other):
            assert (tensor == total).all(), (asynchronous, tensor[:4])
    # Results that are copied to where they belong after the call.
    tensor = late(stream, rank + 1.0)
    with torch.cuda.stream(stream):
        parts = [torch.zeros(COUNT, device="cuda") for _ in range(size)]
        dist.all_gather(parts, tensor, async_op=True).wait()
    with torch.cuda.stream(other):
        assert all((part == number + 1).all() for number, part in enumerate(parts)), parts
    # What callbacks make, on streams of their own.
    tensor = late(stream, rank + 1.0)
    with torch.cuda.stream(stream):
        future = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
        assert (future.wait() == 2 * total).all()
    # Calls on two streams, one after the other.
    one, two = late(stream, 1.0), late(other, 2.0)
    works = []
    for tensor, on in ((one, stream), (two, other)):
        with torch.cuda.stream(on):
            works.append(dist.all_reduce(tensor, async_op=True))
    for work in works:
        work.wait()
    assert (one == size).all() and (two == 2 * size).all()
    # Tensors that Python lets go of before the call is done.
    for _ in range(20):
        work = dist.all_reduce(torch.full((COUNT,), 3.0, device="cuda"), async_op=True)
        torch.full((COUNT,), 7.0, device="cuda")  # takes their place if they are freed too early
    work.wait()
    assert (work.result()[0] == 3 * size).all()
    mixed = dist.group.WORLD._get_backend(torch.device("cuda"))
    mixed._start_coalescing()
    mixed.allreduce([torch.ones(3)])
    try:
        mixed.allreduce([torch.ones(3, device="cuda")])
        raise AssertionError("a group of tensors on two devices is not refused")
    except TypeError as error:
        assert "those of earlier calls of the group on cpu" in str(error), error
    mixed._end_coalescing().wait()


def of_arrays(rank, size):
    """Communicators on arrays of torch, CuPy and JAX that are on the GPU."""
    total = sum(range(1, size + 1))
    stream = torch.cuda.Stream()
    with railhead.Communicator(exchanged_id(rank), size, rank) as comm:
        tensor = late(stream, rank + 1.0)
        with torch.cuda.stream(stream):
            comm.all_reduce(tensor)
        assert (tensor == total).all()
        if cupy := optional("cupy"):
            array = cupy.full(COUNT, rank + 1.0, cupy.float32)
            comm.all_reduce(array)
            assert (array == total).all()
        if jax := optional("jax"):
            array = jax.numpy.full(COUNT, rank + 1.0)
            out = torch.empty(COUNT, device="cuda")
            comm.all_reduce(array, out)
            assert (out == total).all()
            try:
                comm.all_reduce(array)
                raise AssertionError("an array of JAX was changed")
            except ValueError as error:
                assert "read-only" in str(error), error
        comm.barrier()
    return [name for name in ("torch", "cupy", "jax") if optional(name)]


def exchanged_id(rank):
    box = [railhead.unique_id() if rank == 0 else None]
    dist.broadcast_object_list(box, 0)
    return box[0]


def optional(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def main():
    dist.init_process_group("railhead")
    rank, size = dist.get_rank(), dist.get_world_size()
    of_torch(rank, size)
    libraries = of_arrays(rank, size)
    if rank == 0:
        print(f"torch {torch.__version__}, {size} ranks: streams are in order; arrays of {', '.join(libraries)}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
