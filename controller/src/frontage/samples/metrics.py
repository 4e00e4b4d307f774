# SPDX-License-Identifier: Apache-2.0
"""Metrics of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from frontage.samples.exporter import Exporter

KINDS = ("flow", "drop", "postcard", "lost")


def metrics(exporters: Mapping[str, Exporter]) -> Iterable[Metric]:
    """Return the metrics of the exporters, by name of their switch; nothing if sampling is off."""
    samples = CounterMetricFamily("frontage_samples", "Packet samples: sent ones by kind, and lost ones", labels=["device", "kind"])
    for device, exporter in exporters.items():
        if exporter.is_wanted:
            for kind in KINDS:
                samples.add_metric([device, kind], exporter.counts[kind])
    if samples.samples:
        yield samples
