# SPDX-License-Identifier: Apache-2.0
"""Loads librailhead.so.0 on the first call. Importing the package does not load it."""

from __future__ import annotations

import ctypes
import os
import threading
from types import SimpleNamespace
from typing import Any, Callable, List, Optional, Tuple

from . import _api
from ._c_types import convert
from .errors import CLASSES, Error

_lock = threading.Lock()
_loaded: Optional[SimpleNamespace] = None


def path() -> str:
    """Returns the library's path: RAILHEAD_LIBRARY if it is set, otherwise the library inside this package."""
    return os.environ.get("RAILHEAD_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "lib", "librailhead.so.0")


def _checked(name: str, function: Any, arguments: List[Tuple[str, Any]]) -> Callable[..., Any]:
    """Returns a function of the library that refuses values which the C types of its arguments cannot hold."""
    where = [f"{name}: {argument}" for argument, _ in arguments]
    kinds = [kind for _, kind in arguments]
    function.argtypes = [getattr(kind, "ctype", kind) for kind in kinds]

    def call(*values: Any) -> Any:
        if len(values) != len(kinds):
            raise TypeError(f"{name} takes {len(kinds)} arguments, not {len(values)}")
        return function(*map(convert, where, kinds, values))

    return call


def library() -> SimpleNamespace:
    """Returns the functions of the library. They check and convert their arguments. Thread-safe.

    Raises OSError if it cannot be loaded, and AttributeError if it lacks a function.
    """
    global _loaded  # pylint: disable=global-statement
    with _lock:
        if _loaded is None:
            # Its functions wait for other ranks; ctypes.CDLL releases the global interpreter lock during each call.
            handle = ctypes.CDLL(path())
            functions = SimpleNamespace()
            for name, (result, arguments) in _api.FUNCTIONS.items():
                function = getattr(handle, name)
                function.restype = result
                setattr(functions, name, _checked(name, function, arguments))
            _loaded = functions
        return _loaded


def version() -> str:
    """Returns the library's version, for example "0.1.0"."""
    code = ctypes.c_int()
    check(library().rhGetVersion(ctypes.byref(code)))
    return f"{code.value // 10000}.{code.value // 100 % 100}.{code.value % 100}"


def last_error(handle: Any = None) -> str:
    """Returns the text of the last failure: of the communicator `handle`, or of this thread's calls without one."""
    return (library().rhGetLastError(handle) or b"").decode("utf-8", "replace")


def error(result: int, handle: Any = None) -> Error:
    """Returns the exception for a result that is a failure."""
    text = last_error(handle) or library().rhGetErrorString(result).decode()
    return CLASSES.get(result, Error)(text)


def check(result: int, handle: Any = None) -> None:
    """Raises the exception for a result; returns if it is success or in progress."""
    if result not in (_api.Result.SUCCESS, _api.Result.IN_PROGRESS):
        raise error(result, handle)
