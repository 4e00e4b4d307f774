"""What goes wrong between a controller and a switch, and which of gRPC's errors is what."""

from __future__ import annotations

import grpc


class SwitchError(Exception):
    """The switch refused a request or cannot be reached; the text says which request, of what, and why."""


class UnreachableError(SwitchError):
    """There is no connection to the switch (any more)."""


class ElectionIdInUseError(SwitchError):
    """Another controller has this very election id."""


class WriteRefusedError(SwitchError):
    """The switch refused updates."""


def failed(doing: str, error: grpc.aio.AioRpcError) -> SwitchError:
    """Of a request."""
    text = f"{doing}: {error.code().name}: {error.details()}"
    lost = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
    return UnreachableError(text) if lost else SwitchError(text)


def stream_failed(address: str, election_id: int, error: grpc.RpcError) -> SwitchError:
    """Of the stream, on which this election id was offered."""
    if isinstance(error, grpc.aio.AioRpcError):
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            return ElectionIdInUseError(f"the switch refused election id {election_id}: {error.details()}")
        return UnreachableError(f"the switch at {address} ended the connection: {error.code().name}: {error.details()}")
    return UnreachableError(f"the connection to the switch at {address} ended: {error}")
