# SPDX-License-Identifier: Apache-2.0
"""Names, and who asks for them from where (Auspice, section 2.1 and Table 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.values import Demand, record_key
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places
from frontage_sim.wide.scenario import Names

LOOKUPS = 200.0
"""A second and name server at load 1 (figure 2); half as many updates."""
TOP = 0.1
"""The share of regions that a name's locality is about."""
_SERVICE_UPDATES = 1e-4
"""By lookups of services (section 2.1)."""


@dataclass(frozen=True)
class Workload:
    """By name; rates per second."""

    guids: tuple[str, ...]
    reads: Array
    writes: Array
    service: npt.NDArray[np.bool_]
    shares: Array
    """[name, client]: where its requests come from, lookups and updates alike; each line's sum is 1."""

    def demand(self) -> Demand:
        return Demand.dense(keys(self.guids), self.reads[:, None] * self.shares, self.writes[:, None] * self.shares)


def keys(guids: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    return np.array([record_key(guid) for guid in guids], np.uint64)


def workload(names: Names, load: float, places: Places, seed: int) -> Workload:
    """Devices are looked up as often as they move; services a third of all, by Zipf's law."""
    rng = np.random.default_rng([seed, 2])
    services = round(names.number * names.services)
    devices = names.number - services
    lookups = LOOKUPS * load * len(places.servers)
    service = np.arange(names.number) >= devices
    reads, writes = np.zeros(names.number), np.zeros(names.number)
    for rates in (reads, writes):
        drawn = rng.uniform(0.5, 1.5, devices)
        rates[:devices] = drawn / drawn.sum() * lookups / 2
    popular = 1 / np.arange(1, services + 1) ** names.zipf
    reads[devices:] = popular / popular.sum() * lookups / 2
    writes[devices:] = reads[devices:] * _SERVICE_UPDATES
    locality = np.where(service, names.service_locality, names.device_locality)
    return Workload(
        tuple(f"{'service' if is_service else 'device'}-{i}" for i, is_service in enumerate(service)),
        reads,
        writes,
        service,
        shares(rng.integers(len(places.clients), size=names.number), locality, places),
    )


def shares(centres: npt.NDArray[np.int64], locality: Array, places: Places) -> Array:
    """[name, client]: a share of the requests from the tenth of the regions that are closest to the name's own, the rest from others."""
    regions = len(places.clients)
    top = max(1, round(TOP * regions))
    near = np.argsort(places.apart[centres], axis=1, kind="stable")[:, :top]
    found = np.repeat(((1 - locality) / (regions - top))[:, None], regions, axis=1)
    np.put_along_axis(found, near, (locality / top)[:, None], axis=1)
    return found
