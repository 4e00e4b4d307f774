# SPDX-License-Identifier: Apache-2.0
"""The Prometheus metrics of neighbor resolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.neighbors.machine import State
from frontage.neighbors.resolver import Resolver
from frontage.neighbors.table import Rejection


def neighbor_metrics(resolvers: Mapping[str, Resolver]) -> Iterable[Metric]:
    """Yield the metrics of the controllers' resolvers, by name of the switch."""
    neighbors = GaugeMetricFamily(
        "frontage_neighbors", "Neighbors that the controller resolves, by state", labels=["device", "state"]
    )
    requests = CounterMetricFamily("frontage_neighbor_requests", "Requests for Ethernet addresses", labels=["device", "kind"])
    conflicts = CounterMetricFamily(
        "frontage_neighbor_conflicts",
        "Claims of a neighbor's address while the neighbor still answered",
        labels=["device"],
    )
    rejected = CounterMetricFamily(
        "frontage_neighbor_rejected", "Rejected messages about neighbors, by reason", labels=["device", "reason"]
    )
    for device, resolver in resolvers.items():
        table = resolver.table
        states = table.states
        for state in State:
            neighbors.add_metric([device, state.value], states[state])
        for kind in ("unicast", "multicast"):
            requests.add_metric([device, kind], resolver.requests[kind])
        conflicts.add_metric([device], table.conflicts)
        for reason in Rejection:
            rejected.add_metric([device, reason.value], table.rejected[reason])
    yield from (neighbors, requests, conflicts, rejected)
