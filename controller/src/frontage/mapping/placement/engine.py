# SPDX-License-Identifier: Apache-2.0
"""The placement engine: from demand to sites, incrementally.

A record is placed again only if its demand has changed, or if its number of replicas has changed with beta. As long as load latencies
stay the same, the result equals that of planning from scratch. When they change, records stay where they are until `again` names them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.choose import Block, Choice, Chooser
from frontage.mapping.placement.counts import Counts, replicate
from frontage.mapping.placement.records import Records, Regional
from frontage.mapping.placement.values import (
    Demand,
    Findings,
    Flags,
    Keys,
    Load,
    Parameters,
    PlacementError,
    Rows,
    Sites,
    Times,
    Totals,
)

_CHUNK = 256
"""Records placed at a time: their arrays fit the second-level cache."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of `plan`."""

    beta: float
    """beta of Auspice, equation 1; infinite if all records fit at all sites."""
    load: Load
    placed: int
    """Number of records that were placed again."""
    keys: Keys
    """The records whose sites have changed."""
    before: Flags
    """[record, site]: their sites before."""
    after: Flags
    """[record, site]: their sites now."""


class Engine:
    """The state of placement. Once per epoch, `observe` the measured demand, then `plan`."""

    def __init__(self, sites: Sites, parameters: Parameters):
        self.parameters = parameters
        self.chooser = Chooser(sites, parameters)
        self.findings = Findings()
        self.records = Records()
        self.regional = Regional()
        self.reads: Totals = np.empty(0)
        """Reads per second by row."""
        self.writes: Totals = np.empty(0)
        """Updates per second by row."""
        self.counts: Counts = np.empty(0, np.int32)
        """Replicas by row, as of the last plan."""
        self.beta = 0.0
        self._masks: npt.NDArray[np.uint8] = np.empty((0, -(-len(sites.ids) // 8)), np.uint8)
        self._again: Flags = np.empty(0, np.bool_)
        nowhere = np.isinf(np.where(sites.usable, sites.rtts, np.inf)).all(axis=1)
        self.findings.unreachable.update(np.flatnonzero(nowhere).tolist())

    @property
    def sites(self) -> Sites:
        """The sites with their present load latencies."""
        return self.chooser.sites

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        mine = self.reads.nbytes + self.writes.nbytes + self.counts.nbytes + self._masks.nbytes + self._again.nbytes
        return mine + self.records.nbytes + self.regional.nbytes

    def observe(self, demand: Demand) -> None:
        """Replace the demand for these records. Counts unusable entries in ``findings``."""
        rows = self.records.add(demand.keys)
        self._grow(len(self.records.keys))
        of = np.repeat(np.arange(len(rows)), np.diff(demand.starts))
        self.reads[rows] = np.bincount(of, demand.reads, len(rows))
        self.writes[rows] = np.bincount(of, demand.writes, len(rows))
        known = demand.regions < len(self.sites.rtts)
        starts, regions, requests = demand.starts, demand.regions, demand.reads + demand.writes
        if not known.all():
            self.findings.unknown_regions += int((~known).sum())
            starts = np.concatenate([[0], np.cumsum(known)])[starts]
            regions, requests = regions[known], requests[known]
        self.regional.put(rows, starts, regions, requests)
        self._again[rows] = True

    def forget(self, keys: Keys) -> None:
        """Remove these records from all sites. Unknown records are ignored."""
        rows = self.records.find(keys)
        rows = rows[rows >= 0]
        empty = np.zeros(0, np.float32)
        self.regional.put(rows, np.zeros(len(rows) + 1, np.int64), empty.astype(np.uint16), empty)
        self.reads[rows] = self.writes[rows] = 0
        self.counts[rows] = 0
        self._masks[rows] = 0
        self._again[rows] = False
        self.records.remove(rows)

    def measure(self, load_latency: Times) -> None:
        """Set the load latencies, for records that are placed from now on."""
        self.chooser = Chooser(self.sites.loaded(np.asarray(load_latency, np.float32)), self.parameters)

    def again(self, keys: Keys) -> None:
        """Place these records again in the next plan, by the present load latencies."""
        self._again[self.known(keys)] = True

    def adopt(self, keys: Keys, masks: Flags) -> None:
        """Set the sites of these records, [record, site]. They stay until their demand or their number of replicas changes."""
        rows = self.known(keys)
        self._masks[rows] = np.packbits(masks, axis=1)
        self.counts[rows] = masks.sum(axis=1)
        self._again[rows] = False

    def plan(self) -> Plan:
        """Solve for beta, and place the records whose demand or number of replicas has changed.

        If it raises PlacementError, nothing has changed.
        """
        live = np.flatnonzero(self.records.live)
        usable = self.sites.usable
        capacity = float(self.sites.capacity[usable].sum())
        found = replicate(self.reads[live], self.writes[live], capacity, int(usable.sum()), self.parameters)
        counts = self.counts.copy()
        counts[live] = found.counts
        rows = live[self._again[live] | (counts[live] != self.counts[live])]
        self.counts = counts
        self.beta = found.beta
        # Sort by the number of replicas: records of one chunk then take equally many steps.
        rows = rows[np.argsort(counts[rows], kind="stable")]
        changed, before, after = [rows[:0]], [self._masks[:0]], [self._masks[:0]]
        for first in range(0, len(rows), _CHUNK):
            part = rows[first : first + _CHUNK]
            masks = np.packbits(self.choice(part).chosen, axis=1)
            differ = (masks != self._masks[part]).any(axis=1)
            changed.append(part[differ])
            before.append(self._masks[part[differ]])
            after.append(masks[differ])
            self._masks[part] = masks
        self._again[rows] = False
        keys = self.records.keys[np.concatenate(changed)]
        return Plan(
            found.beta, found.load, len(rows), keys, self._unpack(np.concatenate(before)), self._unpack(np.concatenate(after))
        )

    def choice(self, rows: Rows) -> Choice:
        """Return the sites that these rows would get now, with the numbers of replicas of the last plan."""
        regions, requests = self.regional.most_first(rows, len(self.sites.rtts))
        cost = self.parameters.write_cost / self.parameters.read_cost
        updates = (self.writes[rows] * cost).astype(np.float32)
        return self.chooser.choose(Block(self.records.keys[rows], self.counts[rows].astype(np.int64), updates, regions, requests))

    def masks(self, keys: Keys) -> Flags:
        """Return the sites by [record, site] as of the last plan."""
        return self._unpack(self._masks[self.known(keys)])

    def known(self, keys: Keys) -> Rows:
        """Return the rows of records. Raises PlacementError if one is unknown."""
        rows = self.records.find(keys)
        if (rows < 0).any():
            raise PlacementError(f"record {int(keys[rows < 0][0]):#018x} is unknown: observe its demand first")
        return rows

    def _unpack(self, masks: npt.NDArray[np.uint8]) -> Flags:
        return np.unpackbits(masks, axis=1, count=len(self.sites.ids)).view(np.bool_)

    def _grow(self, rows: int) -> None:
        more = rows - len(self.counts)
        if more <= 0:
            return
        self.reads, self.writes = (np.concatenate([old, np.zeros(more)]) for old in (self.reads, self.writes))
        self.counts = np.concatenate([self.counts, np.zeros(more, np.int32)])
        self._masks = np.concatenate([self._masks, np.zeros((more, self._masks.shape[1]), np.uint8)])
        self._again = np.concatenate([self._again, np.zeros(more, np.bool_)])
