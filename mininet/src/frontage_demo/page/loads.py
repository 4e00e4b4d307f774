# SPDX-License-Identifier: Apache-2.0
"""The result of loading a page: its objects, and the bytes from each sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Fetched:
    """An object as the client received it. Times are seconds since the client began to load the page."""

    path: str
    """Path in the URL, from its first slash on."""
    asked: float
    """Time of the request."""
    first: float
    """Time of the first byte of the response."""
    end: float
    """Time of the last byte of the response."""
    bytes: int
    """Bytes of the body."""
    whole: bool
    """True if the client has the complete, unchanged object."""
    protocol: str
    """Protocol of the response; HTTP/3 is h3."""


@dataclass(frozen=True)
class Load:
    """One load of the page by a client."""

    client: str
    """The client's name."""
    form: str
    """One of `testbed.FORMS`."""
    objects: tuple[Fetched, ...]
    """The page itself, then its pictures in the page's order."""
    senders: Mapping[str, str]
    """The sender of each path, from the balancer's log."""
    bodies: Mapping[str, int]
    """Bytes of bodies from each server to the client, by the servers' own metrics."""
    wire: Mapping[str, int]
    """Bytes of packets from each server to the client, by the switch's counters."""

    @property
    def seconds(self) -> float:
        """Time from the first request to the last byte."""
        return max(o.end for o in self.objects) - self.objects[0].asked

    @property
    def handed(self) -> int:
        """Number of objects that real servers sent."""
        return sum(self.senders[o.path] in self._real_servers for o in self.objects)

    @property
    def failures(self) -> int:
        """Number of objects that are incomplete or did not use HTTP/3."""
        return sum(not o.whole or o.protocol != "h3" for o in self.objects)

    @property
    def _real_servers(self) -> list[str]:
        # The balancer is first.
        return list(self.bodies)[1:]
