# SPDX-License-Identifier: Apache-2.0
"""Errors between the controller and the switch, and their mapping from gRPC errors."""

from __future__ import annotations

import grpc


class SwitchError(Exception):
    """The switch rejected a request or is unreachable; the message says which request, and why."""


class UnreachableError(SwitchError):
    """There is no connection to the switch."""


class TlsFailedError(UnreachableError):
    """A TLS connection to the switch fails; the message names the certificate, the fault and the fix."""


class ElectionIdInUseError(SwitchError):
    """Another controller uses the same election id."""


class NotLeadingError(SwitchError):
    """This controller is not the leader, so it must not write."""


class WriteRefusedError(SwitchError):
    """The switch rejected updates."""


def failed(doing: str, error: grpc.aio.AioRpcError) -> SwitchError:
    """Return the error of a failed request."""
    text = f"{doing}: {error.code().name}: {error.details()}"
    lost = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
    return UnreachableError(text) if lost else SwitchError(text)


def stream_failed(address: str, election_id: int, error: grpc.RpcError) -> SwitchError:
    """Return the error of a failed stream, on which the controller offered this election id."""
    if isinstance(error, grpc.aio.AioRpcError):
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            return ElectionIdInUseError(f"the switch refused election id {election_id}: {error.details()}")
        return UnreachableError(f"the switch at {address} ended the connection: {error.code().name}: {error.details()}")
    return UnreachableError(f"the connection to the switch at {address} ended: {error}")
