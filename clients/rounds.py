# SPDX-License-Identifier: Apache-2.0
"""The downloads of one client in a testbed, and their results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from catalogue import HERE, Client
from disturbances import readdress, rebind, restore, unreachable_cookies
from frontage.config import load
from frontage.cookie import CookieKey
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6, ClientAddresses
from frontage_testbed.datacentre.edge import EdgeCounters
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.load.download import Done, Download
from frontage_testbed.nodes import Namespace
from opening import opening

SIZE = 5_000_000
UNDER_WAY = 1_000_000
"""Bytes after which a download is past its handshake and far from its end."""
LIMIT = 60.0
"""Seconds for a download, which takes three without disturbance."""
PAGE = "page.html"


def offer(testbed: QuicTestbed) -> None:
    """Have the servers serve the object, and a page that loads it."""
    testbed.offer_objects([SIZE])
    testbed.wait_until_ready()
    shutil.copy(HERE / "programs" / PAGE, testbed.scratch / "objects")


def download_of(client: Client, program: Path, kind: str, host: Namespace, testbed: QuicTestbed) -> Download:
    """Return a client's download of the object, not yet begun."""
    folder = testbed.scratch / f"download-{client.name}-{kind}"
    values = {
        "folder": str(folder),
        "out": str(folder / str(SIZE)),
        "name": "films",
        "host": QUIC_VIP6,
        "port": str(QUIC_PORT),
        "url": f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{SIZE}",
        "path": f"/{SIZE}",
        "page": f"/{PAGE}#/{SIZE}",
        "certificate": str(testbed.scratch / "quic" / "certificate.pem"),
    }
    return Download(
        client.command(program, values, kind == "migrating"), host, folder, testbed.scratch / "objects" / str(SIZE), LIMIT
    )


class Rounds:
    """Downloads in a running testbed."""

    def __init__(self, testbed: QuicTestbed) -> None:
        self._testbed = testbed
        offer(testbed)
        self._keys: tuple[CookieKey, ...] = tuple(load(testbed.edge.config).cookie_keys)
        self._hosts = zip(testbed.client_addresses, testbed.clients.values(), strict=True)

    def downloads(self, client: Client, program: Path) -> dict[str, Any]:
        """Return the results of a client's downloads on its own host."""
        address, host = next(self._hosts)
        disturbances: dict[str, Callable[[Download], None] | None] = {
            "undisturbed": None,
            "rebound": lambda download: rebind(download, host),
            "readdressed": lambda download: readdress(download, host, address),
        }
        runs = {kind: self._download(client, program, kind, host, address, disturb) for kind, disturb in disturbances.items()}
        if runs["undisturbed"]["cookies"]:
            with unreachable_cookies(self._testbed.network[INTERNET]):
                runs["unreachable"] = self._download(client, program, "unreachable", host, address, None)
        if client.migrate:
            runs["migrating"] = self._download(client, program, "migrating", host, address, None)
        return {"migrate": " ".join(client.migrate), "runs": runs}

    def _download(
        self,
        client: Client,
        program: Path,
        kind: str,
        host: Namespace,
        address: ClientAddresses,
        disturb: Callable[[Download], None] | None,
    ) -> dict[str, Any]:
        before = self._testbed.edge.counters()
        download = download_of(client, program, kind, host, self._testbed)
        download.begin()
        disturbed = disturb is not None and download.wait_for(UNDER_WAY)
        if disturb is not None and disturbed:
            disturb(download)
        done = download.finish()
        restore(host, address)
        return self._result(done, disturbed, self._testbed.edge.counters(), before)

    def _result(self, done: Done, disturbed: bool, after: EdgeCounters, before: EdgeCounters) -> dict[str, Any]:
        sources = {datagram.remote for datagram in done.seen if not datagram.up}
        cookies = {remote for remote in sources if self._testbed.is_cookie_address(remote, self._keys)}
        return {
            "whole": done.whole,
            "status": done.status,
            "right": done.right,
            "disturbed": disturbed,
            "steering": difference(after.steering, before.steering),
            "drops": difference(after.drops, before.drops),
            "vip": QUIC_VIP6 in sources,
            "cookies": len(cookies),
            "unexpected": sorted(sources - cookies - {QUIC_VIP6}),
            "opening": asdict(opening(done.seen)) if done.seen else None,
            "clients": len({datagram.local for datagram in done.seen if not datagram.up}),
            "log": done.log,
        }


def difference(after: Any, before: Any) -> dict[str, int]:
    """Return the nonzero counts between two readings."""
    counts = {name: int(count - before.get(name, 0)) for name, count in after.items()}
    return {name: count for name, count in sorted(counts.items()) if count}
