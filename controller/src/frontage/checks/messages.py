# SPDX-License-Identifier: Apache-2.0
"""The messages between controller and prober: one JSON object per line.

    controller to prober   {"targets": [...], "links": [{"source": address, "gateway": address}, ...]}
    prober to controller   {"results": [[id, verdict, error, begin, end], ...], "links": {source: error or null}}

A message of the controller replaces the one before. Times are seconds of the machine's monotonic clock, which both read.
This module imports nothing of the configuration, so that the prober starts fast and stays small.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from frontage.checks.servers import Verdict


@dataclass(frozen=True, slots=True)
class Target:
    """A server to check, and how."""

    id: int
    """The number of this target in results. A changed target gets another one."""
    kind: str
    source: str
    """The checker's address."""
    sid: int
    address: str
    """The address of the service."""
    port: int
    interval: float
    timeout: float
    jitter: float
    path: str = "/"
    host: str = ""
    """The Host header and TLS server name."""
    status: tuple[int, int] = (200, 399)
    body: str | None = None
    verify: bool = True
    service: str = ""
    tls: bool = False
    command: tuple[str, ...] = ()
    is_urgent: bool = False
    """True if the first check begins at once."""


@dataclass(frozen=True, slots=True)
class Ping:
    """The pings from a source address, which show the checker's own connectivity."""

    source: str
    gateway: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check, which lasted from ``begin`` to ``end``."""

    id: int
    verdict: Verdict
    error: str | None
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Report:
    """A message of the prober."""

    results: Sequence[Result] = ()
    links: Mapping[str, str | None] = field(default_factory=dict)
    """For each source address why the checker is not connected to the switch, or None if it is. Absent: unchanged."""


def encode_order(targets: Sequence[Target], pings: Sequence[Ping]) -> bytes:
    return json.dumps({"targets": [asdict(one) for one in targets], "links": [asdict(one) for one in pings]}).encode() + b"\n"


def decode_order(line: bytes) -> tuple[list[Target], list[Ping]]:
    """Raises ValueError, TypeError and KeyError if the line is not an order."""
    order = json.loads(line)
    targets = [Target(**{**one, "status": tuple(one["status"]), "command": tuple(one["command"])}) for one in order["targets"]]
    return targets, [Ping(**one) for one in order["links"]]


def encode_report(report: Report) -> bytes:
    results = [(one.id, one.verdict, one.error, one.begin, one.end) for one in report.results]
    return json.dumps({"results": results, "links": report.links}).encode() + b"\n"


def decode_report(line: bytes) -> Report:
    """Raises ValueError, TypeError and KeyError if the line is not a report."""
    report = json.loads(line)
    results = [Result(number, Verdict(verdict), error, begin, end) for number, verdict, error, begin, end in report["results"]]
    return Report(results, report["links"])
