# SPDX-License-Identifier: Apache-2.0
"""Packets of the test site, and the TCP options of real stacks."""

import random
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address

from scapy.all import IP as Ip4
from scapy.all import TCP, Ether, IPv6, Packet, Raw

from frontage_ptf.cookie import connection_bytes, connection_hash, crc16
from frontage_ptf.frame import IP, Frame

# MACs of the switch, and of the router or rack behind each port.
PORT_MAC = {port: f"02:00:00:00:00:0{port}" for port in range(1, 6)}
NEIGHBOR_MAC = {port: f"02:00:00:00:01:0{port}" for port in range(1, 6)}

NOP = b"\x01"
MSS = bytes([2, 4, 5, 0xB4])
SACK_OK = bytes([4, 2])
WINDOW_SCALE = bytes([3, 3, 7])


def timestamp(tsval: int, tsecr: int = 0) -> bytes:
    return bytes([8, 10]) + tsval.to_bytes(4, "big") + tsecr.to_bytes(4, "big")


def stamped(tsval: int, tsecr: int = 0) -> bytes:
    """Return the options of segments after the SYN, in the layout of all stacks."""
    return NOP + NOP + timestamp(tsval, tsecr)


def linux_syn(tsval: int, tsecr: int = 0) -> bytes:
    return MSS + SACK_OK + timestamp(tsval, tsecr) + NOP + WINDOW_SCALE


def windows_syn() -> bytes:
    return MSS + NOP + WINDOW_SCALE + NOP + NOP + SACK_OK


def sack(*edges: int) -> bytes:
    blocks = b"".join(edge.to_bytes(4, "big") for edge in edges)
    return NOP + NOP + bytes([5, 2 + len(blocks)]) + blocks


def ethernet(port: int) -> Packet:
    """Return the Ethernet header of frames from the neighbor of `port` to the switch."""
    return Ether(src=NEIGHBOR_MAC[port], dst=PORT_MAC[port])


def layer3(src: IP, dst: IP, ttl: int = 64, between: bytes = b"", first: int = 6) -> Packet:
    """Return an IP header. `first` is the type of the next header; `between` is raw IPv4 options or IPv6 extension
    headers."""
    if isinstance(src, IPv4Address):
        head = Ip4(src=str(src), dst=str(dst), ttl=ttl, proto=first, id=7, ihl=5 + len(between) // 4)
    else:
        head = IPv6(src=str(src), dst=str(dst), hlim=ttl, nh=first, fl=0xABCDE)
    return head / Raw(between) if between else head


def segment(sport: int, dport: int, flags: str, options: bytes = b"", payload: bytes = b"", ck: int = 0) -> Packet:
    if len(options) % 4:
        raise ValueError(f"TCP options of {len(options)} bytes are not whole words")
    head = TCP(
        sport=sport,
        dport=dport,
        flags=flags,
        seq=1000,
        ack=2000,
        window=512,
        dataofs=5 + len(options) // 4,
        reserved=ck << 2,
        chksum=0,
    )
    return head / Raw(options + payload)


@dataclass(frozen=True)
class Endpoint:
    address: IP
    port: int


@dataclass(frozen=True)
class Flow:
    """One client's connection to a VIP."""

    client: Endpoint
    vip: Endpoint

    def _key(self) -> tuple[IP, IP, int, int]:
        return self.client.address, self.vip.address, self.client.port, self.vip.port

    @property
    def hash(self) -> int:
        return connection_hash(*self._key())

    @property
    def table_index(self) -> int:
        """Index in the connection table or the handshake table."""
        return crc16(connection_bytes(*self._key()))

    def up(
        self,
        flags: str = "A",
        options: bytes = b"",
        payload: bytes = b"",
        port: int = 1,
        ttl: int = 64,
        between: bytes = b"",
        first: int = 6,
    ) -> bytes:
        """Return a segment from the client, on `port`."""
        packet = ethernet(port) / layer3(self.client.address, self.vip.address, ttl, between, first)
        packet /= segment(self.client.port, self.vip.port, flags, options, payload)
        return Frame(bytes(packet)).with_checksums()

    def down(
        self,
        server: Endpoint,
        flags: str = "A",
        options: bytes = b"",
        payload: bytes = b"",
        ck: int = 0,
        port: int = 3,
        ttl: int = 64,
    ) -> bytes:
        """Return a segment from the server, on `port`. With `ck`, TSval holds a dynamic cookie."""
        packet = ethernet(port) / layer3(server.address, self.client.address, ttl)
        packet /= segment(server.port, self.client.port, flags, options, payload, ck)
        return Frame(bytes(packet)).with_checksums()


def random_client(rng: random.Random, ipv6: bool) -> Endpoint:
    """Return a random client behind port 1."""
    if ipv6:
        address = ip_address(0x20010DB8_00010000_00000000_00000000 | rng.getrandbits(64))
    else:
        address = ip_address(0xC6336400 | rng.randrange(2, 255))
    return Endpoint(address, rng.randrange(1024, 65536))
