"""Which sites hold a record's replicas: a share of them by locality, the rest at random (Auspice, section 1.2.1).

Each record's choice is a function of its own demand, its number of replicas and the sites alone, so replica-controllers can
compute theirs apart. All arithmetic goes element by element in a fixed order, whichever records are in a block together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.draw import priorities, together
from frontage.mapping.placement.values import Flags, Keys, Parameters, Rates, Rows, Sites, Times

_UNKNOWN = np.float32(1e9)
"""Microseconds to a site of which no RTT is known: farther than all others."""
_NEVER = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Block:
    """Records that are placed together, and the requests for them by region, most first."""

    keys: Keys
    counts: Rows
    updates: Rates
    """Per second, times the cost of a write by that of a read."""
    regions: npt.NDArray[np.int64]
    """[record, place]; behind the last, the number of regions."""
    requests: Rates
    """[record, place]; reads and updates of clients there; 0 behind the last."""


@dataclass(frozen=True, slots=True)
class Choice:
    """[record, site]."""

    local: Flags
    """By locality; or because the record is everywhere."""
    drawn: Flags

    @property
    def chosen(self) -> Flags:
        found: Flags = self.local | self.drawn
        return found


class Chooser:
    """For one state of the sites."""

    def __init__(self, sites: Sites, parameters: Parameters):
        self.sites = sites
        self.parameters = parameters
        known = np.where(np.isinf(sites.rtts), _UNKNOWN, sites.rtts) + sites.load_latency
        nobody = np.zeros((1, len(sites.ids)), np.float32)
        self.distance: Times = np.concatenate([known, nobody])
        """[region, site], RTT and load latency; the last line is of nobody."""
        usable = np.where(sites.usable, self.distance, np.float32(np.inf))
        self.closest = usable.argmin(axis=1)
        self.farthest: Times = np.where(sites.usable, self.distance, 0).max(axis=1)
        self._ids = np.array(sites.ids, np.uint64)

    def choose(self, block: Block) -> Choice:
        """The sites of each record, ``block.counts`` of them, or all usable ones if these are fewer."""
        usable = self.sites.usable
        local = np.zeros((len(block.keys), len(usable)), np.bool_)
        everywhere = block.counts >= usable.sum()
        local[everywhere] = usable
        some = np.flatnonzero(~everywhere)
        drawn = np.zeros_like(local)
        if len(some):
            part = Block(block.keys[some], block.counts[some], block.updates[some], block.regions[some], block.requests[some])
            # Not a replica more for what is only the rounding of nu times a number of replicas.
            share = np.ceil(self.parameters.nu * part.counts - 1e-9).astype(np.int64)
            chosen = self._weigh(part, share)
            chosen |= self._nearest(part, share, chosen)
            local[some] = chosen
            drawn_by = together(part.keys, chosen, self._ids) if self.parameters.alike else part.keys
            keys = priorities(drawn_by, self._ids, self.parameters.seed)
            keys[chosen | ~usable] = _NEVER
            drawn[some] = _least(keys, part.counts - chosen.sum(axis=1))
        return Choice(local, drawn)

    def _weigh(self, block: Block, share: Rows) -> Flags:
        """Sites one by one, each that which shortens the way of the top regions' requests most; then each is held once more
        against all others. This stands for "the closest to the top regions", which does not see that one site serves several
        regions well, nor what the next best would do: the greedy algorithm for k-medians and a pass of exchanges.
        """
        regions, requests = block.regions[:, : self.parameters.weighed].T, block.requests[:, : self.parameters.weighed].T
        records, places = np.arange(len(share)), min(self.parameters.weighed, int(share.max()))
        taken = np.zeros((len(share), len(self.sites.ids)), np.bool_)
        barred = np.broadcast_to(~self.sites.usable, taken.shape)
        # By [region, record, site], the time that all requests of a second are on the way.
        ways = self.distance[regions] * requests[:, :, None]
        waiting = block.updates[:, None] * self.sites.load_latency
        picks = np.full((places, len(share)), -1)
        near = np.repeat((self.farthest[regions] * requests)[None], max(places, 1), axis=0)
        for place in range(places):
            now, then = _times(ways, near.min(axis=0), barred | taken)
            best = np.where(then < now[:, None], then + waiting, np.float32(np.inf)).argmin(axis=1)
            rows = records[(place < share) & (then[records, best] < now)]
            if not len(rows):
                break
            taken[rows, best[rows]] = True
            picks[place, rows] = best[rows]
            near[place, :, rows] = ways[:, rows, best[rows]].T
        # One that is alone was the best already.
        for place in range(places if places > 1 else 0):
            rows = records[picks[place] >= 0]
            if not len(rows):
                break
            held = picks[place, rows]
            taken[rows, held] = False
            _, then = _times(ways, np.delete(near, place, axis=0).min(axis=0), barred | taken)
            then += waiting
            best = then.argmin(axis=1)[rows]
            site = np.where(then[rows, best] < then[rows, held], best, held)
            taken[rows, site] = True
            picks[place, rows] = site
            near[place, :, rows] = ways[:, rows, site].T
        return taken

    def _nearest(self, block: Block, share: Rows, chosen: Flags) -> Flags:
        """The closest sites to the regions in the order of demand, past those whose closest has been chosen already."""
        missing = share - chosen.sum(axis=1)
        found = np.zeros_like(chosen)
        rows = np.flatnonzero(missing > 0)
        if not len(rows):
            return found
        regions, requests = block.regions[rows], block.requests[rows]
        place = np.full((len(rows), chosen.shape[1]), _NEVER)
        # Backwards, since of several values for a cell the last is kept: that of the region with most demand.
        for column in range(regions.shape[1] - 1, -1, -1):
            asked = np.flatnonzero(requests[:, column] > 0)
            place[asked, self.closest[regions[asked, column]]] = column
        place[chosen[rows]] = _NEVER
        found[rows] = _least(place, missing[rows])
        return found


def _least(keys: Keys, wanted: Rows) -> Flags:
    """In each line the ``wanted`` cells with the least keys, which are distinct; fewer where others have none."""
    last = np.take_along_axis(np.sort(keys, axis=1), np.maximum(wanted - 1, 0)[:, None], axis=1)
    found: Flags = (keys <= last) & (keys != _NEVER) & (wanted > 0)[:, None]
    return found


def _times(ways: Times, current: Times, barred: Flags) -> tuple[Times, Times]:
    """How long requests are on the way now, by record; and with one more replica, by [record, site]. ``current`` is by
    [region, record]; infinite at ``barred`` sites. Where a replica shortens nothing, both are the same to the last bit."""
    now = np.zeros(current.shape[1], np.float32)
    then = np.zeros(ways.shape[1:], np.float32)
    shorter = np.empty_like(then)
    for way, here in zip(ways, current, strict=True):
        np.minimum(way, here[:, None], out=shorter)
        then += shorter
        now += here
    then[barred] = np.inf
    return now, then
