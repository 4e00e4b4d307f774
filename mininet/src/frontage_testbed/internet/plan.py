# SPDX-License-Identifier: Apache-2.0
"""The autonomous systems of the emulated Internet, and their relations (docs/catchments.md).

    AS64496 transit, Frankfurt ============ AS64497 transit, Virginia
      |        |        |                     |        |        |
    site 1  AS64500  AS64501 - - - - - - - AS64498  AS64502  AS64499
           Germany  United Kingdom        Virginia   Ohio    Tokyo
                                              |                |   |
                                           site 2         site 3  AS64503 Osaka

A line below a system leads to its customer; `=` and `-` are peerings. AS numbers are those for documentation (RFC 5398).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Relation(StrEnum):
    """The role of a neighbor for a system. It decides which routes are preferred, and which are passed on."""

    CUSTOMER = "customer"
    PEER = "peer"
    PROVIDER = "provider"


@dataclass(frozen=True)
class System:
    """An autonomous system with one router."""

    number: int
    location: str
    """The router's location in the latency matrix."""
    client: int = 0
    """The number of its network of clients; 0 without clients."""

    @property
    def name(self) -> str:
        """The host name of the router, and of the interfaces that lead to it."""
        return f"as{self.number}"


@dataclass(frozen=True)
class Adjacency:
    """A link between the routers of two systems."""

    one: int
    other: int
    other_is: Relation
    """The role of `other` for `one`."""

    def relation_of(self, number: int) -> Relation:
        """Return what the neighbor is to this system."""
        if number == self.one:
            return self.other_is
        return {Relation.CUSTOMER: Relation.PROVIDER, Relation.PROVIDER: Relation.CUSTOMER}.get(self.other_is, Relation.PEER)


@dataclass(frozen=True)
class Uplink:
    """A site, and the system that sells transit to it."""

    site: int
    location: str
    upstream: int
    prepend: int = 0
    """How many times the site prepends its AS number."""


SITE_ASN = 64511
"""The AS number of all sites."""

SYSTEMS = {
    system.number: system
    for system in (
        System(64496, "eu-central-1"),
        System(64497, "us-east-1"),
        System(64498, "us-east-1"),
        System(64499, "ap-northeast-1"),
        System(64500, "eu-central-1", client=1),
        System(64501, "eu-west-2", client=2),
        System(64502, "us-east-2", client=3),
        System(64503, "ap-northeast-3", client=4),
    )
}
ADJACENCIES = (
    Adjacency(64496, 64497, Relation.PEER),
    Adjacency(64497, 64498, Relation.CUSTOMER),
    Adjacency(64497, 64499, Relation.CUSTOMER),
    Adjacency(64496, 64500, Relation.CUSTOMER),
    Adjacency(64496, 64501, Relation.CUSTOMER),
    Adjacency(64498, 64501, Relation.PEER),
    Adjacency(64497, 64502, Relation.CUSTOMER),
    Adjacency(64499, 64503, Relation.CUSTOMER),
)
UPLINKS = (
    Uplink(1, "eu-central-1", 64496),
    Uplink(2, "us-east-1", 64498),
    # The transit in Virginia would otherwise choose between two equal routes.
    Uplink(3, "ap-northeast-1", 64499, prepend=1),
)
CLIENTS = {"Germany": 64500, "United Kingdom": 64501, "Ohio": 64502, "Osaka": 64503}
"""The clients' access networks by the names of the clients."""


def neighbors_of(number: int) -> list[tuple[int, System, Relation]]:
    """Return the index of the link, the neighbor, and what it is to a system, for each of the system's links."""
    return [
        (index, SYSTEMS[link.other if number == link.one else link.one], link.relation_of(number))
        for index, link in enumerate(ADJACENCIES)
        if number in (link.one, link.other)
    ]
