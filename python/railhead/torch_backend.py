# SPDX-License-Identifier: Apache-2.0
"""The torch process-group backend "railhead", for tensors of the CPU and of CUDA devices.

torch calls register() during its import, by the entry point `torch.backends`. A job then calls

    torch.distributed.init_process_group("railhead")        # or "cpu:railhead,cuda:nccl"

With RAILHEAD_TORCH_REPLACE=gloo it also serves scripts that request "gloo".

The backend is compiled for each minor version of torch (lib/railhead-torch-2.15.so). The first process group loads
the file for the installed torch.
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
_LONGEST_PAUSE = 0.05  # seconds between two checks of the store
_lock = threading.Lock()
_loaded = False


def register() -> None:
    """Registers the backend with torch. Never raises, so that scripts that do not use it are not affected."""
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
    """Returns the versions of torch that this wheel has a backend for."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    found = []
    for path in glob.glob(os.path.join(folder, "railhead-torch-*.so")):
        match = re.search(r"-(\d+)\.(\d+)\.so$", path)
        if match:
            found.append((int(match[1]), int(match[2])))
    return sorted(found)


def _file(version: str) -> str:
    """Returns the path of the backend for this torch. RuntimeError lists the available versions if there is none."""
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
            _library.library()  # load the same library, wherever it is
            torch.ops.load_library(path)
            # Otherwise a transfer that ends during Python's shutdown would try to take the interpreter lock.
            atexit.register(torch.ops.railhead_c10d.stop)
            _loaded = True


def _wait(store: Any, key: str, until: float, doing: Callable[[], str]) -> bool:
    """Waits up to a second for the key; returns whether it exists. After `until` raises TimeoutError with doing()."""
    begin, pause = time.monotonic(), 0.001
    # Not store.wait(): it blocks other users of the store, and torch logs a warning every second.
    while not store.check([key]):
        now = time.monotonic()
        if now > until:
            raise TimeoutError(f"railhead: {doing()}")
        if now > begin + 1:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _exchange(store: Any, rank: int, size: int, timeout: float) -> Tuple[bytes, int]:
    """Returns the id that rank 0 creates, and the timeout of rank 0 in milliseconds, exchanged through torch's store.
    A failure of rank 0 fails all ranks. The library's timeouts must be equal on all ranks; torch's need not be.

    The store may contain the id of an earlier start of the job, since torchrun keeps its store when it restarts all
    ranks. A rank therefore sends rank 0 a random word under the id that it found, and uses the id once rank 0 has
    answered. Processes of an earlier start no longer answer.
    """
    until = time.monotonic() + timeout
    if rank == 0:
        start, failure = secrets.token_hex(8), None
        try:
            said = f"{_milliseconds(timeout)} {unique_id().hex()}"
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
        return _understood(said)
    word = secrets.token_hex(8)
    while True:
        if not _wait(store, _ID_KEY, until, lambda: "rank 0 has not come"):
            continue
        start, said = store.get(_ID_KEY).decode().split(" ", 1)
        store.set(f"{_ID_KEY}/{start}/{rank}", word)
        if _wait(store, f"{_ID_KEY}/{start}/{rank}/{word}", until, lambda: "rank 0 does not answer"):
            break
    return _understood(said)


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _understood(said: str) -> Tuple[bytes, int]:
    number, text = said.split(" ", 1)
    if number == "error":
        raise RuntimeError(f"railhead: rank 0 of the group could not begin: {text}")
    return bytes.fromhex(text), int(number)


def _create(options: Any, _backend_options: Any = None) -> Any:
    """Creates the backend of a process group. torch calls it on all ranks of the group."""
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    _load()
    timeout = options.timeout.total_seconds()
    exchanged, agreed = _exchange(options.store, options.group_rank, options.group_size, timeout)
    identity = torch.frombuffer(bytearray(exchanged), dtype=torch.uint8)
    name = "torch:" + str(options.group_id)
    made = torch.ops.railhead_c10d.create(options.group_rank, options.group_size, identity, agreed,
                                          _milliseconds(timeout), name.encode()[:64].decode("utf-8", "ignore"))
    return dist.ProcessGroup.unbox(made)._get_backend(torch.device("cpu"))


def describe() -> str:
    """Returns a line for people: the installed version of torch, and its backend or why there is none."""
    from importlib import metadata  # pylint: disable=import-outside-toplevel

    version = metadata.version("torch")
    try:
        return f'{version}, with init_process_group("railhead") from {_file(version)}'
    except RuntimeError as error:
        return str(error)
