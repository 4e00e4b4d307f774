# SPDX-License-Identifier: Apache-2.0
"""A session with a P4Runtime server: arbitration, pipeline, packet-out, digests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Self

import grpc
from finsy.grpcutil import GRPC_EOF
from finsy.p4client import P4RpcStatus
from finsy.proto import p4r, p4r_grpc, rpc_code

from frontage.p4 import digests
from frontage.p4.credentials import Credentials
from frontage.p4.digests import DigestMessages
from frontage.p4.entities import TIMEOUT, Entities, uint128
from frontage.p4.errors import ElectionIdInUseError, SwitchError, TlsFailedError, UnreachableError, failed, stream_failed
from frontage.p4.p4info import Pipeline, Schema

log = logging.getLogger(__name__)

_PIPELINE_TIMEOUT = 120.0
_CHANNEL_OPTIONS = (
    # Servers may send all entries in one message.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 64 * 1024),
    # The controller has its own back-off between attempts; within an attempt, retry quickly.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A new channel must not inherit the connection or the back-off of another one.
    ("grpc.use_local_subchannel_pool", 1),
)


class Role(Enum):
    """The role of this controller in arbitration."""

    PRIMARY = "primary"
    BACKUP = "backup"
    NO_PRIMARY = "no primary"
    """A backup while there is no primary."""


@dataclass(frozen=True, slots=True)
class Arbitration:
    """The result of an arbitration."""

    role: Role
    election_id: int
    """The largest election id that the switch knows."""


class Session(Entities):
    """A connection to one device. Reads need no arbitration; writes need the primary role."""

    def __init__(self, address: str, device_id: int, credentials: Credentials | None = None):
        """Raises UnreachableError if the certificates of ``credentials`` are invalid."""
        self.credentials = credentials
        self.channel = _channel(address, credentials)
        super().__init__(address, device_id, p4r_grpc.P4RuntimeStub(self.channel))
        self._stream: Any = None
        self._sending = asyncio.Lock()
        """A stream sends one message at a time, and several tasks have messages to send."""
        self._schema: Schema | None = None
        """The schema of the program whose digests are enabled."""
        self._digests: dict[str, DigestMessages] = {}
        """By the name of the digest."""
        self._digest_events: dict[str, asyncio.Event] = {}
        self.on_packet: Callable[[p4r.PacketIn], None] | None = None
        """Called with each packet-in."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        await self.channel.close(None)

    async def connect(self, seconds: float) -> None:
        """Wait until the switch accepts connections. Raises UnreachableError."""
        try:
            async with asyncio.timeout(seconds):
                await self.channel.channel_ready()
        except TimeoutError:
            why = None if self.credentials is None else await self.credentials.explain(self.address)
            if why is not None:
                raise TlsFailedError(why) from None
            raise UnreachableError(
                f"no response from a P4Runtime server at {self.address}: start the switch or correct device.address"
            ) from None

    async def arbitrate(self, election_id: int | None) -> None:
        """Offer this election id, or remain a backup without one. `arbitrations` yields the result."""
        if self._stream is None:
            self._stream = self._stub.StreamChannel()
        self.election_id = election_id or 0
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        if election_id is not None:
            request.arbitration.election_id.CopyFrom(uint128(election_id))
        await self._send(request)

    async def arbitrations(self) -> AsyncIterator[Arbitration]:
        """Yield every role change. Raises UnreachableError or ElectionIdInUseError when the connection ends."""
        assert self._stream is not None, "call arbitrate first"
        while True:
            try:
                message = await self._stream.read()
            except grpc.RpcError as error:
                raise stream_failed(self.address, self.election_id, error) from None
            if message is GRPC_EOF:
                code = await self._stream.code()
                details = str(await self._stream.details() or "")
                if code == grpc.StatusCode.INVALID_ARGUMENT:
                    raise ElectionIdInUseError(f"the switch rejected election id {self.election_id}: {details}")
                raise UnreachableError(f"the switch at {self.address} ended the connection: {code} {details}".rstrip())
            kind = message.WhichOneof("update")
            if kind == "arbitration":
                yield _arbitration(message.arbitration)
            elif kind == "digest" and self._schema is not None:
                self._add_digest(self._schema, message.digest)
            elif kind == "packet" and self.on_packet is not None:
                self.on_packet(message.packet)
            elif kind == "error":
                log.warning("error from the switch: %s", message.error.message or message.error)

    async def packet_out(self, packets: Iterable[p4r.PacketOut]) -> None:
        """Send packets into the pipeline, in order."""
        for packet in packets:
            self.require_lead()
            await self._send(p4r.StreamMessageRequest(packet=packet))

    async def enable_digests(self, schema: Schema) -> None:
        """Enable the digests of the P4 program. `take_digests` returns their messages. Raises SwitchError."""
        self._schema = schema
        for digest_id in schema.digests_by_id:
            self.require_lead()
            request = p4r.WriteRequest(device_id=self.device_id, election_id=uint128(self.election_id))
            request.updates.add(type=p4r.Update.INSERT).entity.digest_entry.CopyFrom(digests.entry(digest_id))
            try:
                await self._stub.Write(request, timeout=TIMEOUT)
            except grpc.aio.AioRpcError as error:
                details = P4RpcStatus.from_rpc_error(error).details.values()
                # An earlier controller may have enabled it.
                if not details or any(one.canonical_code.value != rpc_code.ALREADY_EXISTS for one in details):
                    raise failed("enabling a digest", error) from None

    def _add_digest(self, schema: Schema, found: p4r.DigestList) -> None:
        if (name := schema.digests_by_id.get(found.digest_id)) is not None:
            event = self._digest_events.get(name)
            self._digests.setdefault(name, DigestMessages()).add(found, is_signalled=event is not None)
            if event is not None:
                event.set()

    def take_digests(self, name: str) -> DigestMessages:
        """Return the messages of the digest with this name that were received since the last call for it."""
        return self._digests.pop(name, DigestMessages())

    def signal_digests(self, name: str, event: asyncio.Event) -> None:
        """Set ``event`` whenever messages of the digest with this name arrive."""
        self._digest_events[name] = event

    async def acknowledge(self, messages: DigestMessages) -> None:
        """Acknowledge messages; the switch may then send equal ones again. Raises UnreachableError."""
        for digest_id, list_id in messages.lists:
            ack = p4r.DigestListAck(digest_id=digest_id, list_id=list_id)
            await self._send(p4r.StreamMessageRequest(digest_ack=ack))

    async def _send(self, request: p4r.StreamMessageRequest) -> None:
        with self._open():
            try:
                async with self._sending:
                    await self._stream.write(request)
            except grpc.RpcError as error:
                raise stream_failed(self.address, self.election_id, error) from None

    async def installed_pipeline(self, seconds: float = TIMEOUT) -> int | None:
        """Return the cookie of the switch's pipeline, or None without a pipeline. Raises UnreachableError on a timeout."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        try:
            response = await self._stub.GetForwardingPipelineConfig(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return None
            raise failed("reading the pipeline's cookie", error) from None
        return int(response.config.cookie.cookie)

    async def take(self, pipeline: Pipeline, seconds: float) -> None:
        """Take over a switch without a controller: connect within ``seconds``, become primary and set the pipeline.

        Raises UnreachableError; ElectionIdInUseError or another SwitchError if there is a controller; SwitchError if the switch
        rejects the pipeline.
        """
        await self.connect(seconds)
        await self.arbitrate(1)
        arbitration = await anext(self.arbitrations())
        if arbitration.role is not Role.PRIMARY:
            raise SwitchError(f"the switch at {self.address} has another primary: stop that controller first")
        await self.set_pipeline(pipeline)

    async def set_pipeline(self, pipeline: Pipeline) -> None:
        """Install the pipeline. Raises SwitchError."""
        self.require_lead()
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=uint128(self.election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=pipeline.forwarding_config(),
        )
        try:
            await self._stub.SetForwardingPipelineConfig(request, timeout=_PIPELINE_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise failed("setting the pipeline", error) from None


def _channel(address: str, credentials: Credentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
    name = credentials.settings.server_name
    options = _CHANNEL_OPTIONS if name is None else (*_CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", name))
    return grpc.aio.secure_channel(address, credentials.channel_credentials(), options=options)


def _arbitration(message: p4r.MasterArbitrationUpdate) -> Arbitration:
    roles = {rpc_code.OK: Role.PRIMARY, rpc_code.NOT_FOUND: Role.NO_PRIMARY}
    role = roles.get(message.status.code, Role.BACKUP)  # type: ignore[call-overload]
    return Arbitration(role, message.election_id.high << 64 | message.election_id.low)
