# SPDX-License-Identifier: Apache-2.0
"""Why requests fail: because a fault makes them impossible, or for another reason, which would be a defect.

A request is impossible if the fault leaves it no majority or no replica. The clients repeat requests until the deadline of `Routing`,
so a shorter interruption does not explain a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontage_records.errors import OutcomeUnknownError
from frontage_records.record import Consistency

from .demand_clients import Request

Placed = Mapping[str, Sequence[int]]
"""The sites of each record, first the one that orders its writes."""
ELECTION = 9.0
"""Seconds until a Raft group has another leader after it has lost one, or has come back (docs/records.md)."""
_IN_FLIGHT = 1.0
"""Seconds after the begin of a fault until no message is on a connection that the fault has broken."""


class FaultKind(StrEnum):
    """The kind of a fault."""

    SERVER = "server killed"
    REGION = "region killed"
    LINKS = "links cut"


@dataclass(frozen=True)
class Fault:
    """A fault, with its begin and end in seconds of the monotonic clock."""

    kind: FaultKind
    site: int
    begin: float
    end: float
    placed: Placed
    """The placement when it began."""


class Cause(StrEnum):
    """The reason why a request failed."""

    ORDER = "the site that orders the record cannot reach a majority or the client"
    REPLICA = "the client is cut off from all replicas"
    IN_FLIGHT = "in progress when the fault began, so that its outcome is unknown"
    OTHER = "other"


@dataclass(frozen=True)
class Failures:
    """Finds the causes of failed requests."""

    kinds: Mapping[str, Consistency]
    faults: Sequence[Fault]

    def cause(self, request: Request) -> Cause:
        """Return the cause of a failed request."""
        found = (self._caused(request, fault) for fault in self.faults if _overlaps(request, fault))
        return next((cause for cause in found if cause is not None), Cause.OTHER)

    def _caused(self, request: Request, fault: Fault) -> Cause | None:
        sites = fault.placed[request.guid]
        if self._needs_order(request) and _is_without_order(sites[0], request.region, fault):
            return Cause.ORDER
        if fault.kind is FaultKind.LINKS and request.region == fault.site and request.region not in sites:
            return Cause.REPLICA
        if request.result == OutcomeUnknownError.code and request.begin < fault.begin + _IN_FLIGHT:
            return Cause.IN_FLIGHT
        return None

    def _needs_order(self, request: Request) -> bool:
        kind = self.kinds[request.guid]
        return kind is Consistency.TOTAL or (kind.is_ordered and request.kind == "write")


def _overlaps(request: Request, fault: Fault) -> bool:
    return request.begin < fault.end + ELECTION and request.begin + request.seconds > fault.begin


def _is_without_order(home: int, region: int, fault: Fault) -> bool:
    """Return whether clients in ``region`` have no access to a majority of the site that orders the record."""
    if fault.kind is FaultKind.LINKS:
        return home != region and fault.site in (home, region)
    return home == fault.site
