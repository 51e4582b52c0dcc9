# SPDX-License-Identifier: Apache-2.0
"""One rank that does every collective from and to every kind of memory, and compares with NumPy's results.

usage: memory.py     with RANK, WORLD_SIZE, MASTER_ADDR; rank 0 prints how many calls were right
"""

import ctypes
import os

import numpy as np
import railhead
from driver import Driver
from railhead import _library

FLOAT = np.dtype(np.float32)
COUNTS = (1, 37, 70001)
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def values(rank, count, seed=0):
    return np.random.default_rng(100 * seed + rank).integers(0, 9, count).astype(FLOAT)


class Buffer:
    """Floats in memory of some kind; more lies around them, which must stay as it is."""

    GUARD = 64  # bytes
    FILL = b"\xa5"

    def __init__(self, driver, address, count):
        self._driver, self._address, self.bytes = driver, address, count * 4
        driver.write(address, self.FILL * (self.bytes + 2 * self.GUARD))

    @staticmethod
    def size(count):
        return count * 4 + 2 * Buffer.GUARD

    def memory(self):
        return railhead.Memory(self._address + self.GUARD, self.bytes // 4, 4, "float32", False, self)

    def set(self, floats):
        self._driver.write(self._address + self.GUARD, floats.tobytes())

    def get(self):
        data = self._driver.read(self._address, self.bytes + 2 * self.GUARD)
        edges = data[:self.GUARD] + data[-self.GUARD:]
        assert edges == self.FILL * (2 * self.GUARD), "what lies beside the buffer was written to"
        return np.frombuffer(data[self.GUARD:-self.GUARD], FLOAT)


def collectives(count):
    """{name: (elements sent, elements received, the call, what is expected)}."""
    every = [values(rank, count) for rank in range(SIZE)]
    wide = [values(rank, count * SIZE) for rank in range(SIZE)]
    part = slice(RANK * count, (RANK + 1) * count)
    counts = [count + rank for rank in range(SIZE)]
    left, right = (RANK - 1) % SIZE, (RANK + 1) % SIZE

    def ring(comm, send, receive):
        with railhead.group():
            comm.send(send, right)
            comm.recv(receive, left)

    def broadcast(comm, send, receive):
        comm.broadcast(send, root=SIZE - 1)
        comm.all_reduce(send, receive, railhead.MAX)  # the same on all: receive has it too

    last = SIZE - 1
    return {
        "all_reduce": (every[RANK], count, lambda c, s, r: c.all_reduce(s, r), sum(every)),
        "reduce": (every[RANK], count, lambda c, s, r: c.reduce(s, r, root=last), sum(every) if RANK == last else None),
        "all_gather": (every[RANK], count * SIZE, lambda c, s, r: c.all_gather(s, r), np.concatenate(every)),
        "reduce_scatter": (wide[RANK], count, lambda c, s, r: c.reduce_scatter(s, r), sum(wide)[part]),
        "all_to_all": (wide[RANK], count * SIZE, lambda c, s, r: c.all_to_all(s, r),
                       np.concatenate([one[part] for one in wide])),
        "gather": (every[RANK], count * SIZE, lambda c, s, r: c.gather(s, r if RANK == last else None, root=last),
                   np.concatenate(every) if RANK == last else None),
        "scatter": (wide[RANK], count, lambda c, s, r: c.scatter(s if RANK == 0 else None, r, root=0), wide[0][part]),
        "broadcast": (every[RANK], count, broadcast, every[last]),
        "all_gatherv": (values(RANK, counts[RANK]), sum(counts), lambda c, s, r: c.all_gatherv(s, r, counts),
                        np.concatenate([values(rank, counts[rank]) for rank in range(SIZE)])),
        "ring": (every[RANK], count, ring, every[left]),
    }


def play(comm, driver, kinds, counts):
    """The number of calls."""
    calls = 0
    for count in counts:
        for name, (data, received, call, want) in collectives(count).items():
            # All ranks have their memory in other kinds, and the same pairs by turns.
            for send_kind in range(len(kinds)):
                for receive_kind in range(len(kinds)):
                    send_name, make_send = kinds[(send_kind + RANK) % len(kinds)]
                    receive_name, make_receive = kinds[(receive_kind + 2 * RANK) % len(kinds)]
                    with make_send(Buffer.size(len(data))) as one, make_receive(Buffer.size(received)) as other:
                        send, receive = Buffer(driver, one, len(data)), Buffer(driver, other, received)
                        send.set(data)
                        call(comm, send.memory(), receive.memory())
                        got = receive.get()
                        send.get()
                    calls += 1
                    where = f"{name} of {count} from {send_name} to {receive_name}"
                    assert want is None or np.array_equal(got, want), f"{where}: {got[:4]}, not {want[:4]}"
        for kind_name, make in kinds:
            with make(Buffer.size(count)) as address:
                buffer = Buffer(driver, address, count)
                buffer.set(values(RANK, count))
                comm.all_reduce(buffer.memory())
                got = buffer.get()
            calls += 1
            assert np.array_equal(got, sum(values(rank, count) for rank in range(SIZE))), f"in place, {kind_name}"
    return calls


def registered(comm, driver, kinds):
    """rhCommRegister of each kind; twice; and after the memory at the address was freed and allocated again."""
    library = _library.library()
    for name, make in kinds:
        for _ in range(2):
            with make(Buffer.size(70001)) as address:
                handle = ctypes.c_void_p()
                result = library.rhCommRegister(comm._handle, ctypes.c_void_p(address), ctypes.c_size_t(
                    Buffer.size(70001)), ctypes.byref(handle))
                assert result == 0, f"rhCommRegister of {name}: {_library.last_error(comm._handle)}"
                buffer = Buffer(driver, address, 70001)
                buffer.set(values(RANK, 70001))
                comm.all_reduce(buffer.memory())
                assert np.array_equal(buffer.get(), sum(values(rank, 70001) for rank in range(SIZE))), name
                comm.broadcast(buffer.memory(), root=0)
                assert library.rhCommDeregister(comm._handle, handle) == 0


def of_another_process(comm, driver):
    """Memory that rank 0 has allocated and all others have opened (CUDA IPC)."""
    count = 1000
    with driver.allocated(1 << 20) as mine:
        handle = bytearray(driver.export(mine))
        comm.broadcast(handle, root=0)
        address = mine if RANK == 0 else driver.open(bytes(handle))
        place = railhead.Memory(address + 4096 * RANK, count, 4, "float32", False, None)
        driver.write(address + 4096 * RANK, values(RANK, count).tobytes())
        comm.all_reduce(place)
        got = np.frombuffer(driver.read(address + 4096 * RANK, 4 * count), FLOAT)
        assert np.array_equal(got, sum(values(rank, count) for rank in range(SIZE))), "memory of another process"
        comm.barrier()
        if RANK > 0:
            driver.close(address)
        comm.barrier()


def main():
    with railhead.init() as comm:
        # The driver comes later, as when a script loads torch after it.
        numbers = np.ones(5, FLOAT)
        comm.all_reduce(numbers)
        assert (numbers == SIZE).all()
        driver = Driver()
        kinds = list(driver.kinds().items())
        calls = play(comm, driver, kinds, COUNTS)
        calls += play(comm, driver, kinds[:2], (3_000_001,))
        registered(comm, driver, kinds)
        of_another_process(comm, driver)
        with driver.allocated(1 << 21) as address, driver.mapped(1 << 21) as other:
            dma_buf = f"dma-buf: {driver.has_dma_buf(address, 1 << 21)}, of mapped {driver.has_dma_buf(other, 1 << 21)}"
        if RANK == 0:
            print(f"{driver.name()}, {comm.info.transport}, {SIZE} ranks: {calls} calls right; {dma_buf}", flush=True)
        comm.barrier()


if __name__ == "__main__":
    main()
