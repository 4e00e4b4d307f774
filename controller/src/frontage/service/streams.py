# SPDX-License-Identifier: Apache-2.0
"""Streams that a load balancer delegates to real servers, as the metrics of its agent count them (docs/handoff.md).

The switch cannot count them, because QUIC encrypts its packets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from frontage.config.real_servers import RealServer
from frontage.fields import split_listen

_PREFIX = "frontage_cclb7_quic_real_server_"
_FIELDS = {
    f"{_PREFIX}answers_total": "completed",
    f"{_PREFIX}aborted_total": "aborted",
    f"{_PREFIX}resumed_total": "resumed",
    f"{_PREFIX}body_bytes_total": "body_bytes",
    f"{_PREFIX}requests": "in_progress",
}
"""Fields of `Streams` by metric of `frontage-cclb7-quic`."""
_REJECTED = f"{_PREFIX}rejected_total"
_INFO = f"{_PREFIX}info"
_MAX_VALUE = 1 << 63


class MetricsError(Exception):
    """A text does not have the metrics of an agent; the message says why and what to do."""


@dataclass(slots=True)
class Streams:
    """The streams of one real server. Counts are those since the agent started."""

    completed: int = 0
    aborted: int = 0
    """Streams that were reset."""
    resumed: int = 0
    """Streams that the load balancer completed after the real server was lost."""
    in_progress: int = 0
    body_bytes: int = 0
    """Bytes of the bodies of responses."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Streams that the real server rejected and the load balancer served itself, by reason."""

    def add(self, other: Streams) -> None:
        """Add the streams that the agent counts for the same real server under another name."""
        for name in _FIELDS.values():
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count


@dataclass(slots=True)
class Delegated:
    """The streams of all real servers of one load balancer."""

    streams: dict[str, Streams] = field(default_factory=dict)
    """By the name that the agent has for the real server, which is that of its certificate."""
    addresses: dict[str, str] = field(default_factory=dict)
    """The addresses and ports of the real servers, by the same names. Older agents do not export them."""

    def match(self, real_servers: Sequence[RealServer]) -> tuple[dict[str, Streams], list[str]]:
        """Return the streams by name of the real server in the configuration, and the agent's names that match none of them.

        A real server matches by its name, or else by its address.
        """
        names = {real_server.name for real_server in real_servers}
        by_address: dict[object, str] = {
            address: real_server.name for real_server in real_servers for address in real_server.addresses
        }
        found: dict[str, Streams] = {}
        unmatched = []
        for label, streams in self.streams.items():
            name = label if label in names else by_address.get(_host(self.addresses.get(label, "")))
            if name is None:
                unmatched.append(label)
            else:
                found.setdefault(name, Streams()).add(streams)
        return found, unmatched


def parse(text: str) -> Delegated:
    """Return the streams in the metrics of an agent, in the OpenMetrics format. Raises MetricsError."""
    result = Delegated()
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                _add(result, sample)
    except ValueError as error:
        raise MetricsError(f"invalid metrics: {_shortened(error)}: give the URL of the agent's metrics") from None
    if not result.streams:
        raise MetricsError("no metrics of real servers: give the URL of an agent whose configuration has [handoff]")
    return result


def _add(result: Delegated, sample: Sample) -> None:
    label = sample.labels.get("server")
    if label is None:
        return
    if sample.name == _INFO:
        result.addresses[label] = sample.labels.get("address", "")
    elif sample.name == _REJECTED:
        result.streams.setdefault(label, Streams()).rejected[sample.labels.get("reason", "")] = _count(sample)
    elif (name := _FIELDS.get(sample.name)) is not None:
        setattr(result.streams.setdefault(label, Streams()), name, _count(sample))


def _count(sample: Sample) -> int:
    if not 0 <= sample.value < _MAX_VALUE:  # also rejects NaN
        raise ValueError(f"{sample.name} is {sample.value}")
    return int(sample.value)


def _host(address: str) -> object:
    """Return the IP address of ``address``, such as ``[2001:db8::1]:4500``, or None if it is invalid."""
    try:
        return ip_address(split_listen(address)[0])
    except ValueError:
        return None


def _shortened(error: ValueError) -> str:
    """Return the first line of a parser's message, which may contain the whole text."""
    return f"{next(iter(str(error).splitlines()), 'not OpenMetrics'):.120}"
