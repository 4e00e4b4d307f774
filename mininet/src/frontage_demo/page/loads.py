"""What comes of a page that a client loads: its objects, and who sent how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Fetched:
    """An object as its client saw it. Times are seconds since the client began to load the page."""

    path: str
    """As in the URL, from its first slash on."""
    asked: float
    """The request was made."""
    first: float
    """The answer began."""
    end: float
    """The answer's last byte came."""
    bytes: int
    """Of the body."""
    whole: bool
    """Whether the client has all of it, unchanged."""
    protocol: str
    """By which it came; HTTP/3's is h3."""


@dataclass(frozen=True)
class Load:
    """A page that a client has loaded."""

    client: str
    """Its name."""
    form: str
    """One of `testbed.FORMS`."""
    objects: tuple[Fetched, ...]
    """The page itself, then what is on it, in the page's order."""
    senders: Mapping[str, str]
    """By path, who sent it: from the balancer's log."""
    bodies: Mapping[str, int]
    """Bytes of bodies that each server sent to the client, by its own metrics."""
    wire: Mapping[str, int]
    """Bytes of packets that each server sent to the client, by the switch's counters."""

    @property
    def seconds(self) -> float:
        """From the first request to the last byte."""
        return max(o.end for o in self.objects) - self.objects[0].asked

    @property
    def handed(self) -> int:
        """Objects that real servers sent."""
        return sum(self.senders[o.path] in self._real_servers for o in self.objects)

    @property
    def failures(self) -> int:
        """Objects that are not whole, or came by something else than HTTP/3."""
        return sum(not o.whole or o.protocol != "h3" for o in self.objects)

    @property
    def _real_servers(self) -> list[str]:
        # The balancer is the first.
        return list(self.bodies)[1:]
