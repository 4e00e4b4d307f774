# SPDX-License-Identifier: Apache-2.0
"""Loads the page with every client in both forms, and reads what balancer, real servers and switch sent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.load.browsers import Site

from .clients import Client
from .loads import Load
from .pictures import INDEX, Object, index
from .testbed import FORMS, PageTestbed

NAME = "films"
"""Host name of the service in browsers' URLs."""


def load_all(testbed: PageTestbed, clients: Sequence[Client], pictures: Sequence[Object]) -> Iterator[Load]:
    """Load the page with every client, one after the other; the testbed must be ready and serve the page."""
    for client in clients:
        for form in FORMS:
            yield _load(testbed, client, form, pictures)


def _load(testbed: PageTestbed, client: Client, form: str, pictures: Sequence[Object]) -> Load:
    page = index(pictures)
    urls = {f"/{form}/{INDEX}": page.sha256} | {f"/{form}/{picture.path}": picture.sha256 for picture in pictures}
    folder = Path(tempfile.mkdtemp(prefix=f"load-{client.name}-{form}-", dir=testbed.scratch))
    site = Site(NAME, QUIC_VIP6, QUIC_PORT, testbed.scratch / "quic" / "certificate.pem")
    lines, bodies, wire = len(testbed.log()), testbed.bodies(), testbed.wire()
    objects = client.load(testbed.clients[0], folder, site, urls)
    senders = testbed.senders(lines, set(urls))
    return Load(client.name, form, tuple(objects), senders, _more(testbed.bodies(), bodies), _more(testbed.wire(), wire))


def _more(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Return the counts between two readings."""
    return {name: count - before[name] for name, count in after.items()}
