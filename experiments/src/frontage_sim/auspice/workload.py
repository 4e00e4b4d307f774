# SPDX-License-Identifier: Apache-2.0
"""The workload: names, their request rates, and the regions of their clients (Auspice, section 2.1 and table 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.values import Demand, record_key
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.scenario import Names
from frontage_sim.auspice.topology import Topology

LOOKUP_RATE = 200.0
"""Lookups per second and name server at load 1 (figure 2). The rate of updates is half of it."""
TOP_SHARE = 0.1
"""Share of the regions from which the share ``locality`` of a name's requests comes."""
_SERVICE_UPDATES = 1e-4
"""Updates per lookup of a service name (section 2.1)."""


@dataclass(frozen=True)
class Workload:
    """All names. Arrays are indexed by name; rates are per second."""

    guids: tuple[str, ...]
    reads: Array
    writes: Array
    service: npt.NDArray[np.bool_]
    shares: Array
    """[name, client]: share of the name's requests, lookups and updates alike; each row sums to 1."""

    def demand(self) -> Demand:
        """Return the workload in the form that placement takes."""
        return Demand.dense(record_keys(self.guids), self.reads[:, None] * self.shares, self.writes[:, None] * self.shares)


def record_keys(guids: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    """Return the placement's keys of these names."""
    return np.array([record_key(guid) for guid in guids], np.uint64)


def draw_workload(names: Names, load: float, topology: Topology, seed: int) -> Workload:
    """Return a random workload.

    A third of all requests are updates of device names, a third lookups of device names, and a third lookups of service names, whose
    popularity follows Zipf's law.
    """
    rng = np.random.default_rng([seed, 2])
    services = round(names.number * names.services)
    devices = names.number - services
    lookups = LOOKUP_RATE * load * len(topology.servers)
    service = np.arange(names.number) >= devices
    reads, writes = np.zeros(names.number), np.zeros(names.number)
    for rates in (reads, writes):
        drawn = rng.uniform(0.5, 1.5, devices)
        rates[:devices] = drawn / drawn.sum() * lookups / 2
    popularity = 1 / np.arange(1, services + 1) ** names.zipf
    reads[devices:] = popularity / popularity.sum() * lookups / 2
    writes[devices:] = reads[devices:] * _SERVICE_UPDATES
    locality = np.where(service, names.service_locality, names.device_locality)
    return Workload(
        tuple(f"{'service' if is_service else 'device'}-{i}" for i, is_service in enumerate(service)),
        reads,
        writes,
        service,
        request_shares(rng.integers(len(topology.clients), size=names.number), locality, topology),
    )


def request_shares(centres: npt.NDArray[np.int64], locality: Array, topology: Topology) -> Array:
    """Return each client's share of a name's requests, [name, client].

    The share ``locality`` comes evenly from the tenth of the regions that are closest to the name's centre, the rest from the others.
    """
    regions = len(topology.clients)
    top = max(1, round(TOP_SHARE * regions))
    near = np.argsort(topology.client_distance[centres], axis=1, kind="stable")[:, :top]
    shares = np.repeat(((1 - locality) / (regions - top))[:, None], regions, axis=1)
    np.put_along_axis(shares, near, (locality / top)[:, None], axis=1)
    return shares
