# SPDX-License-Identifier: Apache-2.0
"""The DNS server of the zone, over UDP and TCP (RFC 1035, section 4.2; RFC 7766)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from prometheus_client import CollectorRegistry, Counter

from frontage.config.records import Dns
from frontage_records.client import RecordClient
from frontage_records.dns.regions import single
from frontage_records.dns.zone import Zone
from frontage_records.errors import EngineError

MAX_CONCURRENT = 1024
"""Most concurrent queries, and most connections. Further UDP queries are dropped, because resolvers retry."""
LOOKUP_TIMEOUT = 2.0
"""Seconds to look up a record; resolvers do not wait much longer."""
IDLE_TIMEOUT = 10.0
"""Seconds after which a silent TCP connection is closed (RFC 7766, section 6.2.3)."""


class Server:
    """A running DNS server. Create it with `start`. `queries` counts queries by transport and result."""

    def __init__(self, settings: Dns, client: RecordClient):
        self._client = client
        self.registry = CollectorRegistry()
        self.queries = Counter(
            "frontage_records_dns_queries", "Queries by transport and result", ["transport", "result"], registry=self.registry
        )
        self.zone = Zone(settings, self._find)
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None

    @classmethod
    async def start(cls, settings: Dns, client: RecordClient) -> Self:
        """Start the server. ``client`` is open, and stays so after `close`. Raises OSError if the address cannot be bound."""
        server = cls(settings, client)
        host, port = settings.address
        server._tcp = await asyncio.start_server(server._serve, host, port)
        try:
            address = server._tcp.sockets[0].getsockname()[:2]
            loop = asyncio.get_running_loop()
            server._udp, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(server), local_addr=address)
        except BaseException:
            await server.close()
            raise
        return server

    @property
    def address(self) -> tuple[str, int]:
        """The bound host and port."""
        assert self._tcp is not None, "call start first"
        host, port = self._tcp.sockets[0].getsockname()[:2]
        return str(host), int(port)

    async def close(self) -> None:
        """Stop serving and cancel queries in progress."""
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _find(self, guid: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                return (await self._client.get(guid)).value or {}
        except TimeoutError:
            raise EngineError(f"{guid}: no answer for {LOOKUP_TIMEOUT:g} s") from None

    def datagram(self, data: bytes, sender: tuple[Any, ...]) -> None:
        """Handle one UDP query."""
        if len(self._tasks) >= MAX_CONCURRENT:
            self.queries.labels("udp", "overload").inc()
            return
        self._keep(self._reply(data, sender))

    async def _reply(self, data: bytes, sender: tuple[Any, ...]) -> None:
        answer = await self.zone.answer(data, single(sender[0]), udp=True)
        self.queries.labels("udp", answer.result).inc()
        if answer.message is not None and self._udp is not None:
            self._udp.sendto(answer.message, sender)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio runs connection callbacks in tasks"
        if self._connections >= MAX_CONCURRENT:
            self.queries.labels("tcp", "overload").inc()
            writer.close()
            return
        self._connections += 1
        self._tasks.add(task)
        try:
            await self._converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            # A closed or silent connection is not an error.
            pass
        finally:
            self._connections -= 1
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer queries in order."""
        client = single(writer.get_extra_info("peername")[0])
        while True:
            async with asyncio.timeout(IDLE_TIMEOUT):
                length = int.from_bytes(await reader.readexactly(2), "big")
                data = await reader.readexactly(length)
            answer = await self.zone.answer(data, client, udp=False)
            self.queries.labels("tcp", answer.result).inc()
            if answer.message is None:
                return
            writer.write(len(answer.message).to_bytes(2, "big") + answer.message)
            async with asyncio.timeout(IDLE_TIMEOUT):
                await writer.drain()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: Server):
        self._server = server

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self._server.datagram(data, addr)
