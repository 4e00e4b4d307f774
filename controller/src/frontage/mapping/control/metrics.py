"""The Prometheus metrics of the mapping, of demand and of placement."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.mapping.control.mapper import Mapper
from frontage.mapping.control.measurer import Measurer
from frontage.mapping.control.placer import Placer


def mapper_metrics(mapper: Mapper) -> Iterable[Metric]:
    counters, tables = mapper.counters, mapper.tables
    prefix = "frontage_mapping"
    yield CounterMetricFamily(f"{prefix}_rounds", "Intervals so far", value=counters.rounds)
    yield CounterMetricFamily(f"{prefix}_failures", "Intervals that the store did not let end", value=counters.failures)
    yield GaugeMetricFamily(f"{prefix}_leads", "1 if this controller computes the mapping", value=float(mapper.engine is not None))
    yield CounterMetricFamily(f"{prefix}_computations", "Computations that changed something", value=counters.computations)
    yield CounterMetricFamily(f"{prefix}_compute_seconds", "Their time, the store included", value=counters.compute_seconds)
    yield CounterMetricFamily(f"{prefix}_changed_entries", "Entries that they changed", value=counters.changed_entries)
    yield CounterMetricFamily(f"{prefix}_samples", "RTTs taken from dispatchers", value=counters.samples)
    yield CounterMetricFamily(f"{prefix}_probes", "Addresses that dispatchers were asked to probe", value=mapper.prober.probes)
    yield GaugeMetricFamily(f"{prefix}_client_prefixes", "Entries of clients' regions", value=len(tables.clients))
    yield GaugeMetricFamily(f"{prefix}_regions", "Regions in use", value=len(set(tables.clients.values())))
    yield GaugeMetricFamily(f"{prefix}_deployments", "Distinct sets of sites with their redundancy", value=len(tables.deployments))
    yield GaugeMetricFamily(f"{prefix}_services", "Services with a site", value=len(tables.services))
    yield GaugeMetricFamily(f"{prefix}_left_out", "Prefixes for whose regions there are no numbers left", value=counters.left_out)
    yield GaugeMetricFamily(f"{prefix}_memory_bytes", "Memory of the computation's arrays", value=counters.memory_bytes)
    yield GaugeMetricFamily(f"{prefix}_version", "Number of the present tables", value=tables.content)
    out = GaugeMetricFamily(f"{prefix}_site_out", "1 if no dispatcher of a site answers", labels=["site"])
    for site in mapper.sites:
        out.add_metric([str(site)], float(site in counters.sites_out))
    yield out
    up = GaugeMetricFamily(f"{prefix}_dispatcher_up", "1 if a dispatcher answered last", labels=["site", "dispatcher"])
    behind = GaugeMetricFamily(f"{prefix}_dispatcher_current", "1 if it has the present tables", labels=["site", "dispatcher"])
    pushed = CounterMetricFamily(f"{prefix}_dispatcher_entries", "Entries written to it", labels=["site", "dispatcher"])
    whole = CounterMetricFamily(f"{prefix}_dispatcher_replaced", "Times its whole table was written", labels=["site", "dispatcher"])
    for one in mapper.dispatchers:
        labels = [str(one.site), one.url]
        up.add_metric(labels, float(one.error is None))
        behind.add_metric(labels, float(one.version == tables.content))
        pushed.add_metric(labels, one.pushed)
        whole.add_metric(labels, one.replaced)
    yield from (up, behind, pushed, whole)


def demand_metrics(measurer: Measurer) -> Iterable[Metric]:
    """Of one switch."""
    counters = measurer.counters
    prefix = "frontage_demand"
    handshakes = CounterMetricFamily(
        f"{prefix}_handshakes",
        "Handshakes of clients that came in here, by service and region; 0: none",
        labels=["service", "region"],
    )
    # Prometheus' client reads on a thread of its own.
    for (service, region), count in list(counters.handshakes.items()):
        handshakes.add_metric([service, str(region)], count)
    yield handshakes
    yield CounterMetricFamily(f"{prefix}_reports", "Load reports", value=counters.reports)
    yield CounterMetricFamily(f"{prefix}_report_vectors", "Load reports with the demand by region", value=counters.vectors)
    yield CounterMetricFamily(
        f"{prefix}_new_prefixes", "Prefixes of clients in no region, that the switch told of", value=counters.learned
    )
    yield CounterMetricFamily(f"{prefix}_left_out", "New prefixes for which there was no room", value=counters.left_out)
    yield CounterMetricFamily(f"{prefix}_failures", "Readings that were not told, and are with the next", value=counters.failures)


def placement_metrics(placer: Placer) -> Iterable[Metric]:
    """Of the controller that computes."""
    counters, overhead = placer.counters, placer.reconfigurer.overhead
    prefix = "frontage_placement"
    yield CounterMetricFamily(f"{prefix}_epochs", "Epochs so far", value=counters.epochs)
    yield GaugeMetricFamily(f"{prefix}_epoch", "Number of the last one, by whichever controller", value=counters.epoch)
    epochs = GaugeMetricFamily(
        f"{prefix}_move_epoch",
        "Of each service's last move: the epoch whose demand first asked for it, that which decided it, and the last that had "
        "ended when first flights went to all of its sites",
        labels=["service", "step"],
    )
    for name, move in placer.last_moves.items():
        for step, epoch in move.items():
            if epoch is not None:
                epochs.add_metric([name, step], epoch)
    yield epochs
    yield CounterMetricFamily(f"{prefix}_reports", "Load reports taken in", value=overhead.reports)
    yield CounterMetricFamily(f"{prefix}_handshakes", "Handshakes that these told of", value=overhead.requests)
    yield CounterMetricFamily(f"{prefix}_reconfigurations", "Services that were moved", value=overhead.reconfigurations)
    yield CounterMetricFamily(f"{prefix}_moves", "Sites that services came to or left", value=counters.moves)
    yield CounterMetricFamily(
        f"{prefix}_messages", "Messages of reports and moves, as the paper counts them", value=overhead.messages
    )
    waiting = GaugeMetricFamily(
        f"{prefix}_load_latency_seconds", "What handshakes wait at a site, as its replicas measure it", labels=["site"]
    )
    for site, microseconds in placer.waiting.average.items():
        waiting.add_metric([str(site)], microseconds / 1e6)
    yield waiting
    yield GaugeMetricFamily(f"{prefix}_failed", "1 if the last epoch placed nothing", value=float(counters.error is not None))
    if counters.load is not None:
        yield GaugeMetricFamily(f"{prefix}_budget", "Handshakes a second that mu allows", value=counters.load.budget)
        yield GaugeMetricFamily(f"{prefix}_shortfall", "What is missing of it", value=counters.load.shortfall)
