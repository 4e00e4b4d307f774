# SPDX-License-Identifier: Apache-2.0
"""The choice of sites for a record's replicas: a share of them by locality, the rest at random (Auspice, section 1.2.1).

A record's choice depends only on its own demand, its number of replicas and the sites, so replica-controllers can compute their
records independently. The arithmetic is element by element in a fixed order, so the result does not depend on which records share
a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.draw import group_keys, priorities
from frontage.mapping.placement.values import Flags, Keys, Parameters, Rates, Rows, Sites, Times

_UNKNOWN = np.float32(1e9)
"""Microseconds to a site without a known RTT: farther than all others."""
_NEVER = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Block:
    """Records that are placed in one pass, and their requests by region, most requests first."""

    keys: Keys
    counts: Rows
    updates: Rates
    """Updates per second, times the cost of a write relative to a read."""
    regions: npt.NDArray[np.int64]
    """[record, rank]; the number of regions fills the rest."""
    requests: Rates
    """[record, rank]; reads and updates from the region; 0 fills the rest."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen sites as flags by [record, site]."""

    local: Flags
    """Sites chosen by locality, or because the record is at all sites."""
    drawn: Flags
    """Sites chosen at random."""

    @property
    def chosen(self) -> Flags:
        """All chosen sites."""
        found: Flags = self.local | self.drawn
        return found


class Chooser:
    """Chooses sites, for one state of the sites."""

    def __init__(self, sites: Sites, parameters: Parameters):
        self.sites = sites
        self.parameters = parameters
        known = np.where(np.isinf(sites.rtts), _UNKNOWN, sites.rtts) + sites.load_latency
        padding = np.zeros((1, len(sites.ids)), np.float32)
        self.distance: Times = np.concatenate([known, padding])
        """[region, site], RTT plus load latency; the last row is padding."""
        usable = np.where(sites.usable, self.distance, np.float32(np.inf))
        self.closest = usable.argmin(axis=1)
        self.farthest: Times = np.where(sites.usable, self.distance, 0).max(axis=1)
        self._ids = np.array(sites.ids, np.uint64)

    def choose(self, block: Block) -> Choice:
        """Return ``block.counts`` sites for each record, or all usable sites if there are fewer."""
        usable = self.sites.usable
        local = np.zeros((len(block.keys), len(usable)), np.bool_)
        everywhere = block.counts >= usable.sum()
        local[everywhere] = usable
        some = np.flatnonzero(~everywhere)
        drawn = np.zeros_like(local)
        if len(some):
            part = Block(block.keys[some], block.counts[some], block.updates[some], block.regions[some], block.requests[some])
            # Keep rounding errors of nu * counts from adding a replica.
            share = np.ceil(self.parameters.nu * part.counts - 1e-9).astype(np.int64)
            chosen = self._weigh(part, share)
            chosen |= self._nearest(part, share, chosen)
            local[some] = chosen
            seeds = group_keys(part.keys, chosen, self._ids) if self.parameters.alike else part.keys
            keys = priorities(seeds, self._ids, self.parameters.seed)
            keys[chosen | ~usable] = _NEVER
            drawn[some] = _least(keys, part.counts - chosen.sum(axis=1))
        return Choice(local, drawn)

    def _weigh(self, block: Block, share: Rows) -> Flags:
        """Choose sites by the greedy algorithm for k-medians, with one pass of exchanges.

        Each step adds the site that shortens the paths of the top regions' requests most; then each chosen site is compared with all
        others once more. The paper's "closest to the top regions" does not see that one site may serve several regions well.
        """
        regions, requests = block.regions[:, : self.parameters.weighed].T, block.requests[:, : self.parameters.weighed].T
        records, ranks = np.arange(len(share)), min(self.parameters.weighed, int(share.max()))
        taken = np.zeros((len(share), len(self.sites.ids)), np.bool_)
        barred = np.broadcast_to(~self.sites.usable, taken.shape)
        # [region, record, site]: total path time of the requests of one second.
        times = self.distance[regions] * requests[:, :, None]
        waiting = block.updates[:, None] * self.sites.load_latency
        picks = np.full((ranks, len(share)), -1)
        near = np.repeat((self.farthest[regions] * requests)[None], max(ranks, 1), axis=0)
        for rank in range(ranks):
            now, then = _total_times(times, near.min(axis=0), barred | taken)
            best = np.where(then < now[:, None], then + waiting, np.float32(np.inf)).argmin(axis=1)
            rows = records[(rank < share) & (then[records, best] < now)]
            if not len(rows):
                break
            taken[rows, best[rows]] = True
            picks[rank, rows] = best[rows]
            near[rank, :, rows] = times[:, rows, best[rows]].T
        # A single site was the best already.
        for rank in range(ranks if ranks > 1 else 0):
            rows = records[picks[rank] >= 0]
            if not len(rows):
                break
            held = picks[rank, rows]
            taken[rows, held] = False
            _, then = _total_times(times, np.delete(near, rank, axis=0).min(axis=0), barred | taken)
            then += waiting
            best = then.argmin(axis=1)[rows]
            site = np.where(then[rows, best] < then[rows, held], best, held)
            taken[rows, site] = True
            picks[rank, rows] = site
            near[rank, :, rows] = times[:, rows, site].T
        return taken

    def _nearest(self, block: Block, share: Rows, chosen: Flags) -> Flags:
        """Choose the sites closest to the regions in the order of demand. Regions whose closest site is chosen already are skipped."""
        missing = share - chosen.sum(axis=1)
        found = np.zeros_like(chosen)
        rows = np.flatnonzero(missing > 0)
        if not len(rows):
            return found
        regions, requests = block.regions[rows], block.requests[rows]
        ranks = np.full((len(rows), chosen.shape[1]), _NEVER)
        # Backwards, because the last value for a cell wins: that of the region with most demand.
        for column in range(regions.shape[1] - 1, -1, -1):
            asked = np.flatnonzero(requests[:, column] > 0)
            ranks[asked, self.closest[regions[asked, column]]] = column
        ranks[chosen[rows]] = _NEVER
        found[rows] = _least(ranks, missing[rows])
        return found


def _least(keys: Keys, wanted: Rows) -> Flags:
    """Flag in each row the ``wanted`` cells with the smallest keys, fewer if not enough cells have a key. Keys are distinct."""
    last = np.take_along_axis(np.sort(keys, axis=1), np.maximum(wanted - 1, 0)[:, None], axis=1)
    found: Flags = (keys <= last) & (keys != _NEVER) & (wanted > 0)[:, None]
    return found


def _total_times(times: Times, current: Times, barred: Flags) -> tuple[Times, Times]:
    """Return the total path time of requests now, by record, and with one more replica, by [record, site].

    ``current`` is by [region, record]. The result is infinite at ``barred`` sites. If a replica shortens no path, both values are
    equal to the last bit.
    """
    now = np.zeros(current.shape[1], np.float32)
    then = np.zeros(times.shape[1:], np.float32)
    shorter = np.empty_like(then)
    for time, region in zip(times, current, strict=True):
        np.minimum(time, region[:, None], out=shorter)
        then += shorter
        now += region
    then[barred] = np.inf
    return now, then
