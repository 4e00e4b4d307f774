# SPDX-License-Identifier: Apache-2.0
"""Captures of the packets to the service address that enter each site."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from scapy.utils import RawPcapReader

from frontage_testbed.capture import Capture
from frontage_testbed.internet.addresses import client_prefix
from frontage_testbed.internet.plan import CLIENTS, SYSTEMS

from .testbed import CatchmentTestbed

NETWORKS = {client: IPv6Network(client_prefix(SYSTEMS[number])) for client, number in CLIENTS.items()}
IPV6 = 14
"""Bytes before the IPv6 header."""


@dataclass(frozen=True)
class Entry:
    """A packet to the service address."""

    at: float
    """Seconds since the epoch."""
    client: str
    source: str
    """The address of the client's host."""
    site: int
    """The site that it enters."""


class Entries:
    """The running captures, on the upstream routers' links to the sites."""

    def __init__(self, testbed: CatchmentTestbed, folder: Path) -> None:
        """`folder` is created here."""
        folder.mkdir()
        self._captures: dict[int, Capture] = {}
        for site in testbed.sites:
            router, interface = testbed.routers.interface(site.id)
            own = folder / site.name
            own.mkdir()
            what = f"outbound and udp and dst host {testbed.service_address}"
            self._captures[site.id] = Capture(router, own, interface, what=what)

    def seen(self) -> list[Entry]:
        """Return the packets so far, by time."""
        return sorted(
            (entry for site, capture in self._captures.items() for entry in _read(site, capture.file)), key=lambda e: e.at
        )

    def stop(self) -> list[Entry]:
        """Stop the captures, and return the packets."""
        for capture in self._captures.values():
            capture.end()
        return self.seen()


def _read(site: int, pcap: Path) -> list[Entry]:
    found = []
    with RawPcapReader(str(pcap)) as reader:
        for frame, metadata in reader:
            if len(frame) == metadata.caplen:
                source = IPv6Address(frame[IPV6 + 8 : IPV6 + 24])
                client = next(client for client, network in NETWORKS.items() if source in network)
                found.append(Entry(metadata.sec + metadata.usec / 1e6, client, str(source), site))
    return found
