# SPDX-License-Identifier: Apache-2.0
"""Client of softswitch's packet trace service (`softswitch/switch/proto/softswitch/v1/trace.proto`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from frontage.p4.errors import SwitchError, failed

_PACKAGE = "softswitch.v1"
_METHOD = f"/{_PACKAGE}.PacketTrace/Capture"
_ANSWER_SECONDS = 5.0
"""Seconds that the response may take in addition to the switch's timeout."""
_Field = descriptor_pb2.FieldDescriptorProto


class NoTraceError(SwitchError):
    """The target cannot trace packets."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame to inject."""

    port: int
    data: bytes


def _messages() -> dict[str, type[Message]]:
    """Return the classes of the service's few messages, without a generated module."""
    file = descriptor_pb2.FileDescriptorProto(name="softswitch/v1/trace.proto", package=_PACKAGE, syntax="proto3")

    def add(name: str, *fields: tuple[str, int, bool]) -> None:
        message = file.message_type.add(name=name)
        for number, (field, kind, repeated) in enumerate(fields, 1):
            label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, label=label)

    add("FieldMatch", ("field", _Field.TYPE_STRING, False), ("value", _Field.TYPE_STRING, False))
    add("InjectedFrame", ("port", _Field.TYPE_UINT32, False), ("frame", _Field.TYPE_BYTES, False))
    add("CaptureResponse", ("pass", _Field.TYPE_STRING, False))
    request = file.message_type.add(name="CaptureRequest")
    request.field.add(name="device_id", number=1, type=_Field.TYPE_UINT64, label=_Field.LABEL_OPTIONAL)
    request.field.add(
        name="fields", number=2, type=_Field.TYPE_MESSAGE, label=_Field.LABEL_REPEATED, type_name=f".{_PACKAGE}.FieldMatch"
    )
    request.field.add(name="timeout_ms", number=3, type=_Field.TYPE_UINT32, label=_Field.LABEL_OPTIONAL)
    request.field.add(
        name="inject", number=4, type=_Field.TYPE_MESSAGE, label=_Field.LABEL_OPTIONAL, type_name=f".{_PACKAGE}.InjectedFrame"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("CaptureRequest", "CaptureResponse")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


_MESSAGES = _messages()


async def capture(
    channel: grpc.aio.Channel, device_id: int, fields: Mapping[str, int], seconds: float, frame: Frame | None = None
) -> list[dict[str, Any]]:
    """Return the passes of the first packet with these fields, or of an injected frame; none if no packet arrived in time.

    Raises NoTraceError if the target cannot trace packets, and SwitchError.
    """
    request: Any = _MESSAGES["CaptureRequest"]()
    request.device_id, request.timeout_ms = device_id, round(seconds * 1000)
    for name, value in fields.items():
        request.fields.add(field=name, value=str(value))
    if frame is not None:
        request.inject.port, request.inject.frame = frame.port, frame.data
    call = channel.unary_stream(
        _METHOD,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=_MESSAGES["CaptureResponse"].FromString,
    )
    try:
        return [json.loads(getattr(response, "pass")) async for response in call(request, timeout=seconds + _ANSWER_SECONDS)]
    except grpc.aio.AioRpcError as error:
        if error.code() == grpc.StatusCode.UNIMPLEMENTED:
            raise NoTraceError("the switch cannot trace packets: use softswitch 0.1 or later") from None
        raise failed("tracing a packet", error) from None
