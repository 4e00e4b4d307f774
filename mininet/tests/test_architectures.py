# SPDX-License-Identifier: Apache-2.0
"""The program for Tofino does with a packet what the program for v1model does, and with several pipes, each pipe does."""

import random
import shutil
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, UDP, Ether, ICMPv6EchoRequest, IPv6, Packet, Raw

from frontage.cookie import CookieKey, Ip6Cookie, plain_cid
from frontage_testbed.programs import REPOSITORY
from inprocess import SOURCES, TOFINO1, TOFINO1QUIC, TOFINO2, TOFINO2CORE, TOFINO2FOLDED, TOFINO2FULL, V1MODEL, Switch
from testbeds import long_except

pytestmark = pytest.mark.slow(seconds=60)

PACKETS = 100_000
SERVERS = 8
KEY = CookieKey(4, bytes(range(32)))
CLIENT_MAC, RACK_MAC, HOST_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:09"
VIP4, VIP6, CLIENT4, CLIENT6 = "203.0.113.10", "2001:db8:f::10", "198.18.1.2", "2001:db8:c::2"


STAMPS = (b"\x01\x01\x08\x0a", b"\x04\x02\x08\x0a")
"""Timestamps behind two NOPs or SACK-permitted."""


def configuration(
    client: int, racks: list[int], pipes: int = 1, *, protocols: Sequence[str] = ("tcp", "udp"), quic4_policy: str = "cheetah-rr"
) -> dict[str, Any]:
    """Return a site with a TCP and a QUIC service of each IP version, whose servers are behind the ports `racks`.

    It has only the services of these protocols.
    """
    ports: list[dict[str, Any]] = [
        {"id": client, "name": "internet", "mac": CLIENT_MAC, "role": "client", "gateways": ["198.18.255.1/24"]}
    ]
    routes = [
        {"prefix": "198.18.0.0/16", "port": "internet", "mac": HOST_MAC},
        {"prefix": "2001:db8:c::/48", "port": "internet", "mac": HOST_MAC},
    ]
    for n, rack in enumerate(racks):
        ports.append({"id": rack, "name": f"rack{n}", "mac": RACK_MAC, "role": "server", "gateways": [f"10.{n}.0.1/16"]})
        routes.append({"prefix": f"fd00:0:{n + 1}::/48", "port": f"rack{n}", "mac": HOST_MAC})
        routes.append({"prefix": f"10.{n}.1.0/24", "port": f"rack{n}", "mac": HOST_MAC})
    vips = []
    servers = []
    for number, (protocol, port, address) in enumerate(
        [("tcp", 80, VIP4), ("tcp", 80, VIP6), ("udp", 443, VIP4), ("udp", 443, VIP6)]
    ):
        if protocol not in protocols:
            continue
        name = f"vip{number}"
        policy = quic4_policy if number == 2 else "cclb4"
        vip: dict[str, Any] = {"name": name, "address": address, "protocol": protocol, "port": port, "policy": policy}
        if protocol == "udp" and ":" in address:
            vip["cookie_prefix"] = "2001:db8:c00c:1e::/64"
        vips.append(vip)
        for i in range(SERVERS):
            rack = i % len(racks)
            own = f"fd00:0:{rack + 1}:{16 * number + i:x}::10" if ":" in address else f"10.{rack}.1.{16 * number + i + 16}"
            sid = 100 * number + i + 1
            servers.append({"name": f"s{number}-{i}", "vip": name, "address": own, "port": 8080, "sid": sid})
    return {
        "device": {"address": "unix:x", "cpu_port": 510, "pipes": pipes, "pipeline": {"p4info": "x", "json": "x"}},
        "ports": ports,
        "routes": routes,
        "vips": vips,
        "servers": servers,
        "keys": [{"id": KEY.id, "secret": KEY.secret.hex()}],
    }


def frames(rng: random.Random, is_excluded: Callable[[bytes], bool]) -> Iterator[tuple[bool, bytes]]:
    """Yield valid and damaged frames without end, and whether they are from a server.

    The exceptions are ``is_excluded``, and those that every program for Tofino treats otherwise.
    """
    while True:
        from_server = rng.random() < 0.4
        frame = _valid(rng, from_server)
        damage = rng.randrange(4)
        if damage == 1:
            frame = _with_length(frame[: rng.randrange(14, len(frame) + 1)])
        elif damage >= 2:
            data = bytearray(frame)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(min(len(data), 110))] = rng.getrandbits(8)
            frame = bytes(data)
        if _promises_more(frame) or _has_long_extensions(frame) or _is_cut_syn(frame) or _is_icmp_error(frame):
            continue
        if not is_excluded(frame):
            yield from_server, frame


def _with_length(frame: bytes) -> bytes:
    """Return a frame of which the IP header, if it is whole, has the right length and checksum."""
    data = bytearray(frame)
    if data[12:14] == b"\x08\x00" and len(data) >= 34:
        data[16:18] = (len(data) - 14).to_bytes(2, "big")
        data[24:26] = b"\0\0"
        data[24:26] = (~_sum(data[14:34]) & 0xFFFF).to_bytes(2, "big")
    elif data[12:14] == b"\x86\xdd" and len(data) >= 54:
        data[18:20] = (len(data) - 54).to_bytes(2, "big")
    return bytes(data)


def _sum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return total % 0xFFFF or 0xFFFF


def _promises_more(frame: bytes) -> bool:
    """Return whether the IP header has a length beyond the frame, which ingress of Tofino cannot see."""
    if frame[12:14] == b"\x08\x00":
        return int.from_bytes(frame[16:18], "big") + 14 > len(frame)
    return frame[12:14] == b"\x86\xdd" and int.from_bytes(frame[18:20], "big") + 54 > len(frame)


def _has_long_extensions(frame: bytes) -> bool:
    """Return whether there are IPv6 extension headers that Tofino's parser does not follow: longer than 8 bytes, or a third."""
    if frame[12:14] != b"\x86\xdd" or len(frame) < 54:
        return False
    kind, at = frame[20], 54
    for number in range(3):
        if kind not in (0, 43, 60) or at + 8 > len(frame):
            return False
        if number == 2 or frame[at + 1] != 0:
            return True
        kind, at = frame[at], at + 8
    return False


def _is_icmp_error(frame: bytes) -> bool:
    """Return whether a frame is an ICMP error, which only v1model reads."""
    if frame[12:14] == b"\x08\x00":
        at = 14 + 4 * (frame[14] & 15) if len(frame) > 14 else 0
        return frame[23:24] == b"\x01" and frame[at : at + 1] in (b"\x03", b"\x0b", b"\x0c")
    kind, at = frame[20:21], 54
    while kind in (b"\0", b"\x2b", b"\x3c") and at < len(frame):
        kind, at = frame[at : at + 1], at + 8
    return frame[12:14] == b"\x86\xdd" and kind == b"\x3a" and frame[at : at + 1] in (b"\x01", b"\x02", b"\x03", b"\x04")


def _is_walked(frame: bytes) -> bool:
    """Return whether TCP options continue where the parser of tofino1 stops.

    It finds timestamps that are first, behind the MSS, or behind the MSS and the window scale.
    """
    l4 = _tcp(frame)
    if l4 is None:
        return False
    words = [frame[at : at + 4] for at in range(l4 + 20, l4 + 4 * (frame[l4 + 12] >> 4), 4)]
    for word, skipped in zip(words, (b"\x02\x04", b"\x01\x03\x03", STAMPS), strict=False):
        if word in STAMPS:
            return False
        if not word.startswith(skipped):
            return word[:1] > b"\0"  # not the end of options, and not that of the frame
    return False


def _is_marked(frame: bytes) -> bool:
    """Return whether a segment has the mark of the second hop, which tofino1 does not know."""
    l4 = _tcp(frame)
    return l4 is not None and bool(frame[l4 + 12] & 4)


def _is_reset(frame: bytes) -> bool:
    l4 = _tcp(frame)
    return l4 is not None and bool(frame[l4 + 13] & 4)


def _is_cut_syn(frame: bytes) -> bool:
    """Return whether a frame ends within the options of a SYN, which only v1model reads beyond the timestamps."""
    l4 = _tcp(frame)
    return l4 is not None and frame[l4 + 13] & 0x12 == 2 and l4 + 4 * (frame[l4 + 12] >> 4) > len(frame)


def _tcp(frame: bytes) -> int | None:
    """Return the offset of a TCP header that follows an IP header without options or extensions."""
    protocol, l4 = (frame[20:21], 54) if frame[12:14] == b"\x86\xdd" else (frame[23:24], 34)
    return l4 if protocol == b"\x06" and len(frame) >= l4 + 20 else None


def _valid(rng: random.Random, from_server: bool) -> bytes:
    version = rng.choice((4, 6))
    tcp = rng.random() < 0.5
    number = (0 if version == 4 else 1) + (0 if tcp else 2)
    server = rng.randrange(SERVERS)
    client = (CLIENT4 if version == 4 else CLIENT6, 1024 + rng.randrange(40))
    vip = (VIP4 if version == 4 else VIP6, 80 if tcp else 443)
    own = (f"10.0.1.{16 * number + server + 16}" if version == 4 else f"fd00:0:1:{16 * number + server:x}::10", 8080)
    source, to = (own, client) if from_server else (client, vip)
    if not from_server and rng.random() < 0.1:
        to = ("10.0.1.200", 5000) if version == 4 else ("fd00:0:1:ff::1", 5000)
    if not tcp and version == 6:
        sid = 100 * number + server + 1
        if from_server and rng.random() < 0.6:
            source = (_in_network(f"fd00:0:1:{16 * number + server:x}::", _interface_id(rng, sid)), source[1])
        elif not from_server and rng.random() < 0.2:
            to = (_in_network("2001:db8:c00c:1e::", _interface_id(rng, sid)), to[1])
    head = (IP if version == 4 else IPv6)(src=source[0], dst=to[0])
    return bytes(
        Ether(dst=RACK_MAC if from_server else CLIENT_MAC, src=HOST_MAC) / head / _payload(rng, version, tcp, source[1], to[1])
    )


def _in_network(network: str, interface_id: int) -> str:
    return str(IPv6Address(int(IPv6Address(network)) | interface_id))


def _interface_id(rng: random.Random, sid: int) -> int:
    """Return a cookie of a server, of either form, or random bits."""
    form = rng.randrange(4)
    if form == 0:
        return rng.getrandbits(64)
    if form == 1:
        return KEY.seal_ip6(Ip6Cookie(sid))
    loads = [rng.randrange(40) for _ in range(3)]
    return KEY.seal_ip6(Ip6Cookie(sid, *loads, expects_static=rng.random() < 0.5, dynamic=True))


def _connection_id(rng: random.Random, version: int) -> bytes:
    """Return a connection id of a server, of either form, or a random one."""
    sid = 100 * (2 if version == 4 else 3) + rng.randrange(SERVERS) + 1
    form = rng.randrange(3)
    if form == 0:
        return rng.randbytes(12)
    if form == 1:
        return plain_cid(sid, rng.randbytes(9))
    return KEY.seal_cid(sid, rng.randrange(1, 1 << 24), rng.randbytes(3))


def _payload(rng: random.Random, version: int, tcp: bool, sport: int, dport: int) -> Packet:
    if rng.random() < 0.05:
        return ICMP() if version == 4 else ICMPv6EchoRequest()
    if tcp:
        stamps = (rng.getrandbits(32), rng.getrandbits(32))
        options = rng.choice(
            (
                [("NOP", None), ("NOP", None), ("Timestamp", stamps)],
                [("MSS", 1460), ("SAckOK", b""), ("Timestamp", stamps), ("NOP", None), ("WScale", 7)],
                [],
            )
        )
        flags = rng.choice(("S", "A", "PA", "FA", "R", "SA"))
        segment = TCP(sport=sport, dport=dport, flags=flags, seq=rng.getrandbits(32), options=options)
        segment.reserved = rng.choice((0, 0, 4, 2))  # CK, the mark of the second hop
        return segment / Raw(rng.randbytes(rng.randrange(20)))
    first = rng.choice((0x40, 0xC0))
    quic = bytes([first]) + (struct.pack(">IB", 1, 12) if first & 0x80 else b"") + _connection_id(rng, version)
    return UDP(sport=sport, dport=dport) / Raw(quic + bytes(1250 if rng.random() < 0.5 else 30))


def _nothing(_frame: bytes) -> bool:
    return False


def _is_beyond_tofino1(frame: bytes) -> bool:
    """Return whether only other programs read a segment, or remember the server to which it goes."""
    return _is_walked(frame) or _is_marked(frame) or _is_reset(frame)


def _is_beyond_tofino2folded(frame: bytes) -> bool:
    """Return whether only other programs read a segment, or remember a server whose datagram was dropped for its cookie."""
    return _is_walked(frame) or _is_reset(frame)


def _is_beyond_tofino1quic(frame: bytes) -> bool:
    """Return whether a frame is a damaged segment, whose header is not read, or an Initial whose foreign id looks sealed."""
    if frame[12:14] == b"\x86\xdd":
        protocol, l4 = frame[20:21], 54
        while protocol in (b"\0", b"\x2b", b"\x3c") and l4 < len(frame):
            protocol, l4 = frame[l4 : l4 + 1], l4 + 8
    else:
        protocol, l4 = frame[23:24], 14 + 4 * (frame[14] & 15 if len(frame) > 14 else 0)
    if protocol == b"\x06":
        offset = 4 * (frame[l4 + 12] >> 4) if len(frame) > l4 + 12 else 0
        return offset < 20 or l4 + offset > len(frame)
    cid = frame[l4 + 14 : l4 + 26]
    looks_sealed = cid[:1] in (b"\x0b", b"\x2b") and cid[1:2] >= b"\x80"
    return protocol == b"\x11" and looks_sealed and KEY.open_cid(cid) is None


@dataclass(frozen=True)
class Profile:
    """A program for Tofino, and what it has in common with that for v1model."""

    source: str
    packets: int = PACKETS // 4
    protocols: tuple[str, ...] = ("tcp", "udp")
    quic4_policy: str = "cheetah-rr"
    is_excluded: Callable[[bytes], bool] = _nothing
    pipes: int = 1


PROFILES = (
    Profile(TOFINO1, protocols=("tcp",), is_excluded=_is_beyond_tofino1),
    Profile(TOFINO1QUIC, protocols=("udp",), quic4_policy="hash", is_excluded=_is_beyond_tofino1quic),
    Profile(TOFINO2CORE, is_excluded=_is_beyond_tofino1),
    Profile(TOFINO2FOLDED, is_excluded=_is_beyond_tofino2folded, pipes=2),
    Profile(TOFINO2FULL, is_excluded=_is_beyond_tofino2folded, pipes=4),
    Profile(TOFINO2, PACKETS),
)
KEPT = tuple(profile for profile in PROFILES if profile.source in (TOFINO1QUIC, TOFINO2FOLDED, TOFINO2FULL))
"""The profiles that `make test` compares. `tofino1` and `tofino2` have packet tests there, and `tofino2folded` extends
`tofino2core`.
"""


@pytest.mark.parametrize("profile", long_except(KEPT, PROFILES), ids=lambda profile: Path(profile.source).stem)
def test_tofino_does_what_v1model_does(tmp_path: Path, profile: Profile) -> None:
    """Random packets have the same bytes and the same reasons of drops, outcomes included."""
    rng = random.Random(21)
    packets = profile.packets
    site = configuration(8, [9], profile.pipes, protocols=profile.protocols, quic4_policy=profile.quic4_policy)
    v1model = Switch(site, tmp_path, V1MODEL, sources=_with_ties_of_tofino(tmp_path))
    switches = [v1model, Switch(site, tmp_path, profile.source, profile.pipes)]
    came_out = 0
    now = 10**9
    for n, (from_server, frame) in zip(range(packets), frames(rng, profile.is_excluded), strict=False):
        now += 1000
        ours, theirs = (switch.send(frame, 9 if from_server else 8, time_ns=now) for switch in switches)
        assert ours == theirs, f"packet {n}: {frame.hex()}\nv1model {ours}\nTofino  {theirs}"
        came_out += len(ours)
    assert switches[0].counts() == switches[1].counts()
    assert packets // 4 < came_out < packets * 3 // 4


def _with_ties_of_tofino(folder: Path) -> Path:
    """Return the sources of the P4 program whose trees for v1model decide between equal scores as those for Tofino do."""
    sources = folder / "p4src"
    shutil.copytree(SOURCES, sources)
    shutil.copytree(REPOSITORY / "experiments" / "studies" / "p4" / "kept-ties", sources, dirs_exist_ok=True)
    return sources


@pytest.mark.parametrize("pipes", long_except((4,), (2, 4)))
def test_reports_reach_every_pipe(tmp_path: Path, pipes: int) -> None:
    """The least loaded server of a report in one pipe is that of the next SYN in each pipe."""
    rng = random.Random(pipes)
    racks = [9 + 128 * pipe for pipe in range(pipes)]
    site = configuration(8, racks, pipes)
    clients = [20 + 128 * pipe for pipe in range(1, pipes)]
    for client in clients:
        site["ports"].append({"id": client, "name": f"internet{client}", "mac": CLIENT_MAC, "role": "client"})
    switch = Switch(site, tmp_path, TOFINO2, pipes)
    for _ in range(50):
        best = rng.randrange(SERVERS)
        for server in range(SERVERS):
            busy = 0 if server == best else 20
            switch.pipeline.send(_report(server, server % pipes, busy), racks[server % pipes])
        for port in [8, *clients]:
            (found,) = switch.pipeline.send(_syn(rng), port)
            assert found[0] == racks[best % pipes]
            assert socket.inet_ntoa(found[1][30:34]) == f"10.{best % pipes}.1.{best + 16}"


def _report(server: int, rack: int, flows: int) -> bytes:
    """Return a segment of a server of the first VIP, with this number of active flows as a code."""
    head = Ether(dst=RACK_MAC, src=HOST_MAC) / IP(src=f"10.{rack}.1.{server + 16}", dst=CLIENT4)
    segment = TCP(sport=8080, dport=4000, flags="A", options=[("NOP", None), ("NOP", None), ("Timestamp", (flows << 5 | flows, 5))])
    segment.reserved = 4
    return bytes(head / segment)


def _syn(rng: random.Random) -> bytes:
    options = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (rng.getrandbits(32), 0)), ("NOP", None), ("WScale", 7)]
    head = Ether(dst=CLIENT_MAC, src=HOST_MAC) / IP(src=CLIENT4, dst=VIP4)
    return bytes(head / TCP(sport=rng.randrange(1024, 60000), dport=80, flags="S", options=options))
