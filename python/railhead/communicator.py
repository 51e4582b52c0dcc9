# SPDX-License-Identifier: Apache-2.0
"""Communicators and their collectives."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import threading
import warnings
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Type

from . import _api
from ._api import DataType, RedOp
from ._counts import Parts
from ._library import check, error, last_error, library
from ._memory import BOOL, COMPLEX, OPAQUE, Memory, memory
from .errors import CLASSES, Error, InvalidUsageError

SUM, PROD, MAX, MIN = RedOp.SUM, RedOp.PROD, RedOp.MAX, RedOp.MIN
AVG, BAND, BOR, BXOR = RedOp.AVG, RedOp.BAND, RedOp.BOR, RedOp.BXOR

# Bools are bytes of 0 or 1. The operator that computes each reduction of bools:
_OF_BOOL = {SUM: MAX, MAX: MAX, BOR: MAX, PROD: MIN, MIN: MIN, BAND: MIN, BXOR: BXOR}
_UNSET = -(2**31)


@dataclass(frozen=True)
class Config:
    """Options of one communicator. None takes the value of the environment variable named beside the field.

    All ranks must set equal values, except for metrics, socket_ifname and secret_file.
    """

    timeout_seconds: Optional[int] = None  # RAILHEAD_TIMEOUT_SECONDS: how long a collective may make no progress
    start_timeout_seconds: Optional[int] = None  # RAILHEAD_START_TIMEOUT_SECONDS: how long ranks wait at the start
    metrics: Optional[bool] = None  # False: the metrics page (RAILHEAD_METRICS_PORT) leaves it out
    name: Optional[str] = None  # up to 64 bytes: part of messages, and the label `comm` of metrics
    transport: Optional[str] = None  # RAILHEAD_TRANSPORT
    fallback: Optional[str] = None  # RAILHEAD_FALLBACK
    rails: Optional[str] = None  # RAILHEAD_RAILS, as "0,2" or "0-3"
    socket_ifname: Optional[str] = None  # RAILHEAD_SOCKET_IFNAME
    secret_file: Optional[str] = None  # RAILHEAD_SECRET_FILE

    def __post_init__(self) -> None:
        self._as_parameter()  # raises for a value that C cannot hold

    def _as_parameter(self) -> Any:
        def number(value: Optional[int]) -> int:
            return _UNSET if value is None else value

        return ctypes.byref(_api.Config(
            ctypes.sizeof(_api.Config), _api.CONFIG_MAGIC, _api.VERSION_CODE, _UNSET, number(self.timeout_seconds),
            number(self.start_timeout_seconds), number(self.metrics), self.name, self.transport, self.fallback,
            self.rails, self.socket_ifname, self.secret_file))


@dataclass(frozen=True)
class Info:
    """Transport and state of a communicator."""

    transport: str  # "shm", "verbs" or "tcp"
    rails: int
    degraded: bool  # the job got less than it requested
    degraded_reason: str
    rejected_connections: int  # on rank 0: connections that the rendezvous rejected
    unused_memory_reason: str  # why ranks of one pod do not use shared memory; "" if they do


@dataclass(frozen=True)
class Rail:
    """One rail, with the payload bytes that it has carried since the communicator was created."""

    rail: int
    device: str  # HCA, network interface, or "memory"
    port: int  # port of the HCA; 0 for TCP
    transport: str
    up: bool
    tx_bytes: int
    rx_bytes: int
    retransmits: int
    leaves_by: str  # another network interface by which a TCP rail's bytes leave; "" if it is `device`


def unique_id() -> bytes:
    """Creates the id of a new group: 128 bytes, to be sent to all ranks by any means.

    Call it once, in the process that will be rank 0; that process listens from then on. Every process that has the
    id can join the group: send it over a channel that only the ranks can read.
    """
    made = _api.UniqueId()
    check(library().rhGetUniqueId(ctypes.byref(made)))
    return bytes(made)


def _id(value: bytes) -> _api.UniqueId:
    if len(value) != _api.UNIQUE_ID_BYTES:
        raise ValueError(f"a unique id has {_api.UNIQUE_ID_BYTES} bytes, not {len(value)}")
    return _api.UniqueId.from_buffer_copy(value)


class _Noted(threading.local):
    """Calls of this thread since the outermost group began. Keeps communicators and memory alive until its end."""

    depth = 0
    calls: List[Tuple["Communicator", Tuple[Optional[Memory], ...]]]


_noted = _Noted()


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Runs the calls of its body together when the body ends: first collectives in order, then all sends and
    receives at the same time. Sends and receives that depend on each other must be in one group.

        with railhead.group():
            comm.send(right, (comm.rank + 1) % comm.size)
            comm.recv(left, (comm.rank - 1) % comm.size)

    Groups may be nested; the outermost one runs all calls. Calls that the body made run even if it raises.
    A group affects the calls of this thread only.
    """
    check(library().rhGroupStart())
    if _noted.depth == 0:
        _noted.calls = []
    _noted.depth += 1
    try:
        yield
    finally:
        result = library().rhGroupEnd()
        _noted.depth -= 1
        if _noted.depth == 0:
            calls, _noted.calls = _noted.calls, []
            try:
                if result != _api.Result.SUCCESS:
                    texts = [text for comm in dict.fromkeys(comm for comm, _ in calls) for text in
                             [comm._last_error()] if text]  # pylint: disable=protected-access
                    raise CLASSES.get(result, Error)("; ".join(texts) or last_error())
            finally:
                for comm, _ in calls:
                    comm._leave()  # pylint: disable=protected-access


def _needs(what: str, held: Memory, count: int) -> None:
    if held.count != count:
        raise ValueError(f"{what} has {held.count} elements, and must have {count}")


def _fits(what: str, held: Memory, parts: Parts) -> None:
    if held.count < parts.end:
        raise ValueError(f"{what} has {held.count} elements, and parts up to element {parts.end}")


def _color(color: Optional[Any]) -> int:
    if color is None:
        return _api.SPLIT_NOCOLOR
    number = operator.index(color)
    if not 0 <= number < 2**31:
        raise ValueError(f"the color {number} is out of range; it must be 0 to 2**31-1: pass it modulo 2**31 (for a "
                         "text, zlib.crc32(text.encode()) % 2**31, since hash() of a text differs between processes)")
    return number


def _writable(what: str, held: Memory) -> Memory:
    if held.readonly:
        raise ValueError(f"{what} is read-only: pass an array that may be written to, such as numpy.empty_like(...)")
    return held


def _same_type(send: Memory, recv: Memory) -> None:
    if send.name != recv.name or send.itemsize != recv.itemsize:
        raise TypeError(f"send has elements of type {send.name}, and recv of type {recv.name}")


def _moved(held: Memory) -> Tuple[int, int]:
    """Returns (type, its count per element) for a call that does no arithmetic."""
    if held.datatype is None:
        return DataType.UINT8, held.itemsize
    return held.datatype, 2 if held.kind == COMPLEX else 1


def _reduced(held: Memory, op: int) -> Tuple[int, int, int]:
    """Returns (type, its count per element, operator) for a reduction."""
    op = RedOp(op)
    if held.kind == OPAQUE or held.datatype is None:
        raise TypeError(f"there is no arithmetic for elements of type {held.name}; if they are of another type, say "
                        "so: railhead.memory(array).cast('bfloat16')")
    if held.kind == BOOL:
        if op not in _OF_BOOL:
            raise TypeError(f"there is no {op.name} of truth values")
        return held.datatype, 1, _OF_BOOL[op]
    if held.kind == COMPLEX:
        if op not in (SUM, AVG):
            raise TypeError(f"there is no {op.name} of complex numbers, only SUM and AVG")
        return held.datatype, 2, op
    return held.datatype, 1, op


class Communicator:
    """A group of ranks, and this process's rank in it. A process has one rank of a communicator.

    All ranks must call the same collectives in the same order, with the same element counts, types, operators
    and roots. A call returns when it is done; other Python threads run during the call.

    Ownership: the caller owns all arrays. A context manager destroys the communicator at its end, or aborts it on
    all ranks if the body raised.

    Threads: one thread at a time may use a communicator (a second call raises InvalidUsageError). Any thread may use
    abort(), error() and the properties. After fork() only the parent may use it.

    Errors: see railhead.Error. ValueError and TypeError report invalid arguments; the call then has no effect.
    """

    def __init__(self, unique_id: bytes, size: int, rank: int, config: Optional[Config] = None) -> None:
        """Joins the group of `size` ranks as `rank` (0 to size-1, each once). Waits for all ranks."""
        parameter = config._as_parameter() if config is not None else None
        identity = _id(unique_id)
        self._make(None, lambda out: library().rhCommInitRankConfig(out, size, identity, rank, parameter))

    def _make(self, parent: Optional[int], call: Callable[[Any], int]) -> bool:
        """Initializes this object with `call`, which writes a handle. Returns False if the handle is NULL."""
        self._lock = threading.Lock()
        self._users = 0
        self._ending = False
        self._handle: Optional[int] = None
        self._pid = os.getpid()
        handle = ctypes.c_void_p()
        check(call(ctypes.byref(handle)), parent)
        self._handle = handle.value
        if handle.value is None:
            return False
        count, rank = ctypes.c_int(), ctypes.c_int()
        check(library().rhCommCount(handle, ctypes.byref(count)), handle)
        check(library().rhCommUserRank(handle, ctypes.byref(rank)), handle)
        self._size, self._rank = count.value, rank.value
        return True

    @classmethod
    def from_environment(cls) -> "Communicator":
        """Joins the group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe. Waits for all ranks."""
        comm = cls.__new__(cls)
        comm._make(None, lambda out: library().rhCommInitFromEnv(out))
        return comm

    @classmethod
    def join(cls, unique_id: bytes, size: int, rank: int, config: Optional[Config] = None) -> "Communicator":
        """Joins a group whose ranks call grow(). `rank` is at least the old size of the group."""
        parameter = config._as_parameter() if config is not None else None
        identity = _id(unique_id)
        comm = cls.__new__(cls)
        comm._make(None, lambda out: library().rhCommGrow(None, size, identity, rank, out, parameter))
        return comm

    # Properties and state.

    @property
    def rank(self) -> int:
        """This process's rank, 0 to size-1."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def info(self) -> Info:
        """Its transport and state."""
        info = _api.CommInfo(struct_size=ctypes.sizeof(_api.CommInfo))
        self._do(lambda handle: library().rhCommGetInfo(handle, ctypes.byref(info)))
        return Info(info.transport.decode(), info.rails, bool(info.degraded),
                    info.degraded_reason.decode("utf-8", "replace"), info.rejected_connections,
                    info.unused_memory_reason.decode("utf-8", "replace"))

    @property
    def rails(self) -> List[Rail]:
        """Its rails, with the bytes that they have carried until now."""
        rails = []
        for index in range(self.info.rails):
            rail = _api.RailInfo(struct_size=ctypes.sizeof(_api.RailInfo))
            self._do(lambda handle, index=index, rail=rail:  # type: ignore[misc]
                     library().rhCommRailInfo(handle, index, ctypes.byref(rail)))
            rails.append(Rail(rail.rail, rail.device.decode(), rail.port, rail.transport.decode(), bool(rail.up),
                              rail.tx_bytes, rail.rx_bytes, rail.retransmits, rail.leaves_by.decode()))
        return rails

    def error(self) -> Optional[Error]:
        """Returns the failure of the communicator on any rank, or None. Does not wait."""
        handle = self._enter()
        try:
            state = ctypes.c_int()
            check(library().rhCommGetAsyncError(handle, ctypes.byref(state)), handle)
            return error(state.value, handle) if state.value in CLASSES else None
        finally:
            self._leave()

    def explain(self, collective: str, nbytes: int) -> str:
        """Explains in a few lines the choice of algorithm for a collective ("all_reduce", ...) of `nbytes`."""
        text = ctypes.create_string_buffer(16384)
        self._do(lambda handle: library().rhCommExplain(handle, collective, nbytes, text, len(text)))
        return text.value.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<railhead.Communicator rank {self._rank} of {self._size}{', ended' if self._handle is None else ''}>"

    # Derived communicators, and the end.

    def split(self, color: Optional[int], key: int = 0, config: Optional[Config] = None) -> Optional["Communicator"]:
        """Creates a communicator of the ranks that pass the same color, ordered by key, then by rank.

        Call it on all ranks. A color is 0 to 2**31-1: reduce hashes modulo 2**31. A rank that passes None joins no
        group and gets None. Does not change this communicator.
        """
        number = _color(color)
        return self._derive(lambda handle, out, parameter: library().rhCommSplit(handle, number, key, out, parameter),
                            config)

    def shrink(self, exclude: Sequence[int], config: Optional[Config] = None) -> "Communicator":
        """Creates a communicator without the ranks in `exclude`. This one may have failed.

        Call it on all remaining ranks with the same list. Abort or destroy this communicator afterwards.
        """
        ranks = list(exclude)
        made = self._derive(lambda handle, out, parameter: library().rhCommShrink(
            handle, ranks, len(ranks), out, parameter), config)
        assert made is not None
        return made

    def grow(self, unique_id: bytes, size: int, config: Optional[Config] = None) -> "Communicator":
        """Creates a communicator of these ranks and new ones (join()), `size` in total. Ranks keep their numbers."""
        identity = _id(unique_id)
        made = self._derive(lambda handle, out, parameter: library().rhCommGrow(
            handle, size, identity, -1, out, parameter), config)
        assert made is not None
        return made

    def _derive(self, call: Callable[[int, Any, Any], int], config: Optional[Config]) -> Optional["Communicator"]:
        parameter = config._as_parameter() if config is not None else None
        made = type(self).__new__(type(self))
        handle = self._enter()
        try:
            return made if made._make(handle, lambda out: call(handle, out, parameter)) else None
        finally:
            self._leave()

    def finalize(self) -> None:
        """Waits until all ranks have called it and all sent data has arrived. Then only destroy() is allowed."""
        self._do(lambda handle: library().rhCommFinalize(handle))

    def destroy(self) -> None:
        """Leaves the group and frees the communicator. Call it on all ranks; a second call does nothing.

        Waits up to 0.1 s for the other ranks. Raises InvalidUsageError while another thread uses the communicator.
        """
        with self._lock:
            if self._handle is None or self._ending:
                return
            if self._users > 0:
                raise InvalidUsageError("destroy: a call of this communicator is running; wait for it, or use abort()")
            handle, self._handle = self._handle, None
        if os.getpid() == self._pid:
            check(library().rhCommDestroy(handle))

    def abort(self) -> None:
        """Aborts the communicator on all ranks: calls of other threads raise. Any thread may call it.

        A second call does nothing, nor does one in a process that was forked after the start.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._handle is None or self._ending:
                return
            self._ending = True
            self._users += 1
            handle = self._handle
        try:
            check(library().rhCommRevoke(handle, 0), handle)
        finally:
            self._leave()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if kind is None:
            self.destroy()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None or os.getpid() != self._pid:
            return
        warnings.warn(f"{self!r} was not destroyed", ResourceWarning, source=self)
        with contextlib.suppress(Exception):
            self.destroy()

    # Every call counts as a user of the handle. After abort(), the last user to leave frees it.

    def _enter(self) -> int:
        with self._lock:
            if self._handle is None or self._ending:
                raise InvalidUsageError("the communicator was destroyed or aborted")
            self._users += 1
            return self._handle

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users > 0 or not self._ending or self._handle is None:
                return
            handle, self._handle = self._handle, None
        library().rhCommAbort(handle)

    def _last_error(self) -> str:
        with self._lock:
            return last_error(self._handle) if self._handle is not None else ""

    def _do(self, call: Callable[[int], int]) -> None:
        """Runs a call that a group does not defer."""
        handle = self._enter()
        try:
            check(call(handle), handle)
        finally:
            self._leave()

    def _collective(self, call: Callable[[int], int], *held: Optional[Memory]) -> None:
        """Runs a call that a group defers; the communicator and the memory are then kept until the group ends."""
        handle = self._enter()
        noted = False
        try:
            check(call(handle), handle)
            if _noted.depth > 0:
                _noted.calls.append((self, held))
                noted = True
        finally:
            if not noted:
                self._leave()

    # Collectives.

    def all_reduce(self, send: Any, recv: Any = None, op: int = SUM) -> None:
        """recv[i] becomes the reduction over all ranks of send[i], with identical bits on all ranks.

        Both have the same number and type of elements. Without recv, the call is in place.
        """
        source = memory(send)
        target = _writable("recv" if recv is not None else "send", memory(recv) if recv is not None else source)
        _same_type(source, target)
        _needs("recv", target, source.count)
        kind, each, op = _reduced(source, op)
        self._collective(lambda handle: library().rhAllReduce(
            source.address, target.address, source.count * each, kind, op, handle, None), source, target)

    def reduce(self, send: Any, recv: Any = None, op: int = SUM, root: int = 0) -> None:
        """On rank root, recv[i] becomes the reduction over all ranks of send[i]; other ranks do not use recv.

        Without recv, the root receives the result in send.
        """
        source = memory(send)
        target = memory(recv) if recv is not None else source
        if self._rank == root:
            _writable("recv" if recv is not None else "send", target)
            _same_type(source, target)
            _needs("recv", target, source.count)
        kind, each, op = _reduced(source, op)
        self._collective(lambda handle: library().rhReduce(
            source.address, target.address if self._rank == root else None, source.count * each, kind, op, root,
            handle, None), source, target)

    def broadcast(self, array: Any, root: int = 0) -> None:
        """The array of every rank becomes that of rank root."""
        held = memory(array)
        if self._rank != root:
            _writable("the array", held)
        kind, each = _moved(held)
        self._collective(lambda handle: library().rhBroadcast(
            held.address, held.address, held.count * each, kind, root, handle, None), held)

    def all_gather(self, send: Any, recv: Any) -> None:
        """recv[r * n + i] becomes send[i] of rank r, for the n elements of send.

        If send is None, this rank sends its part of recv.
        """
        target = _writable("recv", memory(recv))
        source = self._own_part(target) if send is None else memory(send)
        _same_type(source, target)
        _needs("recv", target, source.count * self._size)
        kind, each = _moved(source)
        self._collective(lambda handle: library().rhAllGather(
            source.address, target.address, source.count * each, kind, handle, None), source, target)

    def all_gatherv(self, send: Any, recv: Any, counts: Sequence[int],
                    displacements: Optional[Sequence[int]] = None) -> None:
        """recv[displacements[r] + i] becomes send[i] of rank r, for i below counts[r].

        Counts and displacements are in elements and equal on all ranks. Without displacements, parts are adjacent.
        """
        target, source = _writable("recv", memory(recv)), memory(send)
        _same_type(source, target)
        kind, each = _moved(source)
        parts = Parts("", counts, displacements, self._size)
        _needs("send", source, parts.counts[self._rank])
        _fits("recv", target, parts)
        self._collective(lambda handle: library().rhAllGatherv(
            source.address, target.address, parts.sizes(each), parts.begins(each), kind, handle, None), source, target)

    def reduce_scatter(self, send: Any, recv: Any, op: int = SUM) -> None:
        """recv[i] becomes the reduction over all ranks of send[rank * n + i], for the n elements of recv.

        If recv is None, this rank's part of send receives the result.
        """
        source = memory(send)
        target = self._own_part(_writable("send", source)) if recv is None else _writable("recv", memory(recv))
        _same_type(source, target)
        _needs("send", source, target.count * self._size)
        kind, each, op = _reduced(source, op)
        self._collective(lambda handle: library().rhReduceScatter(
            source.address, target.address, target.count * each, kind, op, handle, None), source, target)

    def reduce_scatterv(self, send: Any, recv: Any, counts: Sequence[int], op: int = SUM) -> None:
        """reduce_scatter with adjacent parts of different sizes: rank r gets counts[r] elements."""
        source, target = memory(send), _writable("recv", memory(recv))
        _same_type(source, target)
        kind, each, op = _reduced(source, op)
        parts = Parts("", counts, None, self._size)
        _needs("send", source, parts.end)
        _needs("recv", target, parts.counts[self._rank])
        self._collective(lambda handle: library().rhReduceScatterv(
            source.address, target.address, parts.sizes(each), kind, op, handle, None), source, target)

    def all_to_all(self, send: Any, recv: Any) -> None:
        """recv[r * n + i] becomes send[rank * n + i] of rank r. Both have n elements for each rank."""
        source, target = memory(send), _writable("recv", memory(recv))
        _same_type(source, target)
        _needs("recv", target, source.count)
        if source.count % self._size != 0:
            raise ValueError(f"send has {source.count} elements, and must have the same number for each of "
                             f"{self._size} ranks")
        kind, each = _moved(source)
        self._collective(lambda handle: library().rhAlltoAll(
            source.address, target.address, source.count // self._size * each, kind, handle, None), source, target)

    def all_to_allv(self, send: Any, send_counts: Sequence[int], recv: Any, recv_counts: Sequence[int],
                    send_displacements: Optional[Sequence[int]] = None,
                    recv_displacements: Optional[Sequence[int]] = None) -> None:
        """send_counts[r] elements from send[send_displacements[r]] go to rank r; recv_counts[r] elements from rank r
        go to recv[recv_displacements[r]].

        Each count that a rank sends must equal the count that the other expects. Without displacements, parts are
        adjacent.
        """
        source, target = memory(send), _writable("recv", memory(recv))
        _same_type(source, target)
        kind, each = _moved(source)
        sent = Parts("send_", send_counts, send_displacements, self._size)
        received = Parts("recv_", recv_counts, recv_displacements, self._size)
        _fits("send", source, sent)
        _fits("recv", target, received)
        self._collective(lambda handle: library().rhAlltoAllv(
            source.address, sent.sizes(each), sent.begins(each), target.address, received.sizes(each),
            received.begins(each), kind, handle, None), source, target)

    def gather(self, send: Any, recv: Any = None, root: int = 0) -> None:
        """On rank root, recv[r * n + i] becomes send[i] of rank r; other ranks do not use recv."""
        source = memory(send)
        target = None
        if self._rank == root:
            target = _writable("recv", memory(recv))
            _same_type(source, target)
            _needs("recv", target, source.count * self._size)
        kind, each = _moved(source)
        self._collective(lambda handle: library().rhGather(
            source.address, target.address if target is not None else None, source.count * each, kind, root, handle,
            None), source, target)

    def scatter(self, send: Any, recv: Any, root: int = 0) -> None:
        """recv[i] becomes send[rank * n + i] of rank root, for the n elements of recv. Only the root uses send."""
        target = _writable("recv", memory(recv))
        source = None
        if self._rank == root:
            source = memory(send)
            _same_type(source, target)
            _needs("send", source, target.count * self._size)
        kind, each = _moved(target)
        self._collective(lambda handle: library().rhScatter(
            source.address if source is not None else None, target.address, target.count * each, kind, root, handle,
            None), source, target)

    def send(self, array: Any, peer: int) -> None:
        """Sends the array to rank peer. The n-th send() to a peer matches the peer's n-th recv() from this rank.

        Returns when the array may be written to again, which may be before the peer has called recv().
        """
        held = memory(array)
        kind, each = _moved(held)
        self._collective(lambda handle: library().rhSend(
            held.address, held.count * each, kind, peer, handle, None), held)

    def recv(self, array: Any, peer: int) -> None:
        """Receives from rank peer into the array. Both must have the same number and type of elements."""
        held = _writable("the array", memory(array))
        kind, each = _moved(held)
        self._collective(lambda handle: library().rhRecv(
            held.address, held.count * each, kind, peer, handle, None), held)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._collective(lambda handle: library().rhBarrier(handle, None))

    def _own_part(self, held: Memory) -> Memory:
        """Returns this rank's part of an array that has one part for each rank."""
        if held.count % self._size != 0:
            raise ValueError(f"the array has {held.count} elements, and must have the same number for each of "
                             f"{self._size} ranks")
        count = held.count // self._size
        return Memory(held.address + self._rank * count * held.itemsize, count, held.itemsize, held.name,
                      held.readonly, held)


def init() -> Communicator:
    """Joins the job's group: Communicator.from_environment()."""
    return Communicator.from_environment()
