# SPDX-License-Identifier: Apache-2.0
"""The computation: from RTTs and deployments to regions and choices, incrementally.

Nothing is computed per service and prefix. Services with the same sites and redundancy form one *deployment*; prefixes with the same
sequence of sites share one *order*. The engine computes the choice of each deployment in each order, as a minimum over columns of
16-bit keys. A change touches only the deployments, orders and regions that it concerns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

import numpy as np

from frontage.limits import MAX_REGION
from frontage.mapping.compute import regions
from frontage.mapping.compute.choices import NO_SITE, WORDS, Choice, Deployment, Signature, best, signature
from frontage.mapping.compute.latency import Latency
from frontage.mapping.compute.orders import NONE, Margin, Orders
from frontage.mapping.compute.prefixes import Prefix, Rows
from frontage.mapping.compute.values import Changes, Measurements, Sites


class Engine:
    """The state of the mapping. Call `update` with what has changed; several kinds of change at once cost little more than one."""

    def __init__(self, sites: Iterable[int], margin: Margin, *, max_regions: int = MAX_REGION, separate_orders: bool = False):
        """``separate_orders``: put prefixes with different orders in different regions even if all deployments make the same choice
        for them. Then a region's demand shows where a service should run.
        """
        self.sites = np.array(sorted(set(sites)), np.int64)
        """Site ids, 1 to 255, by column."""
        self.latency = Latency(len(self.sites))
        self.orders = Orders(len(self.sites), margin)
        self.deployments: dict[Deployment, int] = {}
        """Numbers of the deployments, from 1."""
        self.services: dict[str, Deployment] = {}
        self.choices: dict[int, Choice] = {}
        """[region, redundancy] site ids by deployment number."""
        self.partition = regions.empty()
        self._max_regions = max_regions
        self._separate_orders = separate_orders
        self._column = {int(site): column for column, site in enumerate(self.sites)}
        self._signatures: Signature = np.empty((WORDS, 0), np.uint64)
        self._users: dict[Deployment, int] = {}
        self._numbers: list[int] = []
        self._clients = np.empty(0, np.int64)
        self._adopted: dict[Prefix, int] = {}
        self._reserved: dict[Deployment, int] = {}

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        choices = sum(choice.nbytes for choice in self.choices.values())
        return self.latency.nbytes + self.orders.nbytes + self._signatures.nbytes + choices

    def adopt(self, clients: Mapping[Prefix, int], deployments: Mapping[int, tuple[Sites, int]]) -> None:
        """Before the first `update`, take over the installed numbers, so that unchanged regions and deployments keep theirs."""
        self._adopted = dict(clients)
        for number, (sites, redundancy) in deployments.items():
            if all(site in self._column for site in sites):
                self._reserved[Deployment(tuple(sorted(self._column[site] for site in sites)), redundancy)] = number
        self._numbers = sorted(set(range(1, max(deployments, default=0) + 1)) - set(self._reserved.values()), reverse=True)

    @property
    def clients(self) -> dict[Prefix, int]:
        """The client table: regions by prefix."""
        rows = np.flatnonzero(self._clients)
        return {self.latency.cover.prefixes[row]: int(self._clients[row]) for row in rows.tolist()}

    def update(
        self, measurements: Measurements | None = None, services: Mapping[str, tuple[Iterable[int], int] | None] | None = None
    ) -> Changes:
        """Take in RTTs, and the site ids and redundancy of services (None or no sites: removed). Returns the resulting changes."""
        changes = Changes()
        if measurements is not None and len(measurements.rtts):
            self._measure(measurements)
        self._deploy(services or {}, changes)
        before = self.partition
        self.partition = regions.partition(
            self._adopt(before),
            self._active_orders(),
            self._order_signatures() if self._separate_orders else self._signatures,
            self.orders.born,
            self._max_regions,
        )
        self._choose(before, changes)
        self._update_clients(changes)
        return changes

    def order_of(self, address: IPv4Address | IPv6Address) -> Sites:
        """Return the sites with a known RTT from an address, nearest first; none if no measured prefix covers it."""
        for row in self.latency.cover.find(address):
            if self.latency.measured[row]:
                places = self.orders.places[self.orders.of_row[row]]
                return tuple(int(self.sites[column]) for column in places if column != NO_SITE)
        return ()

    def _adopt(self, before: regions.Partition) -> regions.Partition:
        if not self._adopted:
            return before
        rows = self.latency.cover.rows
        of_row = np.zeros(len(rows), np.int64)
        for prefix, region in self._adopted.items():
            if prefix in rows:
                of_row[rows[prefix]] = region
        self._adopted = {}
        return regions.Partition(of_row, before.order, before.born, 0)

    def _measure(self, measurements: Measurements) -> None:
        columns = np.zeros(256, np.int64)
        columns[self.sites] = np.arange(len(self.sites))
        rows = self.latency.update(measurements.prefixes, measurements.rows, columns[measurements.sites], measurements.rtts)
        _, new = self.orders.update(rows, self.latency.effective, self.latency.cover.rank)
        more = len(self.orders.born) - self._signatures.shape[1]
        self._signatures = np.concatenate([self._signatures, np.zeros((WORDS, more), np.uint64)], axis=1)
        if len(new):
            keys = self.orders.keys[:, new]
            total = np.zeros((WORDS, len(new)), np.uint64)
            for deployment in self.deployments:
                total += signature(best(keys, deployment), deployment)
            self._signatures[:, new] = total

    def _deploy(self, services: Mapping[str, tuple[Iterable[int], int] | None], changes: Changes) -> None:
        gone: dict[Deployment, None] = {}
        for name, wanted in services.items():
            sites, redundancy = wanted if wanted is not None else ((), 1)
            columns = tuple(sorted({self._column[site] for site in sites}))
            new = Deployment(columns, min(redundancy, len(columns))) if columns else None
            old = self.services.get(name)
            if new == old:
                continue
            if old is not None:
                self._users[old] -= 1
                gone[old] = None
            if new is not None:
                self.services[name] = new
                self._users[new] = self._users.get(new, 0) + 1
            else:
                del self.services[name]
        live = self.orders.live
        keys = self.orders.keys[:, live]
        for name in services:
            found = self.services.get(name)
            if found is not None and found not in self.deployments:
                number = self._number(found)
                self.deployments[found] = number
                self._signatures[:, live] += signature(best(keys, found), found)
                changes.deployments[number] = (tuple(self.sites[list(found.sites)].tolist()), found.redundancy)
            changes.services[name] = None if found is None else self.deployments[found]
        # After the new deployments: where tables are written entry by entry, a number freed now still has users.
        for deployment in gone:
            if self._users[deployment] == 0:
                del self._users[deployment]
                self._retire(deployment, keys, live, changes)

    def _number(self, deployment: Deployment) -> int:
        if (number := self._reserved.pop(deployment, None)) is not None:
            return number
        if self._numbers:
            return self._numbers.pop()
        return max((*self.deployments.values(), *self._reserved.values()), default=0) + 1

    def _retire(self, deployment: Deployment, keys: np.typing.NDArray[np.uint16], live: Rows, changes: Changes) -> None:
        number = self.deployments.pop(deployment, None)
        if number is None:
            return
        self._signatures[:, live] -= signature(best(keys, deployment), deployment)
        self._numbers.append(number)
        changes.deployments[number] = None
        choice = self.choices.pop(number)
        had = np.flatnonzero(choice.any(axis=1))
        if len(had):
            changes.mapping.append((number, had, np.zeros((len(had), choice.shape[1]), np.uint8)))

    def _active_orders(self) -> Rows:
        """Return each prefix's order; -1 for prefixes without a measured RTT, which are not in the client table."""
        size = len(self.latency.cover)
        return np.where(self.latency.measured[:size], self.orders.of_row[:size], -1) if size else np.empty(0, np.int64)

    def _order_signatures(self) -> Signature:
        """Return a different signature for each order."""
        return np.tile(np.arange(self._signatures.shape[1], dtype=np.uint64), (WORDS, 1))

    def _choose(self, before: regions.Partition, changes: Changes) -> None:
        """Compute the choices of regions whose representing order has changed, and all choices of new deployments."""
        now = self.partition
        size = max(len(now.order), len(before.order))
        born = [np.concatenate([part.born, np.zeros(size - len(part.born), np.int64)]) for part in (before, now)]
        changed = np.flatnonzero(born[0] != born[1])
        everywhere = np.arange(size)
        ids = np.zeros(256, np.uint8)
        ids[: len(self.sites)] = self.sites
        representatives = np.full(size, -1, np.int64)
        representatives[: len(now.order)] = now.order
        keys = {True: self._keys(representatives), False: self._keys(representatives[changed])}
        for deployment, number in self.deployments.items():
            old = self.choices.get(number)
            new = old is None
            where = everywhere if new else changed
            if not len(where):
                continue
            if old is None or len(old) < size:
                room = size if old is None else max(size, len(old) + len(old) // 2)
                grown = np.zeros((room, deployment.redundancy), np.uint8)
                if old is not None:
                    grown[: len(old)] = old
                self.choices[number] = old = grown
            fresh = ids[best(keys[new], deployment)].T
            differ = (fresh != old[where]).any(axis=1)
            if differ.any():
                old[where[differ]] = fresh[differ]
                changes.mapping.append((number, where[differ], fresh[differ]))

    def _keys(self, orders: Rows) -> np.typing.NDArray[np.uint16]:
        """Return the columns of keys of these orders; for -1 a column that chooses no site."""
        keys = (
            self.orders.keys[:, np.maximum(orders, 0)]
            if self.orders.keys.shape[1]
            else np.zeros((len(self.sites), len(orders)), np.uint16)
        )
        keys[:, orders < 0] = NONE
        return keys

    def _update_clients(self, changes: Changes) -> None:
        """Update the client table. A prefix needs an entry if its parent is in another region (RFC 4632, section 5.1)."""
        cover = self.latency.cover
        region = self.partition.of_row.copy()
        wanted = np.zeros(len(cover), np.int64)
        for level in cover.levels:
            parent = cover.parent[level]
            above = np.where(parent >= 0, region[parent], 0)
            own = region[level]
            region[level] = np.where(own > 0, own, above)
            wanted[level] = np.where((own > 0) & (own != above), own, 0)
        have = np.zeros(len(cover), np.int64)
        have[: len(self._clients)] = self._clients
        for row in np.flatnonzero(have != wanted).tolist():
            changes.clients[cover.prefixes[row]] = int(wanted[row])
        self._clients = wanted
