# SPDX-License-Identifier: Apache-2.0
"""Sites for frontage.p4: the entries that the controller writes for its example configurations.

With these instead of random entries, packets take the same paths as in a data centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Network
from pathlib import Path
from random import Random

from finsy.proto import p4r

from bmv2_json import Ref
from dialogue import Dialogue
from frontage.config import load
from frontage.config.schema import Fallback, Handshake
from frontage.cookie import Ip6Cookie, plain_cid
from frontage.p4.p4info import Schema
from frontage.state.offline import contents
from target import Packet
from tools import ROOT

EXAMPLES = ROOT / "controller" / "examples"
FOREVER = 65535
"""Idle timeout of the connection tables in seconds: longer than a round. Each switch has its own clock, so an entry could
otherwise expire on one switch before the next packet of its connection, and on the other after it."""
LOADS = ((0, 0, 0), (1, 2, 40), (9, 0, 255))
"""Quantised values of N_AF, N_FF and RPT in dynamic cookies."""

SOUND: dict[Ref, tuple[int, ...]] = {
    ("arp", "hardware_type"): (1,),
    ("arp", "protocol_type"): (0x0800,),
    ("arp", "operation"): (1, 1, 1, 2),
    ("ipv4", "version"): (4,),
    ("ipv4", "ihl"): (5, 5, 5, 6),
    ("ipv4", "more_fragments"): (0,),
    ("ipv4", "fragment_offset"): (0,),
    ("ipv4", "ttl"): (64, 2, 1),
    ("ipv4", "protocol"): (6, 6, 1, 17),
    ("ipv6", "version"): (6,),
    ("ipv6", "next_header"): (6, 6, 58, 0),
    ("ipv6", "hop_limit"): (64, 255, 1),
    ("icmp", "icmp_type"): (8, 128, 135),
    ("icmp", "icmp_code"): (0,),
    ("tcp", "data_offset"): (5, 8, 8, 10),
    ("tcp", "flags"): (0x02, 0x10, 0x18, 0x11, 0x04),
    ("tcp", "ck"): (0, 1),
    ("tcp_timestamp", "length"): (10,),
    ("quic_long", "dcid_length"): (0, 8, 12, 12, 20),
    ("connection_id", "config"): (0, 1, 2),
    ("connection_id", "length"): (11,),
}


class Site:
    """The data centre of one configuration."""

    def __init__(self, configuration: Path) -> None:
        lasting = {"fallback": Fallback(idle_timeout=FOREVER), "handshake": Handshake(timeout=FOREVER)}
        self._config = load(configuration).model_copy(update=lasting)
        self._dialogue = Dialogue(self._config)

    def fields(self) -> Iterator[tuple[Ref, int]]:
        """Yield typical header values of this site: addresses, cookies, ports, and valid values for the fields that a router checks."""
        config = self._config
        for port in config.ports:
            yield ("ethernet", "dst"), port.mac
        hosts = [vip.address for vip in config.vips] * 4
        hosts += [server.address for server in config.servers]
        hosts += [neighbor.address for neighbor in config.neighbors]
        hosts += [gateway.ip for port in config.ports for gateway in port.gateways]
        hosts += [route.prefix.network_address + 7 for route in config.routes]
        for host in hosts:
            for end in ("src", "dst"):
                yield (f"ipv{host.version}", end), int(host)
            for field in (("arp", "target"), ("arp", "sender")) if host.version == 4 else (("ndp", "target"),):
                yield field, int(host)
        for number in [vip.port for vip in config.vips] * 4 + [server.port for server in config.servers]:
            for end in ("src_port", "dst_port"):
                yield ("ports", end), number
        for ref, values in SOUND.items():
            for value in values:
                yield ref, value
        yield from self._cookies()

    def _cookies(self) -> Iterator[tuple[Ref, int]]:
        """Yield cookie addresses, source addresses and connection ids of each server whose VIP has a cookie prefix."""
        config = self._config
        prefixes = {vip.name: vip.cookie_prefix for vip in config.vips if vip.cookie_prefix}
        for server in config.servers:
            if server.vip not in prefixes:
                continue
            own = IPv6Network((server.address, 64), strict=False)
            for key in config.cookie_keys:
                static = key.seal_ip6(Ip6Cookie(server.sid))
                for _ in range(4):
                    yield ("ipv6", "dst"), int(prefixes[server.vip][static])
                yield ("ipv6", "src"), int(own[static])
                for n_af, n_ff, rpt in LOADS:
                    for at_cookie in (False, True):
                        cookie = Ip6Cookie(server.sid, rpt, n_af, n_ff, expects_static=at_cookie, dynamic=True)
                        yield ("ipv6", "src"), int(own[key.seal_ip6(cookie)])
                for cid in (key.seal_cid(server.sid, 1, bytes(3)), plain_cid(server.sid, bytes(9))):
                    yield ("connection_id", "word"), int.from_bytes(cid[1:9], "big")

    def spoken(self, random: Random, packet: Packet) -> Packet:
        """Replace every other packet by one of the site's clients and servers, and send the rest through suitable ports."""
        return self._dialogue.packet(random) if random.random() < 0.5 else self._by_its_port(random, packet)

    def _by_its_port(self, random: Random, packet: Packet) -> Packet:
        """Usually let packets addressed to one of the ports arrive on that port; packets of the controller are not changed."""
        port, frame = packet
        mac = int.from_bytes(frame[:6], "big")
        right = next((each.id for each in self._config.ports if each.mac == mac), port)
        return (right if port != self._config.device.cpu_port and random.random() < 0.9 else port), frame

    def updates_and_packets(self, schema: Schema) -> tuple[list[p4r.Update], list[Packet]]:
        """Return the entries, and the controller's packet-outs."""
        config = self._config
        wanted, packets_out = contents(config, schema)
        updates = [
            p4r.Update(
                type=p4r.Update.INSERT if key.match else p4r.Update.MODIFY,
                entity=p4r.Entity(table_entry=schema.encode(key, action)),
            )
            for key, action in wanted.items()
        ]
        return updates, [(config.device.cpu_port, frame) for frame in _frames(schema, packets_out)]


def _frames(schema: Schema, outs: Iterable[p4r.PacketOut]) -> Iterator[bytes]:
    """Return packet-outs with their metadata prepended, as the pipeline receives them."""
    widths = {number: width for number, _, width in schema.packet_out}
    for out in outs:
        bits = length = 0
        for field in sorted(out.metadata, key=lambda field: field.metadata_id):
            width = widths[field.metadata_id]
            bits, length = bits << width | int.from_bytes(field.value, "big"), length + width
        yield bits.to_bytes(length // 8, "big") + out.payload


SITES = (Site(EXAMPLES / "demo.yaml"), Site(EXAMPLES / "quic.yaml"))
"""A site with a TCP service, and one with a QUIC service."""
