# SPDX-License-Identifier: Apache-2.0
"""Finds the address, count and type of an object's elements, without a copy.

Tries, in this order: `__array_interface__` (NumPy), DLPack (torch, JAX, MLX, TensorFlow) and the buffer protocol
(bytearray, array.array, memoryview). The elements must be contiguous in C order, in memory of the CPU or of a
CUDA device.
"""

from __future__ import annotations

import ctypes
import operator
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_ssize_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Optional, Tuple, Union

from ._api import DataType

SIZES = {DataType.INT8: 1, DataType.UINT8: 1, DataType.INT16: 2, DataType.UINT16: 2, DataType.INT32: 4,
         DataType.UINT32: 4, DataType.INT64: 8, DataType.UINT64: 8, DataType.FLOAT16: 2, DataType.FLOAT32: 4,
         DataType.FLOAT64: 8, DataType.BFLOAT16: 2, DataType.FLOAT8E4M3: 1, DataType.FLOAT8E5M2: 1}
# By the element type's name in other libraries: the type that the C API computes with, and a kind.
REAL, BOOL, COMPLEX, OPAQUE = "real", "bool", "complex", "opaque"
NAMES = {**{kind.name.lower(): (kind, REAL) for kind in DataType},
         "float8_e4m3fn": (DataType.FLOAT8E4M3, REAL), "float8_e5m2": (DataType.FLOAT8E5M2, REAL),
         "bool": (DataType.UINT8, BOOL),
         "complex64": (DataType.FLOAT32, COMPLEX), "complex128": (DataType.FLOAT64, COMPLEX)}
# By kind and size in bytes, as in NumPy's type strings.
CODES = {"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
         "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64",
         "c16": "complex128"}
# By DLPack's type code and bits.
DLPACK = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
          (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
          (4, 16): "bfloat16", (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool",
          (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}
# By a buffer's format without its byte order. Its item size distinguishes l and q.
FORMATS = {"?": "b", "b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u",
           "L": "u", "Q": "u", "N": "u", "c": "u", "e": "f", "f": "f", "d": "f", "Zf": "c", "Zd": "c"}
# Libraries whose arrays never change. Not all versions of DLPack can report that.
IMMUTABLE = ("jax", "jaxlib", "tensorflow")


class Memory:
    """The elements of an object, which it keeps alive. Every collective accepts one in place of an array.

    address: address of the first byte. count: number of elements. itemsize: size of an element in bytes.
    datatype: the element type in the C API; None if the C API has no arithmetic for it. kind: "real", "bool",
    "complex" (datatype is then that of the real part) or "opaque".
    """

    __slots__ = ("address", "count", "itemsize", "datatype", "kind", "readonly", "name", "_owner")

    def __init__(self, address: int, count: int, itemsize: int, name: str, readonly: bool, owner: Any) -> None:
        self.address = operator.index(address)
        self.count = operator.index(count)
        self.itemsize = operator.index(itemsize)
        self.name = name
        self.datatype, self.kind = NAMES.get(name, (None, OPAQUE))
        self.readonly = readonly
        self._owner = owner

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.count * self.itemsize

    def cast(self, datatype: Union[DataType, str]) -> "Memory":
        """Returns the same bytes as elements of another type. ValueError if nbytes is not a multiple of its size."""
        name = datatype.name.lower() if isinstance(datatype, DataType) else str(datatype)
        if name not in NAMES:
            raise ValueError(f"no data type '{name}'; there are: {', '.join(NAMES)}")
        kind, how = NAMES[name]
        size = SIZES[kind] * (2 if how == COMPLEX else 1)
        if self.nbytes % size != 0:
            raise ValueError(f"{self.nbytes} bytes are not a whole number of {name}s")
        return Memory(self.address, self.nbytes // size, size, name, self.readonly, self._owner)

    def __repr__(self) -> str:
        return f"Memory({self.count} x {self.name} at {self.address:#x}{', read-only' if self.readonly else ''})"


def _contiguous(what: Any, shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], unit: int) -> None:
    """Raises ValueError if the elements are not contiguous. `unit`: the stride between adjacent elements."""
    if strides is None or 0 in shape:
        return
    expected = unit
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            raise ValueError(f"the elements of this {type(what).__name__} do not follow each other in memory "
                             f"(shape {shape}, strides {strides}): pass a contiguous copy")
        expected *= size


def _product(shape: Tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _from_array_interface(what: Any, interface: Any) -> Memory:
    text = interface["typestr"]
    if text[1] == "O" or getattr(getattr(what, "dtype", None), "hasobject", False):
        raise TypeError("the elements are Python objects, whose addresses mean nothing to other ranks: send what "
                        "pickle.dumps() makes of them")
    order, code = text[0], text[1:]
    itemsize = int(code[1:].partition("[")[0]) * (4 if code[0] == "U" else 1)  # times: "M8[ns]"
    if order == ">" and itemsize > 1:
        raise ValueError(f"elements of type '{text}' have another byte order than this machine: convert them first")
    name = CODES.get(code)
    if name is None:  # a type of ml_dtypes, which NumPy reports as void
        name = str(getattr(getattr(what, "dtype", None), "name", None) or text)
    shape = tuple(map(operator.index, interface["shape"]))
    _contiguous(what, shape, interface.get("strides"), itemsize)
    data = interface.get("data")
    if data is None:
        raise ValueError(f"this {type(what).__name__} does not provide the address of its elements")
    if not isinstance(data, tuple):  # an object with the buffer protocol
        raw = _from_buffer(data)
        return Memory(raw.address + interface.get("offset", 0), _product(shape), itemsize, name, raw.readonly, (what, raw))
    address, readonly = data
    # A scalar's elements belong to a temporary array, which only the interface keeps alive: a copy, as for results.
    return Memory(address, _product(shape), itemsize, name, bool(readonly) or not hasattr(what, "__setitem__"),
                  (what, interface))


class _Tensor(Structure):
    """DLTensor."""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Versioned(Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


_python = ctypes.pythonapi
_python.PyCapsule_IsValid.argtypes = [ctypes.py_object, c_char_p]
_python.PyCapsule_IsValid.restype = c_int
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
_python.PyCapsule_GetPointer.restype = c_void_p
CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
DEVICES = (1, 3, *CUDA_DEVICES)  # kDLCPU, kDLCUDAHost
# The library copies GPU memory on CUDA's legacy default stream, which waits for queued work of the array's library.
LEGACY_STREAM = 1


def _check_device(what: Any, device: int) -> None:
    if device not in DEVICES:
        raise ValueError(f"this {type(what).__name__} is in the memory of DLPack device {device}: copy it to the CPU "
                         "or to a CUDA device first")


def _from_dlpack(what: Any) -> Memory:
    device = what.__dlpack_device__() if hasattr(what, "__dlpack_device__") else (1, 0)
    _check_device(what, int(device[0]))
    stream = {"stream": LEGACY_STREAM} if int(device[0]) in CUDA_DEVICES else {}
    try:
        try:
            capsule = what.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # an older version of the protocol
            capsule = what.__dlpack__(**stream)
    except (BufferError, RuntimeError) as error:
        raise ValueError(f"this {type(what).__name__} does not give its memory: {error}") from error
    readonly = type(what).__module__.partition(".")[0] in IMMUTABLE
    if _python.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_python.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise ValueError(f"DLPack {managed.major}.{managed.minor} is not known, only 1.x and older")
        if managed.flags & 2:
            raise ValueError(f"this {type(what).__name__} gives a copy of its memory only")
        readonly = readonly or bool(managed.flags & 1)
        tensor = managed.tensor
    else:
        tensor = _Tensor.from_address(_python.PyCapsule_GetPointer(capsule, b"dltensor"))
    _check_device(what, tensor.device_type)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    _contiguous(what, shape, strides, 1)
    bits = tensor.bits * tensor.lanes
    if bits % 8 != 0:
        raise ValueError(f"elements of {bits} bits cannot be moved one by one")
    name = DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    # The capsule frees the tensor when it is destroyed, since no other library has consumed it.
    return Memory((tensor.data or 0) + tensor.byte_offset, _product(shape), bits // 8,
                  name or f"dlpack{tensor.code}_{tensor.bits}", readonly, (what, capsule))


class _PyBuffer(Structure):
    """Py_buffer."""

    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int),
                ("ndim", c_int), ("format", c_char_p), ("shape", POINTER(c_ssize_t)),
                ("strides", POINTER(c_ssize_t)), ("suboffsets", POINTER(c_ssize_t)), ("internal", c_void_p)]


_python.PyObject_GetBuffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_python.PyObject_GetBuffer.restype = c_int
_python.PyBuffer_Release.argtypes = [POINTER(_PyBuffer)]
_python.PyBuffer_Release.restype = None
FORMAT_AND_C_CONTIGUOUS = 0x04 | 0x38


class _Held:
    """A buffer of an object, released with this object."""

    def __init__(self, what: Any) -> None:
        self.buffer = _PyBuffer()
        self._held = False
        _python.PyObject_GetBuffer(what, ctypes.byref(self.buffer), FORMAT_AND_C_CONTIGUOUS)
        self._held = True

    def __del__(self) -> None:
        if self._held:
            _python.PyBuffer_Release(ctypes.byref(self.buffer))


def _from_buffer(what: Any) -> Memory:
    try:
        held = _Held(what)
    except BufferError as error:
        raise ValueError(f"this {type(what).__name__} does not lend its memory: {error}") from error
    buffer = held.buffer
    text = (buffer.format or b"B").decode()
    plain = text.lstrip("@=<")
    if plain[:1] in (">", "!") and buffer.itemsize > 1:
        raise ValueError(f"elements of format '{text}' have another byte order than this machine: convert them first")
    name = CODES.get(FORMATS.get(plain.lstrip(">!"), "V") + str(buffer.itemsize), f"format {text}")
    return Memory(buffer.buf or 0, buffer.len // max(buffer.itemsize, 1), buffer.itemsize, name,
                  bool(buffer.readonly), held)


def memory(what: Any) -> Memory:
    """Returns the memory of an object. TypeError: it offers none. ValueError: it is not usable as it is."""
    if isinstance(what, Memory):
        return what
    interface = getattr(what, "__array_interface__", None)
    if interface is not None:
        return _from_array_interface(what, interface)
    if hasattr(what, "__dlpack__"):
        return _from_dlpack(what)
    try:
        return _from_buffer(what)
    except TypeError:
        raise TypeError(f"a {type(what).__name__} has no elements in memory: pass an array (NumPy, torch, JAX, MLX, "
                        "TensorFlow), or anything with the buffer protocol or DLPack") from None
