# SPDX-License-Identifier: Apache-2.0
"""Section of the configuration about the limits on what clients send to a VIP (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from frontage.fields import IPNetwork, Model, NetworkField

_UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
MIN_BANDWIDTH = 8_000
MAX_BANDWIDTH = 10**13
MIN_BURST = 65536
"""The smallest default burst in bytes: a datagram or a batch of segments of the largest size."""


def parse_bandwidth(value: object) -> int:
    """Return the bit/s of a text such as ``100mbit``."""
    text = str(value)
    number, unit = text[:-4], text[-4:]
    if unit not in _UNITS or not number.isdecimal():
        raise ValueError("invalid bandwidth {}: must be a whole number with a unit (" + ", ".join(_UNITS) + ")")
    bandwidth = int(number) * _UNITS[unit]
    if not MIN_BANDWIDTH <= bandwidth <= MAX_BANDWIDTH:
        raise ValueError("invalid bandwidth {}: must be 8kbit to 10tbit")
    return bandwidth


Bandwidth = Annotated[int, BeforeValidator(parse_bandwidth)]


class Limit(Model):
    """Limits of all packets that a VIP or a client prefix has in common."""

    new_connections: int | None = Field(
        None, ge=1, le=10**9, description="the largest rate of new connections per second; unlimited if absent", examples=[2000]
    )
    connection_burst: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="the new connections that may begin at once after a pause; those of one second if absent",
        examples=[4000],
    )
    bandwidth: Bandwidth | None = Field(
        None, description="the largest rate of packets to the VIP in bit/s, with a unit; unlimited if absent", examples=["1gbit"]
    )
    bandwidth_burst: int | None = Field(
        None,
        ge=1518,
        le=10**10,
        description="the bytes that may arrive at once after a pause; those of 0.1 s, and at least 65536, if absent",
        examples=[1000000],
    )

    @model_validator(mode="after")
    def _burst_has_rate(self) -> Limit:
        for burst, rate in (("connection_burst", "new_connections"), ("bandwidth_burst", "bandwidth")):
            if getattr(self, burst) is not None and getattr(self, rate) is None:
                raise ValueError(f"{burst} needs {rate}")
        return self

    @property
    def connection_meter(self) -> tuple[int, int] | None:
        """Connections per second and burst; None without a limit."""
        if self.new_connections is None:
            return None
        return self.new_connections, self.connection_burst or self.new_connections

    @property
    def bandwidth_meter(self) -> tuple[int, int] | None:
        """Bytes per second and burst; None without a limit."""
        if self.bandwidth is None:
            return None
        rate = self.bandwidth // 8
        return rate, self.bandwidth_burst or max(rate // 10, MIN_BURST)


class ClientLimit(Limit):
    """Limits of the clients in one prefix, or in each of its parts."""

    prefix: NetworkField = Field(description="an IP prefix of clients without host bits", examples=["198.51.100.0/24"])
    each: int | None = Field(
        None,
        ge=0,
        le=128,
        description="the length of the parts of the prefix that have the limits separately; if absent, they share them",
        examples=[32],
    )

    @model_validator(mode="after")
    def _limits_something(self) -> ClientLimit:
        if self.new_connections is None and self.bandwidth is None:
            raise ValueError("needs new_connections or bandwidth")
        if self.each is not None and not self.prefix.prefixlen <= self.each <= self.prefix.max_prefixlen:
            raise ValueError(f"each must be {self.prefix.prefixlen} to {self.prefix.max_prefixlen} for this prefix")
        return self

    @property
    def size(self) -> int:
        """The number of prefixes with limits of their own."""
        return 1 if self.each is None else 1 << (self.each - self.prefix.prefixlen)

    @property
    def prefixes(self) -> Iterator[IPNetwork]:
        """The prefixes with limits of their own."""
        return iter((self.prefix,)) if self.each is None else self.prefix.subnets(new_prefix=self.each)


class Limits(Limit):
    """Limits of a VIP."""

    clients: tuple[ClientLimit, ...] = Field((), description="limits of client prefixes; the longest prefix applies")
