# SPDX-License-Identifier: Apache-2.0
"""Captures QUIC packets on a host's interface with tcpdump."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from scapy.utils import RawPcapReader

from .datacentre.addresses import QUIC_PORT
from .nodes import Namespace, NodeError

SNAPLEN = 128
"""Bytes kept of each frame: Ethernet, IPv6, UDP, and a long header up to its connection IDs."""
WHOLE = 0
"""Snapshot length for whole frames."""
PCAP_HEADER = 24


class Capture:
    """A running capture: by default of packets to the service and of all incoming UDP packets."""

    def __init__(
        self,
        host: Namespace,
        folder: Path,
        interface: str = "eth0",
        snaplen: int = SNAPLEN,
        what: str = f"udp port {QUIC_PORT} or (inbound and udp)",
    ) -> None:
        """Start the capture. `what` is an expression of pcap-filter(7). Raises NodeError."""
        self.file = folder / "capture.pcap"
        log = folder / "tcpdump.log"
        tcpdump = ["tcpdump", "-i", interface, "-Z", "root", "-U", "-s", str(snaplen), "-w", str(self.file), what]
        with log.open("wb") as out:
            self._process = host.spawn(tcpdump, stdout=out, stderr=out)
        # tcpdump writes the file header once it listens.
        while not self.file.exists() or self.file.stat().st_size < PCAP_HEADER:
            if self._process.poll() is not None:
                raise NodeError(f"tcpdump failed: {log.read_text().strip()}")
            time.sleep(0.01)

    def datagrams(self) -> list[Datagram]:
        """Return the datagrams captured so far."""
        return datagrams(self.file)

    def end(self) -> None:
        """Stop the capture."""
        self._process.terminate()
        self._process.wait()


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram from or to the service."""

    up: bool
    """True if the client sent it."""
    local: tuple[str, int]
    """The client's address and port."""
    remote: str
    """The peer's address."""
    size: int
    """Bytes of UDP payload."""
    head: bytes
    """The payload's first bytes."""


def datagrams(pcap: Path) -> list[Datagram]:
    """Return the datagrams of the service's port in a capture of Ethernet frames, in order.

    Datagrams to a local port that sent nothing are left out: they belong to an earlier connection.
    """
    captured = [read_datagram(frame) for frame in frames(pcap)]
    active = {datagram.local for datagram in captured if datagram.up}
    return [datagram for datagram in captured if datagram.local in active]


def read_datagram(frame: bytes) -> Datagram:
    """Return the datagram in an Ethernet frame to or from the service."""
    version = frame[14] >> 4
    width, sources, udp = (4, 26, 34) if version == 4 else (16, 22, 54)
    addresses = [str(ip_address(frame[at : at + width])) for at in (sources, sources + width)]
    ports = struct.unpack_from(">HH", frame, udp)
    (length,) = struct.unpack_from(">H", frame, udp + 4)
    up = ports[1] == QUIC_PORT
    client, remote = (0, 1) if up else (1, 0)
    return Datagram(up, (addresses[client], ports[client]), addresses[remote], length - 8, frame[udp + 8 :])


def frames(pcap: Path) -> Iterator[bytes]:
    """Yield the frames of a capture. The last one is left out while it is not fully written."""
    with RawPcapReader(str(pcap)) as reader:
        for frame, metadata in reader:
            if len(frame) == metadata.caplen:
                yield frame
