# SPDX-License-Identifier: Apache-2.0
"""How long updates take, by the messages that they are made of (Auspice, sections 1.2.3 and 2.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places

Sites = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Update:
    """Seconds from when a client sends it."""

    eventual: float
    """Until its nearest replica has confirmed it, having written it down."""
    eventual_everywhere: float
    """Until the last replica has it: one round."""
    ordered: float
    """Until a replica has confirmed that it has its place in the order: four one-way delays between replicas."""
    ordered_everywhere: float
    """Until the last replica has executed it: two rounds."""


def update(client: int, replicas: Sites, coordinator: int, places: Places, waits: Array) -> Update:
    """``waits``: seconds at each replica, in their order."""
    near = int(places.rtt[client, replicas].argmin())
    there = places.rtt[client, replicas[near]] / 2 + waits[near]
    back = places.rtt[client, replicas[near]] / 2
    spread = places.between[replicas[near], replicas] / 2 + np.where(np.arange(len(replicas)) == near, 0, waits)
    # Paxos: to the coordinator; accept and accepted, by a majority that it is one of; commit.
    leader = places.between[coordinator, replicas] / 2
    leading = int(np.flatnonzero(replicas == coordinator)[0])
    accepted = np.sort(2 * leader + np.where(np.arange(len(replicas)) == leading, 0, waits))[len(replicas) // 2]
    decided = there + places.between[replicas[near], coordinator] / 2 + (waits[leading] if leading != near else 0) + accepted
    return Update(
        float(there + back),
        float(there + spread.max()),
        float(decided + leader[near] + back),
        float(decided + (leader + np.where(np.arange(len(replicas)) == leading, 0, waits)).max()),
    )
