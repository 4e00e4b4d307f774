"""Loads the page with every client in both forms, and asks balancer, real servers and switch what they sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..addresses import QUIC_PORT, QUIC_VIP6
from ..browsers import Site
from .clients import Client
from .loads import Load
from .pictures import INDEX, Object, index
from .world import FORMS, PageWorld

NAME = "films"
"""Of the service, in browsers' URLs."""


def load_all(world: PageWorld, clients: Sequence[Client], pictures: Sequence[Object]) -> Iterator[Load]:
    """Every client's loads, one at a time, in a world that is ready and has the page."""
    for client in clients:
        for form in FORMS:
            yield _load(world, client, form, pictures)


def _load(world: PageWorld, client: Client, form: str, pictures: Sequence[Object]) -> Load:
    page = index(pictures)
    urls = {f"/{form}/{INDEX}": page.sha256} | {f"/{form}/{picture.path}": picture.sha256 for picture in pictures}
    (folder := world.scratch / f"load-{client.name}-{form}").mkdir()
    site = Site(NAME, QUIC_VIP6, QUIC_PORT, world.scratch / "quic" / "certificate.pem")
    lines, bodies, wire = len(world.log()), world.bodies(), world.wire()
    objects = client.load(world.clients[0], folder, site, urls)
    senders = world.senders(lines, set(urls))
    return Load(client.name, form, tuple(objects), senders, _more(world.bodies(), bodies), _more(world.wire(), wire))


def _more(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """What was counted in between."""
    return {name: count - before[name] for name, count in after.items()}
