# SPDX-License-Identifier: Apache-2.0
"""First flights in captures."""

import socket
import struct
from pathlib import Path

import pytest

from frontage_testbed.capture import datagrams
from opening import opening

CLIENT, VIP = "2001:db8::2", "2001:db8:f::20"


def frame(source: str, destination: str, ports: tuple[int, int], payload: bytes) -> bytes:
    addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, destination)
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + addresses + udp


def pcap(path: Path, *frames: bytes) -> Path:
    path.write_bytes(
        struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames)
    )
    return path


def initial(destination_id: bytes, source_id: bytes) -> bytes:
    ids = bytes([len(destination_id)]) + destination_id + bytes([len(source_id)]) + source_id
    return (b"\xc0\0\0\0\1" + ids).ljust(1200, b"\0")


def test_first_flight_ends_with_first_response(tmp_path: Path) -> None:
    up = frame(CLIENT, VIP, (5000, 443), initial(b"chosen at random", b"me"))
    earlier = frame(VIP, CLIENT, (443, 4000), b"\x40")
    down = frame(VIP, CLIENT, (443, 5000), b"\xc0")
    seen = datagrams(pcap(tmp_path / "it.pcap", earlier, up, up, down, up))
    assert [datagram.up for datagram in seen] == [True, True, False, True]
    assert {datagram.remote for datagram in seen} == {VIP} and {datagram.local for datagram in seen} == {(CLIENT, 5000)}
    first = opening(seen)
    assert (first.datagrams, first.size, first.destination_id, first.source_id) == (2, 1200, 16, 2)


def test_capture_includes_packets_from_other_ports(tmp_path: Path) -> None:
    up = frame(CLIENT, VIP, (5000, 443), initial(b"chosen at random", b"me"))
    leak = frame("2001:db8:0:7::1", CLIENT, (8443, 5000), b"\xc0")
    assert [(datagram.up, datagram.remote) for datagram in datagrams(pcap(tmp_path / "it.pcap", up, leak))] == [
        (True, VIP),
        (False, "2001:db8:0:7::1"),
    ]


def test_late_capture_is_rejected(tmp_path: Path) -> None:
    short = frame(CLIENT, VIP, (5000, 443), b"\x40 short header")
    with pytest.raises(ValueError, match="did it start in time"):
        opening(datagrams(pcap(tmp_path / "it.pcap", short)))


def test_incomplete_frame_is_left_out(tmp_path: Path) -> None:
    path = pcap(tmp_path / "it.pcap", frame(CLIENT, VIP, (5000, 443), initial(b"12345678", b"")))
    path.write_bytes(path.read_bytes()[:-1])
    assert datagrams(path) == []
