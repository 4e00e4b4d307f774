"""The placement engine: from demand to sites, and from changes of demand to changes of sites.

A record is placed again only if its demand has changed, or its number of replicas because beta has. Where load latencies stay,
this gives the same as planning everything from nothing; where they change, records stay until `again` names them.
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

_TOGETHER = 256
"""Records placed in one go: their arrays fit the processor's second-level cache."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `plan` has changed."""

    beta: float
    """Auspice, equation 1; infinite where all records fit everywhere."""
    load: Load
    placed: int
    """Records that were looked at."""
    keys: Keys
    """The records whose sites are others now."""
    before: Flags
    """[record, site] of these."""
    after: Flags


class Engine:
    """The state of placement. `observe` what was measured, then `plan`, once an epoch."""

    def __init__(self, sites: Sites, parameters: Parameters):
        self.parameters = parameters
        self.chooser = Chooser(sites, parameters)
        self.findings = Findings()
        self.records = Records()
        self.regional = Regional()
        self.reads: Totals = np.empty(0)
        """By row, per second."""
        self.writes: Totals = np.empty(0)
        self.counts: Counts = np.empty(0, np.int32)
        """Replicas, as of the last plan."""
        self.beta = 0.0
        self._masks: npt.NDArray[np.uint8] = np.empty((0, -(-len(sites.ids) // 8)), np.uint8)
        self._again: Flags = np.empty(0, np.bool_)
        nowhere = np.isinf(np.where(sites.usable, sites.rtts, np.inf)).all(axis=1)
        self.findings.unreachable.update(np.flatnonzero(nowhere).tolist())

    @property
    def sites(self) -> Sites:
        return self.chooser.sites

    @property
    def nbytes(self) -> int:
        """Of the arrays."""
        mine = self.reads.nbytes + self.writes.nbytes + self.counts.nbytes + self._masks.nbytes + self._again.nbytes
        return mine + self.records.nbytes + self.regional.nbytes

    def observe(self, demand: Demand) -> None:
        """The demand for these records, instead of what was known of them. Counts in ``findings`` what it cannot use."""
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
        """These records are gone; the next plan takes them from their sites. Unknown ones are."""
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
        """How long requests wait at the sites now, for records that are placed from now on."""
        self.chooser = Chooser(self.sites.loaded(np.asarray(load_latency, np.float32)), self.parameters)

    def again(self, keys: Keys) -> None:
        """Place these records anew in the next plan, by the load latencies that are measured now."""
        self._again[self.known(keys)] = True

    def adopt(self, keys: Keys, masks: Flags) -> None:
        """Where these records are, [record, site]. They stay until their demand changes, or their number of replicas."""
        rows = self.known(keys)
        self._masks[rows] = np.packbits(masks, axis=1)
        self.counts[rows] = masks.sum(axis=1)
        self._again[rows] = False

    def plan(self) -> Plan:
        """Solve beta, and place the records that this or their demand asks to. PlacementError leaves all as it was."""
        live = np.flatnonzero(self.records.live)
        usable = self.sites.usable
        capacity = float(self.sites.capacity[usable].sum())
        found = replicate(self.reads[live], self.writes[live], capacity, int(usable.sum()), self.parameters)
        counts = self.counts.copy()
        counts[live] = found.counts
        rows = live[self._again[live] | (counts[live] != self.counts[live])]
        self.counts = counts
        self.beta = found.beta
        # Those with as many replicas together: they take as many steps.
        rows = rows[np.argsort(counts[rows], kind="stable")]
        changed, before, after = [rows[:0]], [self._masks[:0]], [self._masks[:0]]
        for first in range(0, len(rows), _TOGETHER):
            part = rows[first : first + _TOGETHER]
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
        """Where the records of these rows would be placed now, as many replicas as the last plan found."""
        regions, requests = self.regional.most_first(rows, len(self.sites.rtts))
        cost = self.parameters.write_cost / self.parameters.read_cost
        updates = (self.writes[rows] * cost).astype(np.float32)
        return self.chooser.choose(Block(self.records.keys[rows], self.counts[rows].astype(np.int64), updates, regions, requests))

    def masks(self, keys: Keys) -> Flags:
        """[record, site] as of the last plan."""
        return self._unpack(self._masks[self.known(keys)])

    def known(self, keys: Keys) -> Rows:
        """Rows of records. PlacementError names one that is unknown."""
        rows = self.records.find(keys)
        if (rows < 0).any():
            raise PlacementError(f"record {int(keys[rows < 0][0]):#018x} is not known: nothing was observed of it")
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
