"""What a host's network sees of QUIC."""

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
"""Bytes of a frame that are kept: Ethernet, IPv6, UDP, and a long header up to its ids."""
WHOLE = 0
"""As many as there are."""
PCAP_HEADER = 24


class Capture:
    """Of what a host sends to the service and is sent by whomever, from now on."""

    def __init__(
        self,
        host: Namespace,
        folder: Path,
        interface: str = "eth0",
        snaplen: int = SNAPLEN,
        what: str = f"udp port {QUIC_PORT} or (inbound and udp)",
    ) -> None:
        """`what` is an expression of pcap-filter(7)."""
        self.file = folder / "capture.pcap"
        log = folder / "tcpdump.log"
        tcpdump = ["tcpdump", "-i", interface, "-Z", "root", "-U", "-s", str(snaplen), "-w", str(self.file), what]
        with log.open("wb") as out:
            self._process = host.spawn(tcpdump, stdout=out, stderr=out)
        # The file's own header is written when it listens.
        while not self.file.exists() or self.file.stat().st_size < PCAP_HEADER:
            if self._process.poll() is not None:
                raise NodeError(f"tcpdump does not capture: {log.read_text().strip()}")
            time.sleep(0.01)

    def datagrams(self) -> list[Datagram]:
        """What was seen so far."""
        return datagrams(self.file)

    def end(self) -> None:
        """See no more."""
        self._process.terminate()
        self._process.wait()


@dataclass(frozen=True)
class Datagram:
    """Of the service, either way."""

    up: bool
    """Whether the client sent it."""
    local: tuple[str, int]
    """The client's address and port."""
    remote: str
    """The address that is not the client's."""
    size: int
    """Bytes of UDP payload."""
    head: bytes
    """The payload's first bytes."""


def datagrams(pcap: Path) -> list[Datagram]:
    """All of the service's port in a capture of Ethernet frames, in its order, but for what an earlier connection is
    still sent.
    """
    seen = [_datagram(frame) for frame in frames(pcap)]
    at_work = {datagram.local for datagram in seen if datagram.up}
    return [datagram for datagram in seen if datagram.local in at_work]


def _datagram(frame: bytes) -> Datagram:
    version = frame[14] >> 4
    width, sources, udp = (4, 26, 34) if version == 4 else (16, 22, 54)
    addresses = [str(ip_address(frame[at : at + width])) for at in (sources, sources + width)]
    ports = struct.unpack_from(">HH", frame, udp)
    (length,) = struct.unpack_from(">H", frame, udp + 4)
    up = ports[1] == QUIC_PORT
    client, remote = (0, 1) if up else (1, 0)
    return Datagram(up, (addresses[client], ports[client]), addresses[remote], length - 8, frame[udp + 8 :])


def frames(pcap: Path) -> Iterator[bytes]:
    """Of a capture; the last one may not be written whole yet."""
    with RawPcapReader(str(pcap)) as reader:
        for frame, about in reader:
            if len(frame) == about.caplen:
                yield frame
