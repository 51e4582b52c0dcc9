# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver by ctypes: each kind of memory that programs have, and copies to look at it.

Source of names, numbers and structs: NVIDIA's reference "CUDA Driver API", Memory Management, Virtual Memory
Management and Stream Ordered Memory Allocator.
"""

import contextlib
import ctypes
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_ushort, c_void_p

ATTACH_GLOBAL = 1
HOST_PORTABLE = 1
PINNED, ON_DEVICE, READ_WRITE = 1, 1, 3
DMA_BUF_SUPPORTED = 124
DMA_BUF = 1


class _Location(Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class _Properties(Structure):
    """CUmemAllocationProp."""

    _fields_ = [("type", c_int), ("handle_types", c_int), ("location", _Location), ("windows", c_void_p),
                ("compression", c_ubyte), ("rdma", c_ubyte), ("usage", c_ushort), ("reserved", c_ubyte * 4)]


class _Access(Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", c_int)]


class IpcHandle(Structure):
    """CUipcMemHandle."""

    _fields_ = [("bytes", c_ubyte * 64)]


class Driver:
    """libcuda.so.1, with the primary context of GPU 0 current in this thread."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        self.do("cuInit", c_uint(0))
        self.device = c_int()
        self.do("cuDeviceGet", byref(self.device), c_int(0))
        self.primary = c_void_p()
        self.do("cuDevicePrimaryCtxRetain", byref(self.primary), self.device)
        self.do("cuCtxSetCurrent", self.primary)
        self._other = c_void_p()
        self._plain = []  # addresses of which the driver does not know

    def call(self, name, *arguments):
        """Its CUresult."""
        return getattr(self._library, name)(*arguments)

    def do(self, name, *arguments):
        result = self.call(name, *arguments)
        assert result == 0, f"{name}: CUDA error {result}"

    def name(self):
        text = ctypes.create_string_buffer(100)
        self.do("cuDeviceGetName", text, c_int(100), self.device)
        version = c_int()
        self.do("cuDriverGetVersion", byref(version))
        return f"{text.value.decode()}, CUDA {version.value // 1000}.{version.value // 10 % 100}"

    def write(self, address, data):
        """Copies bytes to an address of any kind."""
        if any(address in memory for memory in self._plain):
            ctypes.memmove(address, data, len(data))
            return
        self.do("cuMemcpyHtoD_v2", c_uint64(address), data, c_size_t(len(data)))
        self.do("cuCtxSynchronize")

    def read(self, address, size):
        if any(address in memory for memory in self._plain):
            return ctypes.string_at(address, size)
        data = ctypes.create_string_buffer(size)
        self.do("cuMemcpyDtoH_v2", data, c_uint64(address), c_size_t(size))
        return data.raw

    def has_dma_buf(self, address, size):
        """What the driver says of an export for RDMA adapters: "yes", "no", or its error."""
        value = c_int()
        self.do("cuDeviceGetAttribute", byref(value), c_int(DMA_BUF_SUPPORTED), self.device)
        if not value.value:
            return "no"
        fd = c_int(-1)
        result = self.call("cuMemGetHandleForAddressRange", byref(fd), c_uint64(address), c_size_t(size),
                           c_int(DMA_BUF), c_uint64(0))
        return "yes" if result == 0 else f"CUDA error {result}"

    # -- kinds of memory: each is a context manager that gives an address -----------------------------

    @contextlib.contextmanager
    def allocated(self, size):
        address = c_uint64()
        self.do("cuMemAlloc_v2", byref(address), c_size_t(size))
        yield address.value
        self.do("cuMemFree_v2", address)

    @contextlib.contextmanager
    def managed(self, size):
        address = c_uint64()
        self.do("cuMemAllocManaged", byref(address), c_size_t(size), c_uint(ATTACH_GLOBAL))
        yield address.value
        self.do("cuMemFree_v2", address)

    @contextlib.contextmanager
    def pooled(self, size):
        """Of a stream's pool: cudaMallocAsync's."""
        address = c_uint64()
        self.do("cuMemAllocAsync", byref(address), c_size_t(size), c_void_p())
        self.do("cuStreamSynchronize", c_void_p())
        yield address.value
        self.do("cuMemFreeAsync", address, c_void_p())

    @contextlib.contextmanager
    def mapped(self, size):
        """Of cuMemMap: what torch's expandable segments are."""
        what = _Properties(type=PINNED, location=_Location(ON_DEVICE, self.device.value))
        unit = c_size_t()
        self.do("cuMemGetAllocationGranularity", byref(unit), byref(what), c_int(0))
        size = c_size_t(-(-size // unit.value) * unit.value)
        handle, address = c_uint64(), c_uint64()
        self.do("cuMemCreate", byref(handle), size, byref(what), c_uint64(0))
        self.do("cuMemAddressReserve", byref(address), size, c_size_t(0), c_uint64(0), c_uint64(0))
        self.do("cuMemMap", address, size, c_size_t(0), handle, c_uint64(0))
        access = _Access(_Location(ON_DEVICE, self.device.value), READ_WRITE)
        self.do("cuMemSetAccess", address, size, byref(access), c_size_t(1))
        yield address.value
        self.do("cuMemUnmap", address, size)
        self.do("cuMemAddressFree", address, size)
        self.do("cuMemRelease", handle)

    @contextlib.contextmanager
    def pinned(self, size):
        address = c_void_p()
        self.do("cuMemHostAlloc", byref(address), c_size_t(size), c_uint(HOST_PORTABLE))
        yield address.value
        self.do("cuMemFreeHost", address)

    @contextlib.contextmanager
    def of_other_context(self, size):
        """Of a context that is not the primary one, and not current when it is used."""
        address = c_uint64()
        with self._in_other_context():
            self.do("cuMemAlloc_v2", byref(address), c_size_t(size))
        yield address.value
        with self._in_other_context():
            self.do("cuMemFree_v2", address)

    @contextlib.contextmanager
    def _in_other_context(self):
        popped = c_void_p()
        if not self._other:
            self.do("cuCtxCreate_v2", byref(self._other), c_uint(0), self.device)
        else:
            self.do("cuCtxPushCurrent_v2", self._other)
        yield
        self.do("cuCtxPopCurrent_v2", byref(popped))

    @contextlib.contextmanager
    def host(self, size):
        memory = ctypes.create_string_buffer(size)
        addresses = range(ctypes.addressof(memory), ctypes.addressof(memory) + size)
        self._plain.append(addresses)
        yield addresses.start
        self._plain.remove(addresses)

    def kinds(self):
        return {"allocated": self.allocated, "managed": self.managed, "pooled": self.pooled, "mapped": self.mapped,
                "pinned": self.pinned, "of another context": self.of_other_context, "host": self.host}

    # -- memory of another process ----------------------------------------------------------------------

    def export(self, address):
        handle = IpcHandle()
        self.do("cuIpcGetMemHandle", byref(handle), c_uint64(address))
        return bytes(handle)

    def open(self, handle):
        address = c_uint64()
        function = self._library.cuIpcOpenMemHandle_v2
        function.argtypes = [POINTER(c_uint64), IpcHandle, c_uint]
        result = function(byref(address), IpcHandle.from_buffer_copy(handle), 1)
        assert result == 0, f"cuIpcOpenMemHandle: CUDA error {result}"
        return address.value

    def close(self, address):
        self.do("cuIpcCloseMemHandle", c_uint64(address))
