# SPDX-License-Identifier: Apache-2.0
"""Latency of updates, as the sum of the delays of their messages (Auspice, sections 1.2.3 and 2.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.topology import Topology

Sites = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UpdateLatency:
    """Seconds from the client's request until each of four events."""

    eventual: float
    """The nearest replica has stored the update, and its confirmation has reached the client."""
    eventual_everywhere: float
    """The last replica has the update, after one round."""
    ordered: float
    """The client knows that the update has its position in the total order: four one-way delays between replicas."""
    ordered_everywhere: float
    """The last replica has executed the update, after two rounds."""


def update_latency(client: int, replicas: Sites, coordinator: int, topology: Topology, waits: Array) -> UpdateLatency:
    """Return the latency of an update. ``waits`` has the seconds that a message waits at each of the ``replicas``."""
    nearest = int(topology.rtt[client, replicas].argmin())
    request = topology.rtt[client, replicas[nearest]] / 2 + waits[nearest]
    confirmation = topology.rtt[client, replicas[nearest]] / 2
    spread = topology.server_rtt[replicas[nearest], replicas] / 2 + np.where(np.arange(len(replicas)) == nearest, 0, waits)
    # Paxos: to the coordinator; accept and accepted, by a majority that includes the coordinator; commit.
    from_leader = topology.server_rtt[coordinator, replicas] / 2
    leader = int(np.flatnonzero(replicas == coordinator)[0])
    accepted = np.sort(2 * from_leader + np.where(np.arange(len(replicas)) == leader, 0, waits))[len(replicas) // 2]
    at_leader = request + topology.server_rtt[replicas[nearest], coordinator] / 2 + (waits[leader] if leader != nearest else 0)
    ordered = at_leader + accepted
    return UpdateLatency(
        float(request + confirmation),
        float(request + spread.max()),
        float(ordered + from_leader[nearest] + confirmation),
        float(ordered + (from_leader + np.where(np.arange(len(replicas)) == leader, 0, waits)).max()),
    )
