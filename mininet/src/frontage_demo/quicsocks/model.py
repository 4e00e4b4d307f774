# SPDX-License-Identifier: Apache-2.0
"""The analytical model of QuicSocks (section IV-A): round trips only, with resolver and proxy at one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["status quo", "proposal"]


@dataclass(frozen=True)
class RoundTrips:
    """Round-trip times in ms."""

    dns: float
    """Between client and resolver, and so between client and proxy."""
    direct: float
    """Between client and server."""
    server: float
    """Between proxy and server."""


LTE = RoundTrips(dns=30, direct=60, server=30)
"""The paper's example: a U.S. LTE network, with the proxy half-way."""

PUBLISHED: dict[tuple[Method, bool], float] = {
    ("status quo", False): 90,
    ("proposal", False): 60,
    ("status quo", True): 150,
    ("proposal", True): 90,
}
"""Table II in ms, by method and whether the server sends a Retry."""


def establishment(method: Method, retry: bool, times: RoundTrips) -> float:
    """Return the milliseconds until client and server have forward-secure keys, name resolution included (Table I).

    A Retry costs another round trip: the client's, or with the proposal the proxy's.
    """
    trip = times.direct if method == "status quo" else times.server
    return times.dns + (2 if retry else 1) * trip


def formula(method: Method, retry: bool) -> str:
    """Return the same in symbols."""
    trip = "RTT_direct" if method == "status quo" else "RTT_server"
    return f"RTT_DNS + {'2 ' if retry else ''}{trip}"
