# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of the announcement."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.bgp.announce import Export
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
        up.add_metric(who, float(neighbor["state"] == "Established"))
        sent.add_metric(who, neighbor["sent"])
        drops.add_metric(who, neighbor["drops"])
    exports = GaugeMetricFamily("frontage_bgp_export", "1 for what the routers of the switch learn", labels=["device", "export"])
    for name, export in speaker.announced.exports.items():
        for one in Export:
            exports.add_metric([name, one.value], float(export is one))
    error = GaugeMetricFamily("frontage_bgp_error", "1 if FRR cannot be configured", value=float(speaker.error is not None))
    yield from (up, sent, drops, exports, error)
