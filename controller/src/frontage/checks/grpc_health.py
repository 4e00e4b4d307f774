# SPDX-License-Identifier: Apache-2.0
"""gRPC checks: ``grpc.health.v1.Health/Check`` responds SERVING (github.com/grpc/grpc, doc/health-checking.md).

grpcio cannot choose the source port of a connection, so this uses h2. The messages have one field each.
"""

from __future__ import annotations

import struct

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError

from frontage.checks.failures import CheckFailedError
from frontage.checks.messages import Target
from frontage.checks.streams import authority, connected

STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_READ = 1 << 16


async def check(target: Target, turn: int) -> None:
    """Check a server by gRPC, with TLS if the target says so. Raises CheckFailedError and CheckerFailedError."""
    async with connected(target, turn, "h2" if target.tls else None) as (reader, writer):
        connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        connection.initiate_connection()
        stream = connection.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "https" if target.tls else "http"),
            (":path", "/grpc.health.v1.Health/Check"),
            (":authority", authority(target)),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "frontage-health-check"),
        ]
        connection.send_headers(stream, headers)
        name = target.service.encode()
        message = b"\x0a" + _varint(len(name)) + name if name else b""
        connection.send_data(stream, struct.pack(">BI", 0, len(message)) + message, end_stream=True)
        body = b""
        trailers: dict[str, str] = {}
        while True:
            writer.write(connection.data_to_send())
            data = await reader.read(_READ)
            if not data:
                raise CheckFailedError("the server closed the connection without a response")
            try:
                events = connection.receive_data(data)
            except ProtocolError as error:
                raise CheckFailedError(f"invalid HTTP/2 response: {error}") from None
            for event in events:
                if isinstance(event, ResponseReceived | TrailersReceived):
                    trailers |= {str(key): str(value) for key, value in event.headers or ()}
                elif isinstance(event, DataReceived):
                    body += event.data or b""
                elif isinstance(event, StreamReset | ConnectionTerminated):
                    raise CheckFailedError(f"the server ended the connection with HTTP/2 error {event.error_code}")
                elif isinstance(event, StreamEnded):
                    return _judge(trailers, body)


def _judge(trailers: dict[str, str], body: bytes) -> None:
    """Raise CheckFailedError unless the response says SERVING."""
    if trailers.get(":status") != "200":
        raise CheckFailedError(f"status {trailers.get(':status')}")
    code = trailers.get("grpc-status", "missing")
    if code != "0":
        text = f": {trailers['grpc-message']}" if trailers.get("grpc-message") else ""
        raise CheckFailedError(f"gRPC status {code}{text}")
    # An empty message has the default, UNKNOWN.
    status = body[6] if len(body) >= 7 and body[5] == 0x08 else 0
    if status != STATUSES.index("SERVING"):
        raise CheckFailedError(f"the server is {STATUSES[status] if status < len(STATUSES) else status}")


def _varint(value: int) -> bytes:
    """Return the encoding of a number below 2^14."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])
