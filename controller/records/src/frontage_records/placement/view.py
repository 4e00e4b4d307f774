# SPDX-License-Identifier: Apache-2.0
"""JSON documents about the placement for `frontage records placement`, and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.mapping.demand.view import finite
from frontage_records.placement.planner import Decision
from frontage_records.placement.progress import Progress


def summary(progress: Progress, guid: str | None, limit: int) -> dict[str, Any]:
    """Return the last epoch, and the records with most requests, at most ``limit``, or one record."""
    epoch = progress.epoch
    if epoch is None:
        return {"ok": True, "epoch": 0, "error": progress.error or "the first epoch has not ended", "records": []}
    decisions = epoch.decisions
    if guid is not None:
        chosen = [guid] if guid in decisions else []
    else:
        chosen = sorted(decisions, key=lambda one: (-(decisions[one].why.reads + decisions[one].why.writes), one))[:limit]
    return {
        "ok": True,
        "epoch": epoch.number,
        "error": progress.error,
        "beta": finite(epoch.beta),
        "load": {
            "budget": epoch.load.budget,
            "reads": epoch.load.reads,
            "updates": epoch.load.updates,
            "shortfall": epoch.load.shortfall,
        },
        "capacity": {str(site): value for site, value in epoch.capacity.items()},
        "rtts_us": {str(a): {str(b): finite(rtt) for b, rtt in row.items()} for a, row in epoch.rtts.items()},
        "counted": len(decisions),
        "groups": epoch.groups,
        "waiting": len(progress.waiting),
        "moves": dict(progress.counts),
        "bytes_moved": progress.bytes_moved,
        "records": [_record(progress, one, decisions[one]) for one in chosen],
    }


def _record(progress: Progress, guid: str, decision: Decision) -> dict[str, Any]:
    why = decision.why
    return {
        "guid": guid,
        "reads_per_second": why.reads,
        "writes_per_second": why.writes,
        "replicas": why.replicas,
        "bound": str(why.bound),
        "demand": [
            {"region": progress.sites[one.region], "share": one.share, "site": one.site, "rtt_us": finite(one.distance)}
            for one in why.regions
        ],
        "active": list(decision.active),
        "planned": [{"site": site, "reason": str(reason)} for site, reason in why.planned],
        "group": list(decision.wanted),
        "gain_us": finite(decision.gain.mean),
        "gain_error_us": finite(decision.gain.error),
        "state": _state(progress, guid, decision),
        "requests_missing": why.requests_missing,
        "last_move": progress.results.get(guid),
    }


def _state(progress: Progress, guid: str, decision: Decision) -> str:
    if guid in progress.waiting:
        return "waits for the limits on moves, or is moving"
    if decision.moves:
        return "moved"
    if set(decision.active) == set(decision.wanted):
        return "stays"
    if decision.is_held:
        return "held: the gain is within statistical error"
    return "waits for more requests"


def metrics(progress: Progress) -> Iterable[Metric]:
    """Return the Prometheus metrics of a progress."""
    epoch = progress.epoch
    yield CounterMetricFamily(
        "frontage_records_placement_epochs", "Epochs of placement", value=0 if epoch is None else epoch.number
    )
    moves = CounterMetricFamily("frontage_records_placement_moves", "Moves of records by result", labels=["result"])
    for result, number in sorted(progress.counts.items()):
        moves.add_metric([result], number)
    yield moves
    yield CounterMetricFamily("frontage_records_placement_bytes", "Bytes that moves have copied", value=progress.bytes_moved)
    yield GaugeMetricFamily(
        "frontage_records_placement_waiting", "Moves that are waiting or in progress", value=len(progress.waiting)
    )
    yield GaugeMetricFamily(
        "frontage_records_placement_failed", "1 if the last epoch made no decision", value=float(progress.error is not None)
    )
    if epoch is None:
        return
    yield GaugeMetricFamily("frontage_records_placement_beta", "beta of the last epoch", value=epoch.beta)
    yield GaugeMetricFamily("frontage_records_placement_counted", "Records with demand", value=len(epoch.decisions))
    yield GaugeMetricFamily(
        "frontage_records_placement_shortfall", "Demand above mu times the capacity", value=epoch.load.shortfall
    )
    capacity = GaugeMetricFamily(
        "frontage_records_placement_capacity", "Measured requests per second that a site can serve", labels=["site"]
    )
    for site, value in epoch.capacity.items():
        capacity.add_metric([str(site)], value)
    yield capacity
