# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each result code of the library. Their texts are the library's."""

from __future__ import annotations

from typing import Dict, Type

from ._api import Result


class Error(RuntimeError):
    """A call of the library failed. The text is that of rhGetLastError: rank, peer, rail, cause and fix.

    `result` is the result code. After any error except InvalidArgumentError and InvalidUsageError the communicator
    can only be aborted or destroyed.
    """

    result = Result.INTERNAL_ERROR


class SystemError(Error):  # pylint: disable=redefined-builtin
    """The operating system, a device or a policy refused the call."""

    result = Result.SYSTEM_ERROR


class InternalError(Error):
    """A defect of the library, or ranks with contradicting calls."""

    result = Result.INTERNAL_ERROR


class InvalidArgumentError(Error, ValueError):
    """An argument or an environment variable is wrong. The call had no effect."""

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
