# SPDX-License-Identifier: Apache-2.0
"""The Prometheus metrics of the mapping, of demand and of placement."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.mapping.control.mapper import Mapper
from frontage.mapping.control.measurer import Measurer
from frontage.mapping.control.placer import Placer


def mapper_metrics(mapper: Mapper) -> Iterable[Metric]:
    """Return the metrics of the mapping."""
    counters, tables = mapper.counters, mapper.tables
    prefix = "frontage_mapping"
    yield CounterMetricFamily(f"{prefix}_rounds", "Rounds of the mapping, one per interval", value=counters.rounds)
    yield CounterMetricFamily(f"{prefix}_failures", "Rounds that failed because of the store", value=counters.failures)
    yield GaugeMetricFamily(f"{prefix}_leads", "1 if this controller computes the mapping", value=float(mapper.engine is not None))
    yield CounterMetricFamily(f"{prefix}_computations", "Computations that changed the mapping", value=counters.computations)
    yield CounterMetricFamily(
        f"{prefix}_compute_seconds", "Time spent computing, store accesses included", value=counters.compute_seconds
    )
    yield CounterMetricFamily(f"{prefix}_changed_entries", "Entries changed by computations", value=counters.changed_entries)
    yield CounterMetricFamily(f"{prefix}_samples", "RTT samples read from dispatchers", value=counters.samples)
    yield CounterMetricFamily(f"{prefix}_probes", "Addresses sent to dispatchers for probing", value=mapper.prober.probes)
    yield GaugeMetricFamily(f"{prefix}_client_prefixes", "Entries of the client table", value=len(tables.clients))
    yield GaugeMetricFamily(f"{prefix}_regions", "Regions in use", value=len(set(tables.clients.values())))
    yield GaugeMetricFamily(f"{prefix}_deployments", "Distinct combinations of sites and redundancy", value=len(tables.deployments))
    yield GaugeMetricFamily(f"{prefix}_services", "Services that have a site", value=len(tables.services))
    yield GaugeMetricFamily(f"{prefix}_left_out", "Prefixes left out because of max_regions", value=counters.left_out)
    yield GaugeMetricFamily(f"{prefix}_memory_bytes", "Memory used by the computation's arrays", value=counters.memory_bytes)
    yield GaugeMetricFamily(f"{prefix}_version", "Version of the present tables", value=tables.content)
    out = GaugeMetricFamily(f"{prefix}_site_out", "1 if no dispatcher of the site answers", labels=["site"])
    for site in mapper.sites:
        out.add_metric([str(site)], float(site in counters.sites_out))
    yield out
    up = GaugeMetricFamily(
        f"{prefix}_dispatcher_up", "1 if the dispatcher answered the last request", labels=["site", "dispatcher"]
    )
    current = GaugeMetricFamily(
        f"{prefix}_dispatcher_current", "1 if the dispatcher has the present tables", labels=["site", "dispatcher"]
    )
    pushed = CounterMetricFamily(f"{prefix}_dispatcher_entries", "Entries written to the dispatcher", labels=["site", "dispatcher"])
    whole = CounterMetricFamily(
        f"{prefix}_dispatcher_replaced",
        "Times that the whole table was written",
        labels=["site", "dispatcher"],
    )
    for dispatcher in mapper.dispatchers:
        labels = [str(dispatcher.site), dispatcher.url]
        up.add_metric(labels, float(dispatcher.error is None))
        current.add_metric(labels, float(dispatcher.version == tables.content))
        pushed.add_metric(labels, dispatcher.pushed)
        whole.add_metric(labels, dispatcher.replaced)
    yield from (up, current, pushed, whole)


def demand_metrics(measurer: Measurer) -> Iterable[Metric]:
    """Return the metrics of the demand that one switch sees."""
    counters = measurer.counters
    prefix = "frontage_demand"
    handshakes = CounterMetricFamily(
        f"{prefix}_handshakes",
        "Handshakes of clients that entered at this site, by service and region (0: no region)",
        labels=["service", "region"],
    )
    # Copied, because the endpoint reads on its own thread.
    for (service, region), count in list(counters.handshakes.items()):
        handshakes.add_metric([service, str(region)], count)
    yield handshakes
    yield CounterMetricFamily(f"{prefix}_reports", "Load reports sent", value=counters.reports)
    yield CounterMetricFamily(
        f"{prefix}_report_vectors", "Load reports sent that contain the demand by region", value=counters.vectors
    )
    yield CounterMetricFamily(
        f"{prefix}_new_prefixes", "Prefixes of clients in no region, from the switch's digests", value=counters.learned
    )
    yield CounterMetricFamily(f"{prefix}_left_out", "New prefixes left out because of max_regions", value=counters.left_out)
    yield CounterMetricFamily(f"{prefix}_failures", "Readings that could not be reported yet", value=counters.failures)


def placement_metrics(placer: Placer) -> Iterable[Metric]:
    """Return the metrics of placement, at the controller that computes."""
    counters, overhead = placer.counters, placer.reconfigurer.overhead
    prefix = "frontage_placement"
    yield CounterMetricFamily(f"{prefix}_epochs", "Placement epochs at this controller", value=counters.epochs)
    yield GaugeMetricFamily(
        f"{prefix}_epoch", "Number of the last placement epoch, counted over all controllers", value=counters.epoch
    )
    epochs = GaugeMetricFamily(
        f"{prefix}_move_epoch",
        "Epochs of each service's last move: first wanted by demand (shown), decided, and first flights at all new sites (active)",
        labels=["service", "step"],
    )
    for name, move in placer.last_moves.items():
        for step, epoch in move.items():
            if epoch is not None:
                epochs.add_metric([name, step], epoch)
    yield epochs
    yield CounterMetricFamily(f"{prefix}_reports", "Load reports processed", value=overhead.reports)
    yield CounterMetricFamily(f"{prefix}_handshakes", "Handshakes in the processed load reports", value=overhead.requests)
    yield CounterMetricFamily(f"{prefix}_reconfigurations", "Moves of services", value=overhead.reconfigurations)
    yield CounterMetricFamily(f"{prefix}_moves", "Sites that services were added to or removed from", value=counters.moves)
    yield CounterMetricFamily(
        f"{prefix}_messages",
        "Messages of reports and reconfigurations, counted as in Auspice, section 1.2.5",
        value=overhead.messages,
    )
    load_latency = GaugeMetricFamily(
        f"{prefix}_load_latency_seconds", "Time that handshakes wait at a site, as measured by its replicas", labels=["site"]
    )
    for site, microseconds in placer.load_latency.average.items():
        load_latency.add_metric([str(site)], microseconds / 1e6)
    yield load_latency
    yield GaugeMetricFamily(f"{prefix}_failed", "1 if the last epoch placed nothing", value=float(counters.error is not None))
    if counters.load is not None:
        yield GaugeMetricFamily(
            f"{prefix}_budget", "Handshakes per second that mu times the capacity allows", value=counters.load.budget
        )
        yield GaugeMetricFamily(
            f"{prefix}_shortfall", "Handshakes per second missing from the budget", value=counters.load.shortfall
        )
