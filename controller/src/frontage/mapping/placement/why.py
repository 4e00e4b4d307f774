# SPDX-License-Identifier: Apache-2.0
"""Explains to an operator why a record has its replicas and sites."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Reconfigurer
from frontage.mapping.placement.values import Flags

TOP = 10
"""Number of regions in an explanation."""


class Bound(StrEnum):
    """The reason for the number of replicas."""

    LEAST = "F"
    MOST = "M"
    RATIO = "F + beta r/w"
    NO_UPDATES = "no updates"
    NO_READS = "no reads"


class Reason(StrEnum):
    """Why a site was chosen."""

    LOCALITY = "locality"
    RANDOM = "random"
    KEPT = "kept"
    """Chosen earlier; by the present load latencies another site would be chosen."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region with requests for a record."""

    region: int
    share: float
    """Share of the record's requests."""
    site: int | None
    """Site of the closest active replica; None without one, or without a known RTT."""
    distance: float
    """RTT plus load latency to that site in microseconds; infinite if unknown."""


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation for one record."""

    key: int
    reads: float
    writes: float
    """Reads (`reads`) and updates per second from all regions."""
    beta: float
    replicas: int
    """Number of replicas as of the last plan."""
    bound: Bound
    regions: tuple[Region, ...]
    """The regions with most requests, at most `TOP`."""
    active: tuple[int, ...]
    """Site ids."""
    planned: tuple[tuple[int, Reason], ...]
    added: tuple[int, ...]
    removed: tuple[int, ...]
    """Sites that the next epoch removes if there have been enough requests; `added` likewise."""
    requests_missing: int
    """Requests missing until the change may begin; 0 if it may begin now, or if nothing changes."""


def explain(engine: Engine, key: int, active: Flags, reconfigurer: Reconfigurer) -> Why:
    """Explain the placement of one record. ``active``: its present sites. Raises PlacementError if the record is unknown."""
    keys = np.array([key], np.uint64)
    rows = engine.known(keys)
    row = int(rows[0])
    planned = engine.masks(keys)[0]
    choice = engine.choice(rows)
    reads, writes = float(engine.reads[row]), float(engine.writes[row])
    sites = engine.sites
    missing = 0
    if (active != planned).any():
        needed = reconfigurer.policy.needed(active[None], planned[None])
        missing = max(0, int((needed - reconfigurer.since(keys))[0]))

    def ids(flags: Flags) -> tuple[int, ...]:
        return tuple(sites.ids[site] for site in np.flatnonzero(flags).tolist())

    def reason(site: int) -> Reason:
        if choice.local[0, site]:
            return Reason.LOCALITY
        return Reason.RANDOM if choice.drawn[0, site] else Reason.KEPT

    return Why(
        key,
        reads,
        writes,
        engine.beta,
        int(engine.counts[row]),
        _bound(engine, row),
        _regions(engine, row, active),
        ids(active),
        tuple((sites.ids[site], reason(site)) for site in np.flatnonzero(planned).tolist()),
        ids(planned & ~active),
        ids(active & ~planned),
        missing,
    )


def _bound(engine: Engine, row: int) -> Bound:
    usable = int(engine.sites.usable.sum())
    if engine.reads[row] == 0:
        return Bound.NO_READS
    if engine.writes[row] == 0:
        return Bound.NO_UPDATES
    if engine.counts[row] == engine.parameters.min_replicas:
        return Bound.LEAST
    return Bound.MOST if engine.counts[row] >= min(engine.parameters.max_replicas or usable, usable) else Bound.RATIO


def _regions(engine: Engine, row: int, active: Flags) -> tuple[Region, ...]:
    regions, requests = engine.regional.most_first(np.array([row]), len(engine.sites.rtts))
    total = float(requests.sum(dtype=np.float64))
    found = []
    for region, rate in zip(regions[0, :TOP].tolist(), requests[0, :TOP].tolist(), strict=True):
        if rate > 0:
            distances = np.where(active, engine.sites.rtts[region] + engine.sites.load_latency, np.inf)
            site = int(distances.argmin())
            known = bool(np.isfinite(distances[site]))
            found.append(Region(region, rate / total, engine.sites.ids[site] if known else None, float(distances[site])))
    return tuple(found)
