"""What Prometheus gets to see of the mapping."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.enduser.run import Mapper


def metrics(mapper: Mapper) -> Iterable[Metric]:
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
