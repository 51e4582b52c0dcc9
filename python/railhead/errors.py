# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each result code of the library, with the library's own text."""

from __future__ import annotations

from typing import Dict, Type

from ._api import Result


class Error(RuntimeError):
    """A call of the library failed. The text is rhGetLastError's: rank, peer, rail, cause and fix.

    `result` is the code. After an error other than InvalidArgumentError and InvalidUsageError the
    communicator can only be aborted or destroyed.
    """

    result = Result.INTERNAL_ERROR


class SystemError(Error):  # pylint: disable=redefined-builtin
    """The operating system, a device or a policy does not allow it."""

    result = Result.SYSTEM_ERROR


class InternalError(Error):
    """A defect of the library, or ranks that contradict each other."""

    result = Result.INTERNAL_ERROR


class InvalidArgumentError(Error, ValueError):
    """An argument or an environment variable is wrong. Nothing has happened."""

    result = Result.INVALID_ARGUMENT


class InvalidUsageError(Error):
    """The call is not allowed now, for example while another thread uses the communicator."""

    result = Result.INVALID_USAGE


class RemoteError(Error):
    """Another rank, or the connection to it, failed. The text names it."""

    result = Result.REMOTE_ERROR


CLASSES: Dict[int, Type[Error]] = {
    kind.result: kind
    for kind in (SystemError, InternalError, InvalidArgumentError, InvalidUsageError, RemoteError)
}
