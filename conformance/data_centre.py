"""A site for frontage.p4: what the controller would write for its example configuration, instead of random entries, so that
packets get as far as they do in a data centre."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

from finsy.proto import p4r

from bmv2_json import Ref
from frontage.allocation import Installed, allocate
from frontage.config import Config, load
from frontage.desired import desired
from frontage.p4info import Schema
from frontage.tree import leaf_ops, packets
from target import Packet
from tools import ROOT

CONFIGURATION = ROOT / "controller" / "examples" / "demo.yaml"

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


@cache
def _configuration() -> Config:
    return load(CONFIGURATION)


def fields() -> Iterator[tuple[Ref, int]]:
    """What headers hold in a data centre like this: its addresses and ports, and sound values of what a router checks."""
    config = _configuration()
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


def by_its_port(random: Random, packet: Packet) -> Packet:
    """Mostly, what is addressed to one of the ports comes by that port; what comes from the controller stays."""
    config = _configuration()
    port, frame = packet
    mac = int.from_bytes(frame[:6], "big")
    right = next((each.id for each in config.ports if each.mac == mac), port)
    return (right if port != config.device.cpu_port and random.random() < 0.9 else port), frame


def updates_and_packets(schema: Schema) -> tuple[list[p4r.Update], list[Packet]]:
    """Entries, and what the controller tells the switch by its CPU port."""
    config = _configuration()
    nothing = Installed({})
    allocation = allocate(config, nothing)
    wanted = desired(config, allocation)
    updates = [
        p4r.Update(
            type=p4r.Update.INSERT if key.match else p4r.Update.MODIFY,
            entity=p4r.Entity(table_entry=schema.encode(key, action)),
        )
        for key, action in wanted.items()
    ]
    ops = leaf_ops(config, allocation, nothing, resync=True)
    return updates, [(config.device.cpu_port, frame) for frame in _frames(schema, packets(schema, ops.before))]


def _frames(schema: Schema, outs: Iterator[p4r.PacketOut]) -> Iterator[bytes]:
    """With their metadata in front, as the pipeline sees packets of the controller."""
    widths = {number: width for number, _, width in schema.packet_out}
    for out in outs:
        bits = length = 0
        for field in sorted(out.metadata, key=lambda field: field.metadata_id):
            width = widths[field.metadata_id]
            bits, length = bits << width | int.from_bytes(field.value, "big"), length + width
        yield bits.to_bytes(length // 8, "big") + out.payload
