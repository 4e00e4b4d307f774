"""Clients as they are, to whom a hosts file says that a name is at its service address, and where their packets go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from frontage_testbed.capture import Datagram
from frontage_testbed.load.download import Done, Download

from .names import ZONE
from .testbed import LONG_OBJECT, ArtemisTestbed

LIMIT = 60.0
"""Seconds for a download that takes two."""
BOUND = 'mount --bind "$0" /etc/hosts && exec "$@"'


@dataclass(frozen=True)
class Binding:
    """What a client's network saw of a download."""

    whole: bool
    """Whether the client was content, and had the right bytes."""
    site: str | None
    """The place of the site whose own address it moved to; None if it stayed at the service address."""
    before: int
    """Datagrams that it had sent to the service address when the site's own address answered; all, if none did."""
    after: int
    """Datagrams that it sent to the service address after that."""
    log: str
    """The end of what the client said, if the download is not whole."""


def download(testbed: ArtemisTestbed, client: str, command: Sequence[str | Path], folder: Path) -> Binding:
    """Have a program fetch `LONG_OBJECT` by the zone's name into `folder`, which is not there yet."""
    deadline = time.monotonic() + LIMIT
    hosts = folder.with_suffix(".hosts")
    hosts.write_text(f"127.0.0.1 localhost\n{testbed.service_address} {ZONE}\n")
    original = testbed.directory / "objects" / LONG_OBJECT.removeprefix("/")
    told = ["unshare", "-m", "sh", "-c", BOUND, hosts, *command]
    found = Download(told, testbed.client(client), folder, original, LIMIT)
    found.begin()
    # Until all is seen: tcpdump may be behind the client.
    while (found.runs or _answered(found.seen()) < original.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    return binding(testbed, found.finish())


def _answered(seen: Sequence[Datagram]) -> int:
    """Bytes that the client was sent."""
    return sum(datagram.size for datagram in seen if not datagram.up)


def binding(testbed: ArtemisTestbed, done: Done) -> Binding:
    """Of what was seen of a download."""
    service = testbed.service_address
    own = next((n for n, datagram in enumerate(done.seen) if not datagram.up and datagram.remote != service), None)
    sent = [datagram.up and datagram.remote == service for datagram in done.seen]
    log = "" if done.whole else done.log
    if own is None:
        return Binding(done.whole, None, sum(sent), 0, log)
    address = IPv6Address(done.seen[own].remote)
    site = next(s.place for s in testbed.sites if address in IPv6Network(s.cookie_prefix))
    return Binding(done.whole, site, sum(sent[:own]), sum(sent[own:]), log)
