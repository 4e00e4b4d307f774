# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients that get a service address from a hosts file, and the destinations of their packets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from frontage_testbed.capture import Datagram
from frontage_testbed.load.download import Done, Download
from frontage_testbed.nodes import Namespace

from .names import ZONE
from .service import ServiceTestbed
from .testbed import LONG_OBJECT

LIMIT = 60.0
"""Seconds for a download that takes about two."""
BOUND = 'mount --bind "$0" /etc/hosts && exec "$@"'


@dataclass(frozen=True)
class Binding:
    """A client's download as the network observed it."""

    whole: bool
    """True if the client reported success and has the right bytes."""
    site: str | None
    """The location of the site whose own address the client moved to; None if it stayed at the service address."""
    before: int
    """Datagrams to the service address before the site's own address answered; all of them if it never did."""
    after: int
    """Datagrams to the service address after the first one to the site's own address that followed its answer."""
    log: str
    """The end of the client's output, if the download failed."""


def download(testbed: ServiceTestbed, client: str, command: Sequence[str | Path], folder: Path) -> Binding:
    """Have a program fetch `LONG_OBJECT` by the zone's name into `folder`, which must not exist yet."""
    deadline = time.monotonic() + LIMIT
    original = testbed.directory / "objects" / LONG_OBJECT.removeprefix("/")
    transfer = prepared(testbed, testbed.client(client), command, folder, original, LIMIT)
    transfer.begin()
    # tcpdump may be behind the client: wait for the whole response.
    while (transfer.runs or _answered(transfer.seen()) < original.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    return binding(testbed, transfer.finish())


def prepared(
    testbed: ServiceTestbed, host: Namespace, command: Sequence[str | Path], folder: Path, original: Path, limit: float
) -> Download:
    """Return the download of an object by the zone's name, which takes at most `limit` seconds. It has not begun."""
    hosts = folder.with_suffix(".hosts")
    hosts.write_text(f"127.0.0.1 localhost\n{testbed.service_address} {ZONE}\n")
    return Download(["unshare", "-m", "sh", "-c", BOUND, hosts, *command], host, folder, original, limit)


def _answered(seen: Sequence[Datagram]) -> int:
    """Return the bytes sent to the client."""
    return sum(datagram.size for datagram in seen if not datagram.up)


def binding(testbed: ServiceTestbed, done: Done) -> Binding:
    """Return what the capture of a download shows."""
    service = testbed.service_address
    own = next((n for n, datagram in enumerate(done.seen) if not datagram.up and datagram.remote != service), None)
    sent = [datagram.up and datagram.remote == service for datagram in done.seen]
    log = "" if done.whole else done.log
    if own is None:
        return Binding(done.whole, None, sum(sent), 0, log)
    address = IPv6Address(done.seen[own].remote)
    site = next(s.location for s in testbed.sites if address in IPv6Network(s.cookie_prefix))
    # The client may respond to what it received earlier before it reads the answer.
    ups = (n for n, datagram in enumerate(done.seen) if n > own and datagram.up and datagram.remote != service)
    return Binding(done.whole, site, sum(sent[:own]), sum(sent[next(ups, own) :]), log)
