"""What placement is computed from: parameters, sites, and the demand for records by region."""

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
    """Input that nothing can be placed by: what is wrong with it, and where."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of the paper's section 1.2.1, with the values of its evaluation (2.1) except for `nu` and `weighed`: docs/placement.md."""

    min_replicas: int = 3
    """F: replicas of each record whatever happens, for availability."""
    max_replicas: int | None = None
    """M: all usable sites, if None."""
    mu: float = 0.7
    """The share of the sites' capacity that demand may take before records get fewer replicas."""
    nu: float = 1.0
    """The share of a record's replicas placed by locality; the others are drawn at random. The paper's prototype: 0.5."""
    weighed: int = 16
    """The regions with most demand for a record that are weighed against each other. 0 is the paper: each has its closest site."""
    read_cost: float = 1.0
    """What a read takes of a site's capacity."""
    write_cost: float = 1.0
    """What an update takes of it, at each of the replicas."""
    seed: int = 0
    """Of random places."""
    alike: bool = False
    """Random places are drawn for all records whose sites by locality are the same, not for each record: not in the paper. So there
    are few distinct placements, whose records may share what keeps them; but where one of a record's sites by locality changes, so
    do its random places. Records without any by locality have their own."""

    def __post_init__(self) -> None:
        most = math.inf if self.max_replicas is None else self.max_replicas
        for good, what in (
            (self.min_replicas >= 1, "min_replicas is less than 1"),
            (self.min_replicas <= most, "min_replicas is more than max_replicas"),
            (0 < self.mu <= 1, "mu is not above 0 and at most 1"),
            (0 <= self.nu <= 1, "nu is not from 0 to 1"),
            (self.weighed >= 0, "weighed is negative"),
            (0 < self.read_cost < math.inf, "read_cost is not positive"),
            (0 < self.write_cost < math.inf, "write_cost is not positive"),
            (0 <= self.seed < 2**64, "seed is not an unsigned number of 64 bits"),
        ):
            if not good:
                raise PlacementError(what)


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites by column, and how far the regions are from them."""

    ids: tuple[int, ...]
    """Site ids; a record's random places depend on them, not on columns."""
    capacity: Totals
    """What a site can serve, in reads of cost 1 per second; 0: it gets no replicas."""
    rtts: Times
    """[region, site]; infinite where unknown."""
    load_latency: Times
    """How long a request waits at a site for others, as measured there or by `balance`."""

    @classmethod
    def of(
        cls,
        capacity: Sequence[float] | Totals,
        rtts: npt.ArrayLike,
        load_latency: npt.ArrayLike | None = None,
        ids: Sequence[int] | None = None,
    ) -> Sites:
        """Of what can be made arrays. Ids are 1 and up if absent, load latencies 0."""
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
            raise PlacementError("site ids are not distinct numbers of 32 bits")
        if self.capacity.shape != (number,) or self.load_latency.shape != (number,) or self.rtts.ndim != 2:
            raise PlacementError(f"capacity and load_latency are not one number for each of {number} sites")
        if self.rtts.shape[1] != number or not len(self.rtts):
            raise PlacementError(f"rtts has the shape {self.rtts.shape}, not (regions, {number})")
        if not (np.isfinite(self.capacity) & (self.capacity >= 0)).all():
            raise PlacementError(f"capacity of site {self._first(~(self.capacity >= 0))} is not a finite number from 0 up")
        if not (np.isfinite(self.load_latency) & (self.load_latency >= 0)).all():
            raise PlacementError(f"load_latency of site {self._first(~(self.load_latency >= 0))} is not a finite number from 0 up")
        if not (self.rtts >= 0).all():
            region, site = (int(where[0]) for where in np.nonzero(~(self.rtts >= 0)))
            raise PlacementError(f"the RTT from region {region} to site {self.ids[site]} is negative or not a number")

    def _first(self, bad: Flags) -> int:
        return self.ids[int(np.flatnonzero(bad | ~np.isfinite(self.capacity + self.load_latency))[0])]

    @property
    def usable(self) -> Flags:
        return self.capacity > 0

    def loaded(self, load_latency: Times) -> Sites:
        """The same with other load latencies."""
        return replace(self, load_latency=load_latency)


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests per second for records by region, as rows of a sparse matrix (CSR)."""

    keys: Keys
    """A record each: `record_key` of its GUID."""
    starts: Rows
    """Where the record's entries start, and the end of the last: one more than there are records."""
    regions: npt.NDArray[np.uint16]
    reads: Rates
    writes: Rates
    """Updates, by the region that they come from."""

    @classmethod
    def of(cls, records: Mapping[str, Mapping[int, tuple[float, float]]]) -> Demand:
        """Of (reads, writes) by GUID and region; for few of them."""
        lengths = [len(regions) for regions in records.values()]
        cells = [(region, *rates) for regions in records.values() for region, rates in regions.items()]
        if any(not 0 <= region < 2**16 for region, _, _ in cells):
            raise PlacementError("a region is not a number of 16 bits")
        return cls(
            np.array([record_key(guid) for guid in records], np.uint64),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.array([cell[0] for cell in cells], np.uint16),
            np.array([cell[1] for cell in cells], np.float32),
            np.array([cell[2] for cell in cells], np.float32),
        )

    @classmethod
    def dense(cls, keys: Keys, reads: npt.ArrayLike, writes: npt.ArrayLike) -> Demand:
        """Of matrices [record, region]."""
        both = np.asarray(reads, np.float32), np.asarray(writes, np.float32)
        records, regions = both[0].shape
        starts = np.arange(records + 1, dtype=np.int64) * regions
        return cls(keys, starts, np.tile(np.arange(regions, dtype=np.uint16), records), both[0].ravel(), both[1].ravel())

    def __post_init__(self) -> None:
        entries = len(self.regions)
        if len(self.starts) != len(self.keys) + 1 or len(self.reads) != entries or len(self.writes) != entries:
            raise PlacementError("demand has arrays of lengths that do not fit each other")
        if self.starts[0] != 0 or self.starts[-1] != entries or (np.diff(self.starts) < 0).any():
            raise PlacementError("demand has starts that are not ascending from 0 to the number of entries")
        if len(np.unique(self.keys)) != len(self.keys):
            raise PlacementError("demand has a record twice")
        for name, rates in (("reads", self.reads), ("writes", self.writes)):
            # One look at the whole, for a large one: a NaN is the least, infinity the sum.
            if entries and not (float(rates.min()) >= 0 and math.isfinite(float(rates.max()))):
                entry = int(np.flatnonzero(~((rates >= 0) & np.isfinite(rates)))[0])
                record = int(self.keys[np.searchsorted(self.starts, entry, side="right") - 1])
                raise PlacementError(f"{name} of record {record:#018x} from region {self.regions[entry]} is {rates[entry]}")


@dataclass(frozen=True, slots=True)
class Load:
    """What the sites have to do by a plan (Auspice, equation 1), in reads of cost 1 per second."""

    budget: float
    """mu times the usable sites' capacity."""
    reads: float
    updates: float
    """At all replicas together."""

    @property
    def shortfall(self) -> float:
        """What is missing even with the fewest replicas; 0 where it fits."""
        return max(0.0, self.reads + self.updates - self.budget)


@dataclass(slots=True)
class Findings:
    """What was wrong with demand that was taken in all the same."""

    unknown_regions: int = 0
    """Entries of regions that no RTT is known of: their requests count as load, and draw no replica to them."""
    unreachable: set[int] = field(default_factory=set)
    """Regions that have no RTT to any usable site."""


def record_key(guid: str) -> int:
    """The record's number of 64 bits, the same everywhere: BLAKE2b of its GUID."""
    return int.from_bytes(hashlib.blake2b(guid.encode(), digest_size=8).digest(), "big")
