# SPDX-License-Identifier: Apache-2.0
"""Sends the samples of one switch to collectors over UDP. The buffer is bounded, and lost samples are counted."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address

from finsy.proto import p4r

from frontage.config import Config
from frontage.config.samples import Samples
from frontage.config.vips import Server, Vip
from frontage.fields import IPAddress, split_listen
from frontage.p4 import reasons
from frontage.p4.p4info import Schema
from frontage.samples import postcards, sflow
from frontage.samples.sample import DROP, POSTCARD, Sample, decoder
from frontage.samples.sflow import Described, Sequences

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
"""Maximum time that a sample waits for others in its datagram (sFlow: at most a second)."""
MAX_WAITING = 1000
"""Maximum number of samples that wait for the next datagrams; further samples are lost."""

_IPV4, _IPV6 = 0x0800, 0x86DD


class Exporter:
    """Exports the samples of one switch. `on_packet` receives packet-ins, and `run` sends datagrams."""

    def __init__(self, config: Config):
        self.counts: Counter[str] = Counter()
        """Number of samples: sent ones by kind (`flow`, `drop` and `postcard`), and `lost` ones."""
        self._numbers = Sequences()
        self._reports = 0
        self._waiting: list[Described] = []
        self._postcards: list[Sample] = []
        self._decode: Callable[[p4r.PacketIn], Sample] | None = None
        self._names: Callable[[], Mapping[str, int] | None] = lambda: None
        self._sockets: dict[str, socket.socket] = {}
        self._started = time.monotonic()
        self._is_waiting = asyncio.Event()
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Use a new configuration."""
        self._samples: Samples | None = config.samples
        self._sub_agent = config.device.device_id
        self._vips: dict[str, Vip] = {vip.name: vip for vip in config.vips}
        self._servers: dict[int, Server] = {server.sid: server for server in config.servers}

    @property
    def is_wanted(self) -> bool:
        """True if the configuration has samples."""
        return self._samples is not None

    def connect(self, schema: Schema, vip_ids: Callable[[], Mapping[str, int] | None]) -> None:
        """Decode the samples of a program, whose VIPs have these ids."""
        self._decode, self._names = decoder(schema), vip_ids

    def on_packet(self, message: p4r.PacketIn) -> None:
        """Receive a packet-in."""
        if self._samples is None or self._decode is None:
            return
        sample = self._decode(message)
        if len(self._waiting) + len(self._postcards) >= MAX_WAITING:
            self.counts["lost"] += 1
            self._numbers.lost += 1
        elif sample.kind == POSTCARD:
            self._postcards.append(sample)
        else:
            self._waiting.append(self._described(sample))
        self._is_waiting.set()

    async def run(self) -> None:
        """Send datagrams until cancelled."""
        try:
            while True:
                await self._is_waiting.wait()
                await asyncio.sleep(FLUSH_SECONDS)
                self._is_waiting.clear()
                self.flush()
        finally:
            for one in self._sockets.values():
                one.close()
            self._sockets = {}

    def flush(self) -> None:
        """Send the waiting samples."""
        waiting, self._waiting = self._waiting, []
        cards, self._postcards = self._postcards, []
        settings = self._samples
        if settings is None:
            return
        self._send_sflow(settings, waiting)
        for card in cards if settings.postcards is not None else ():
            assert settings.postcards is not None
            self._reports += 1
            is_sent = self._send(settings.postcards, postcards.report(card, self._sub_agent, self._reports))
            self.counts["postcard" if is_sent else "lost"] += 1

    def _send_sflow(self, settings: Samples, waiting: list[Described]) -> None:
        if not settings.collectors:
            return
        kinds: Counter[str] = Counter()
        part: list[bytes] = []
        size = 0
        for described in waiting:
            found = sflow.sample(described, settings.one_in, self._numbers)
            if part and size + len(found) > sflow.MAX_DATAGRAM:
                self._send_part(settings, part, kinds)
                part, kinds, size = [], Counter(), 0
            part.append(found)
            size += len(found)
            kinds["flow" if described.reason is None else "drop"] += 1
        if part:
            self._send_part(settings, part, kinds)

    def _send_part(self, settings: Samples, part: list[bytes], kinds: Counter[str]) -> None:
        uptime = int((time.monotonic() - self._started) * 1000)
        datagram = sflow.datagram(settings.agent, self._sub_agent, uptime, part, self._numbers)
        results = [self._send(collector, datagram) for collector in settings.collectors]
        if all(results):
            self.counts.update(kinds)
        else:
            self.counts["lost"] += len(part)
            self._numbers.lost += len(part)

    def _send(self, collector: str, datagram: bytes) -> bool:
        """Send a datagram, and return whether the system accepted it."""
        try:
            if collector not in self._sockets:
                self._sockets[collector] = _connected(collector)
            self._sockets[collector].send(datagram)
        except ConnectionRefusedError:
            # The ICMP error for an earlier datagram: no collector is listening. This datagram was not sent.
            return False
        except OSError as error:
            log.debug("cannot send samples to %s: %s", collector, error)
            return False
        return True

    def _described(self, sample: Sample) -> Described:
        is_drop = sample.kind == DROP
        vip = self._vip_of(sample)
        server = None if vip is None or is_drop else self._server_of(sample, vip)
        if is_drop:
            known, unknown = reasons.drops().get(sample.reason), str(sample.reason)
        else:
            known, unknown = reasons.outcomes().get(sample.outcome), "transit"
        name = unknown if known is None else known.name
        parts = [name, *([f"vip={vip.name}"] if vip else []), *([f"server={server.name}"] if server else [])]
        return Described(
            sample.packet,
            sample.length,
            sample.ingress_port,
            sample.egress_port,
            sample.pool,
            " ".join(parts),
            None if is_drop else _translated(sample.packet, vip, server),
            name if is_drop else None,
        )

    def _vip_of(self, sample: Sample) -> Vip | None:
        if not sample.direction:
            return None
        names = self._names() or {}
        return next((self._vips.get(name) for name, number in names.items() if number == sample.vip_id), None)

    def _server_of(self, sample: Sample, vip: Vip) -> Server | None:
        found = self._servers.get(sample.sid)
        return found if found is not None and found.vip == vip.name else None


def _connected(collector: str) -> socket.socket:
    host, port = split_listen(collector)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    found.connect((host, port))
    return found


def _translated(packet: bytes, vip: Vip | None, server: Server | None) -> tuple[IPAddress, IPAddress] | None:
    """Return the addresses of the outgoing packet, or None if the switch does not change them."""
    found = _addresses(packet)
    if found is None or vip is None or server is None:
        return None
    source, destination = found
    if destination == vip.address:
        return source, server.address
    return (vip.address, destination) if source == server.address else None


def _addresses(packet: bytes) -> tuple[IPAddress, IPAddress] | None:
    kind = int.from_bytes(packet[12:14], "big")
    if kind == _IPV4 and len(packet) >= 34:
        return ip_address(packet[26:30]), ip_address(packet[30:34])
    if kind == _IPV6 and len(packet) >= 54:
        return ip_address(packet[22:38]), ip_address(packet[38:54])
    return None
