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
import secrets
import sys
import threading
import time
import warnings
from typing import Any, Callable, List, Tuple

from . import _library
from .communicator import unique_id

NAME = "railhead"
_DEVICES = ("cpu", "cuda")
_ID_KEY = "railhead/unique_id"
_WARN_SECONDS = 10
_LONGEST_PAUSE = 0.05  # seconds between two looks into the store
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


def _wait(store: Any, key: str, until: float, doing: Callable[[], str]) -> bool:
    """Whether the key is there within a second. TimeoutError, which names what it waits for, after `until`."""
    begin, pause = time.monotonic(), 0.001
    # Not store.wait(): it keeps others from the store, and torch warns of each second.
    while not store.check([key]):
        now = time.monotonic()
        if now > until:
            raise TimeoutError(f"railhead: {doing()}")
        if now > begin + 1:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _exchange(store: Any, rank: int, size: int, timeout: float) -> bytes:
    """The id that rank 0 makes, carried by torch's store. What fails on rank 0 fails on all.

    The store may have what an earlier start of the job left: torchrun keeps it when it starts all ranks anew. So a
    rank asks rank 0 under the id that it has found, with a word that was never used before, and takes the id when that
    is answered. The processes of an earlier start answer nothing any more.
    """
    until = time.monotonic() + timeout
    if rank == 0:
        start, failure = secrets.token_hex(8), None
        try:
            said = "id " + unique_id().hex()
        except Exception as error:  # pylint: disable=broad-except
            said, failure = f"error {error}", error
        store.set(_ID_KEY, f"{start} {said}")
        for other in range(1, size):
            asked, begin = f"{_ID_KEY}/{start}/{other}", time.monotonic()
            warned = begin
            while not _wait(store, asked, until, lambda other=other: f"rank {other} of {size} has not come"):
                if time.monotonic() > warned + _WARN_SECONDS:
                    warned = time.monotonic()
                    print(f"railhead: rank 0: warning: still waiting for rank {other} of {size} ({warned - begin:.0f}s of "
                          f"{timeout:.0f}s)", file=sys.stderr, flush=True)
            store.set(f"{asked}/{store.get(asked).decode()}", "yes")
        if failure is not None:
            raise failure
        return bytes.fromhex(said[3:])
    word = secrets.token_hex(8)
    while True:
        if not _wait(store, _ID_KEY, until, lambda: "rank 0 has not come"):
            continue
        start, kind, text = store.get(_ID_KEY).decode().split(" ", 2)
        store.set(f"{_ID_KEY}/{start}/{rank}", word)
        if _wait(store, f"{_ID_KEY}/{start}/{rank}/{word}", until, lambda: "rank 0 does not answer"):
            break
    if kind == "error":
        raise RuntimeError(f"railhead: rank 0 of the group could not begin: {text}")
    return bytes.fromhex(text)


def _create(options: Any, _backend_options: Any = None) -> Any:
    """Makes the backend of one process group. Called by torch on all of its ranks."""
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    _load()
    timeout = options.timeout.total_seconds()
    exchanged = _exchange(options.store, options.group_rank, options.group_size, timeout)
    identity = torch.frombuffer(bytearray(exchanged), dtype=torch.uint8)
    milliseconds = max(1, int(timeout * 1000))
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
