"""What Prometheus gets to see of demand and placement."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.demand.measure import Measurer
from frontage.demand.place import Placer


def measured(measurer: Measurer) -> Iterable[Metric]:
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


def placed(placer: Placer) -> Iterable[Metric]:
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
