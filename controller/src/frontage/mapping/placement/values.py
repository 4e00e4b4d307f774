# SPDX-License-Identifier: Apache-2.0
"""The input of placement: parameters, sites, and the demand for records by region."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Rates = npt.NDArray[np.float32]
"""Requests per second."""
Times = npt.NDArray[np.float32]
"""Microseconds."""
Totals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class PlacementError(ValueError):
    """Invalid input. The text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of Auspice, section 1.2.1.

    The defaults are those of its evaluation (2.1), except for `nu` and `weighed` (docs/placement.md).
    """

    min_replicas: int = 3
    """F: least number of replicas of each record, for availability."""
    max_replicas: int | None = None
    """M: largest number of replicas; all usable sites if None."""
    mu: float = 0.7
    """The share of the sites' capacity that demand may take before records get fewer replicas."""
    nu: float = 1.0
    """The share of a record's replicas placed by locality; the others are drawn at random. The paper's prototype: 0.5."""
    weighed: int = 16
    """Number of regions with most demand whose paths are optimized jointly. With 0, as in the paper, each gets its closest site."""
    read_cost: float = 1.0
    """Capacity that a read uses at a site."""
    write_cost: float = 1.0
    """Capacity that an update uses at each replica."""
    seed: int = 0
    """Seed of the random sites."""
    alike: bool = False
    """Draw the same random sites for all records that have the same sites by locality (not in the paper).

    This gives few distinct placements, whose records can share a stream. In return, when one of a record's sites by locality changes,
    so do its random sites. Records without sites by locality draw their own.
    """

    def __post_init__(self) -> None:
        most = math.inf if self.max_replicas is None else self.max_replicas
        for good, what in (
            (self.min_replicas >= 1, "min_replicas must be at least 1"),
            (self.min_replicas <= most, "min_replicas must be at most max_replicas"),
            (0 < self.mu <= 1, "mu must be above 0 and at most 1"),
            (0 <= self.nu <= 1, "nu must be from 0 to 1"),
            (self.weighed >= 0, "weighed must be at least 0"),
            (0 < self.read_cost < math.inf, "read_cost must be positive"),
            (0 < self.write_cost < math.inf, "write_cost must be positive"),
            (0 <= self.seed < 2**64, "seed must be an unsigned 64-bit number"),
        ):
            if not good:
                raise PlacementError(what)


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites by column, and their distances from the regions."""

    ids: tuple[int, ...]
    """Site ids. A record's random sites depend on them, not on the columns."""
    capacity: Totals
    """Capacity in reads of cost 1 per second; a site with 0 gets no replicas."""
    rtts: Times
    """[region, site]; infinite where unknown."""
    load_latency: Times
    """Time that a request waits at a site because it is busy, as measured or as computed by `balance`."""

    @classmethod
    def of(
        cls,
        capacity: Sequence[float] | Totals,
        rtts: npt.ArrayLike,
        load_latency: npt.ArrayLike | None = None,
        ids: Sequence[int] | None = None,
    ) -> Sites:
        """Build the sites from anything that converts to arrays. By default, ids start at 1 and load latencies are 0."""
        number = len(capacity)
        return cls(
            tuple(range(1, number + 1) if ids is None else ids),
            np.asarray(capacity, np.float64),
            np.asarray(rtts, np.float32),
            np.zeros(number, np.float32) if load_latency is None else np.asarray(load_latency, np.float32),
        )

    def __post_init__(self) -> None:
        number = len(self.ids)
        if len(set(self.ids)) != number or not all(0 <= site < 2**32 for site in self.ids):
            raise PlacementError("site ids must be distinct 32-bit numbers")
        if self.capacity.shape != (number,) or self.load_latency.shape != (number,) or self.rtts.ndim != 2:
            raise PlacementError(f"capacity and load_latency must have one number for each of {number} sites")
        if self.rtts.shape[1] != number or not len(self.rtts):
            raise PlacementError(f"rtts has the shape {self.rtts.shape}: it must be (regions, {number})")
        if not (np.isfinite(self.capacity) & (self.capacity >= 0)).all():
            raise PlacementError(f"capacity of site {self._first(~(self.capacity >= 0))} must be finite and at least 0")
        if not (np.isfinite(self.load_latency) & (self.load_latency >= 0)).all():
            raise PlacementError(f"load_latency of site {self._first(~(self.load_latency >= 0))} must be finite and at least 0")
        if not (self.rtts >= 0).all():
            region, site = (int(where[0]) for where in np.nonzero(~(self.rtts >= 0)))
            raise PlacementError(f"the RTT from region {region} to site {self.ids[site]} must be a number and at least 0")

    def _first(self, bad: Flags) -> int:
        return self.ids[int(np.flatnonzero(bad | ~np.isfinite(self.capacity + self.load_latency))[0])]

    @property
    def usable(self) -> Flags:
        """The sites that may have replicas."""
        return self.capacity > 0

    def loaded(self, load_latency: Times) -> Sites:
        """Return the sites with other load latencies."""
        return replace(self, load_latency=load_latency)


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests per second for records by region, as rows of a sparse matrix (CSR)."""

    keys: Keys
    """`record_key` of each record's GUID."""
    starts: Rows
    """Index of each record's first entry, then the number of entries: one element more than there are records."""
    regions: npt.NDArray[np.uint16]
    reads: Rates
    writes: Rates
    """Updates per second from each entry's region."""

    @classmethod
    def of(cls, records: Mapping[str, Mapping[int, tuple[float, float]]]) -> Demand:
        """Build demand from (reads, writes) by GUID and region; for small numbers of records."""
        lengths = [len(regions) for regions in records.values()]
        cells = [(region, *rates) for regions in records.values() for region, rates in regions.items()]
        if any(not 0 <= region < 2**16 for region, _, _ in cells):
            raise PlacementError("a region must be a 16-bit number")
        return cls(
            np.array([record_key(guid) for guid in records], np.uint64),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.array([cell[0] for cell in cells], np.uint16),
            np.array([cell[1] for cell in cells], np.float32),
            np.array([cell[2] for cell in cells], np.float32),
        )

    @classmethod
    def dense(cls, keys: Keys, reads: npt.ArrayLike, writes: npt.ArrayLike) -> Demand:
        """Build demand from matrices [record, region]."""
        both = np.asarray(reads, np.float32), np.asarray(writes, np.float32)
        records, regions = both[0].shape
        starts = np.arange(records + 1, dtype=np.int64) * regions
        return cls(keys, starts, np.tile(np.arange(regions, dtype=np.uint16), records), both[0].ravel(), both[1].ravel())

    def __post_init__(self) -> None:
        entries = len(self.regions)
        if len(self.starts) != len(self.keys) + 1 or len(self.reads) != entries or len(self.writes) != entries:
            raise PlacementError("the lengths of demand's arrays do not match")
        if self.starts[0] != 0 or self.starts[-1] != entries or (np.diff(self.starts) < 0).any():
            raise PlacementError("demand's starts must ascend from 0 to the number of entries")
        if len(np.unique(self.keys)) != len(self.keys):
            raise PlacementError("demand contains a record twice")
        for name, rates in (("reads", self.reads), ("writes", self.writes)):
            # One pass in the good case: min() finds NaN and negative values, max() infinity.
            if entries and not (float(rates.min()) >= 0 and math.isfinite(float(rates.max()))):
                entry = int(np.flatnonzero(~((rates >= 0) & np.isfinite(rates)))[0])
                record = int(self.keys[np.searchsorted(self.starts, entry, side="right") - 1])
                raise PlacementError(
                    f"{name} of record {record:#018x} from region {self.regions[entry]} is {rates[entry]}: it must be finite and at least 0"
                )


@dataclass(frozen=True, slots=True)
class Load:
    """The sites' load under a plan (Auspice, equation 1), in reads of cost 1 per second."""

    budget: float
    """mu times the usable sites' capacity."""
    reads: float
    updates: float
    """Updates at all replicas."""

    @property
    def shortfall(self) -> float:
        """Load above the budget even with the fewest replicas; 0 if it fits."""
        return max(0.0, self.reads + self.updates - self.budget)


@dataclass(slots=True)
class Findings:
    """Problems of demand that was accepted nevertheless."""

    unknown_regions: int = 0
    """Number of entries from regions without RTTs. Their requests count as load, but attract no replica."""
    unreachable: set[int] = field(default_factory=set)
    """Regions without an RTT to any usable site."""


def record_key(guid: str) -> int:
    """Return the record's 64-bit number, the same on all machines: BLAKE2b of its GUID."""
    return int.from_bytes(hashlib.blake2b(guid.encode(), digest_size=8).digest(), "big")
