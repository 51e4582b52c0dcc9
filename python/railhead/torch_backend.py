# SPDX-License-Identifier: Apache-2.0
"""torch's process-group backend "railhead", for tensors of the CPU and of CUDA devices.

torch calls register() at its import, by the entry point `torch.backends`; a job says

    torch.distributed.init_process_group("railhead")        # or "cpu:railhead,cuda:nccl"

RAILHEAD_TORCH_REPLACE=gloo makes it serve scripts that say "gloo", too.

The backend is compiled for each minor version of torch (lib/railhead-torch-2.15.so); that of the torch that
runs is loaded by the first process group.
"""

from __future__ import annotations

import atexit
import glob
import os
import re
import threading
import warnings
from typing import Any, List, Tuple

from . import _library
from .communicator import unique_id

NAME = "railhead"
_DEVICES = ("cpu", "cuda")
_ID_KEY = "railhead/unique_id"
_lock = threading.Lock()
_loaded = False


def register() -> None:
    """Tells torch of the backend. Never raises: a script that does not use it must not notice."""
    try:
        _register()
    except Exception as error:  # pylint: disable=broad-except
        warnings.warn(f'railhead: torch\'s backend "{NAME}" could not be registered: {type(error).__name__}: {error}',
                      RuntimeWarning, stacklevel=2)


def _register() -> None:
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    if not dist.is_available():
        return
    if not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=list(_DEVICES))
    replaced = os.environ.get("RAILHEAD_TORCH_REPLACE", "")
    if not replaced:
        return
    if replaced != "gloo":
        raise ValueError(f"RAILHEAD_TORCH_REPLACE is '{replaced}', and may be 'gloo' or empty")
    _replace_gloo(dist)


def _replace_gloo(dist: Any) -> None:
    plugins = dist.Backend._plugins
    dist.Backend.register_backend("gloo", _create, extended_api=True, devices=list(_DEVICES))
    if "GLOO" not in plugins:
        raise RuntimeError("this version of torch does not let a plugin take the place of gloo")


def _minors() -> List[Tuple[int, int]]:
    """The versions of torch for which there is a backend."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    found = []
    for path in glob.glob(os.path.join(folder, "railhead-torch-*.so")):
        match = re.search(r"-(\d+)\.(\d+)\.so$", path)
        if match:
            found.append((int(match[1]), int(match[2])))
    return sorted(found)


def _file(version: str) -> str:
    """The backend's file for this torch. RuntimeError, with what there is, if there is none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    minor = (int(match[1]), int(match[2])) if match else (0, 0)
    minors = _minors()
    if minor not in minors:
        known = ", ".join(f"{major}.{number}" for major, number in minors) or "no version"
        raise RuntimeError(f"railhead: this wheel has no backend for torch {version}, only for {known}: install one of "
                           'these, or a newer railhead; until then use another backend, as "gloo"')
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", f"railhead-torch-{minor[0]}.{minor[1]}.so")


def _load() -> None:
    global _loaded  # pylint: disable=global-statement
    import torch  # pylint: disable=import-outside-toplevel

    with _lock:
        if not _loaded:
            path = _file(torch.__version__)
            _library.library()  # the same one, wherever it is
            torch.ops.load_library(path)
            # Else a transfer that ends while Python does would want its lock.
            atexit.register(torch.ops.railhead_c10d.stop)
            _loaded = True


def _exchange(store: Any, rank: int) -> bytes:
    """The id that rank 0 makes, carried by torch's store. What fails on rank 0 fails on all."""
    if rank == 0:
        try:
            text = unique_id().hex()
        except Exception as error:
            store.set(_ID_KEY, f"error: {error}")
            raise
        store.set(_ID_KEY, text)
        return bytes.fromhex(text)
    text = store.get(_ID_KEY).decode()
    if text.startswith("error: "):
        raise RuntimeError(f"railhead: rank 0 of the group could not begin: {text[7:]}")
    return bytes.fromhex(text)


def _create(options: Any, _backend_options: Any = None) -> Any:
    """Makes the backend of one process group. Called by torch on all of its ranks."""
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    _load()
    identity = torch.frombuffer(bytearray(_exchange(options.store, options.group_rank)), dtype=torch.uint8)
    milliseconds = max(1, int(options.timeout.total_seconds() * 1000))
    name = "torch:" + str(options.group_id)
    made = torch.ops.railhead_c10d.create(options.group_rank, options.group_size, identity, milliseconds,
                                          name.encode()[:64].decode("utf-8", "ignore"))
    return dist.ProcessGroup.unbox(made)._get_backend(torch.device("cpu"))


def describe() -> str:
    """A line for people: which torch is there, and whether it has a backend."""
    from importlib import metadata  # pylint: disable=import-outside-toplevel

    version = metadata.version("torch")
    try:
        return f'{version}, with init_process_group("railhead") from {_file(version)}'
    except RuntimeError as error:
        return str(error)
