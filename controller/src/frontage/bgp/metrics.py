# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of the announcement and of learned routes."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.bgp.announce import Export
from frontage.bgp.frr import ESTABLISHED
from frontage.bgp.learner import Learner
from frontage.bgp.speaker import Speaker


def speaker_metrics(speaker: Speaker) -> Iterable[Metric]:
    """Return the metrics, none without the section ``bgp``."""
    described = speaker.describe()
    if described is None:
        return
    labels = ["device", "neighbor"]
    up = GaugeMetricFamily("frontage_bgp_session_up", "1 if the session with the router is established", labels=labels)
    sent = GaugeMetricFamily("frontage_bgp_announced_prefixes", "Prefixes announced to the router", labels=labels)
    drops = CounterMetricFamily("frontage_bgp_session_drops", "Ended sessions with the router", labels=labels)
    for neighbor in described["neighbors"]:
        who = [neighbor["device"], neighbor["address"]]
        up.add_metric(who, float(neighbor["state"] == ESTABLISHED))
        sent.add_metric(who, neighbor["sent"])
        drops.add_metric(who, neighbor["drops"])
    exports = GaugeMetricFamily("frontage_bgp_export", "1 for what the routers of the switch learn", labels=["device", "export"])
    for name, export in speaker.announced.exports.items():
        for one in Export:
            exports.add_metric([name, one.value], float(export is one))
    withheld = GaugeMetricFamily(
        "frontage_bgp_withheld_prefixes", "Announced prefixes that are withheld from the routers of the switch", labels=["device"]
    )
    unresolved = GaugeMetricFamily(
        "frontage_bgp_unresolved_services", "Service addresses that the switch does not resolve", labels=["device"]
    )
    for name in speaker.announced.exports:
        withheld.add_metric([name], len(described["withheld"].get(name, ())))
        unresolved.add_metric([name], len(described["unresolved"].get(name, ())))
    error = GaugeMetricFamily("frontage_bgp_error", "1 if FRR cannot be configured", value=float(speaker.error is not None))
    yield from (up, sent, drops, exports, withheld, unresolved, error)


def learner_metrics(learner: Learner) -> Iterable[Metric]:
    """Return the metrics, none without the section ``bgp.learn``."""
    described = learner.describe()
    if described is None:
        return
    learned = GaugeMetricFamily("frontage_bgp_learned_routes", "Learned prefixes", labels=["device", "family"])
    paths = GaugeMetricFamily("frontage_bgp_learned_paths", "Accepted routes of the router", labels=["device", "neighbor"])
    stale = GaugeMetricFamily("frontage_bgp_stale_paths", "Stale routes of the router", labels=["device", "neighbor"])
    installed = GaugeMetricFamily("frontage_bgp_installed_routes", "Learned prefixes that the switch has", labels=["device"])
    groups = GaugeMetricFamily("frontage_bgp_groups", "Groups of next hops", labels=["device"])
    rejected = CounterMetricFamily("frontage_bgp_rejected_routes", "Rejected announcements", labels=["device", "reason"])
    for name, device in described["devices"].items():
        for family, count in device["learned"].items():
            learned.add_metric([name, family], count)
        for router in device["routers"]:
            paths.add_metric([name, router["address"]], router["routes"])
            stale.add_metric([name, router["address"]], router["stale"])
        installed.add_metric([name], device["installed"])
        groups.add_metric([name], device["groups"])
        for reason, count in device["rejected"].items():
            rejected.add_metric([name, reason], count)
    error = GaugeMetricFamily(
        "frontage_bgp_learn_error", "1 without a connection to FRR for routes", value=float(described["error"] is not None)
    )
    yield from (learned, paths, stale, installed, groups, rejected, error)
