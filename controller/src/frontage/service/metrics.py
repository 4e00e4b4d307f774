# SPDX-License-Identifier: Apache-2.0
"""The metrics for Prometheus. Every scrape reads the counters of the switches, so its values are current."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from frontage.config import Config
from frontage.neighbors.metrics import neighbor_metrics
from frontage.p4.entities import Count
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet
from frontage.service.health import DURATIONS, Health, Phase
from frontage.service.status import Counters, read_counters, spilling

log = logging.getLogger(__name__)

SCRAPE_TIMEOUT = 10.0
"""Seconds that a scrape waits for a switch."""


class FrontageCollector(Collector):
    """Collects the metrics of the controllers of a fleet and of their switches."""

    def __init__(self, fleet: Fleet, loop: asyncio.AbstractEventLoop, extra: Callable[[], Iterable[Metric]] | None = None):
        self._fleet = fleet
        self._extra = extra
        self._loop = loop

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics. Runs on the endpoint's thread."""
        controllers = dict(self._fleet.controllers)
        yield from _controller_metrics(controllers)
        yield from neighbor_metrics({name: controller.neighbors for name, controller in controllers.items()})
        if self._extra is not None:
            yield from self._extra()
        yield from _counter_metrics(self._read_counters(controllers))

    def _read_counters(self, controllers: Mapping[str, Controller]) -> dict[str, tuple[Config, Counters]]:
        """Return the counters of all switches that can be read, by name, with the configuration that tells what they count."""
        configs = {name: controller.config for name, controller in controllers.items()}
        reads = {
            name: asyncio.run_coroutine_threadsafe(_read(controller, configs[name]), self._loop)
            for name, controller in controllers.items()
        }
        result: dict[str, tuple[Config, Counters]] = {}
        for name, read in reads.items():
            try:
                counters = read.result(SCRAPE_TIMEOUT)
            except (SwitchError, PipelineError, TimeoutError) as error:
                log.warning("%s: cannot read counters for a scrape: %s", name, error)
                continue
            if counters is not None:
                result[name] = configs[name], counters
        return result


async def _read(controller: Controller, config: Config) -> Counters | None:
    if controller.session is None or controller.pipeline is None:
        return None
    return await read_counters(controller.session, controller.pipeline.schema, config, controller.vip_ids)


def _controller_metrics(controllers: Mapping[str, Controller]) -> Iterable[Metric]:
    phase = GaugeMetricFamily("frontage_phase", "1 for the current phase of the controller", labels=["device", "phase"])
    primary = GaugeMetricFamily("frontage_primary", "1 if this controller is the primary of the switch", labels=["device"])
    connections = CounterMetricFamily("frontage_switch_connections", "Connections to the switch", labels=["device"])
    pipelines = CounterMetricFamily("frontage_pipeline_installs", "Installations of the pipeline", labels=["device"])
    failures = CounterMetricFamily("frontage_failures", "Failed reconciliations and sessions", labels=["device"])
    entries = GaugeMetricFamily("frontage_desired_entries", "Entries that the configuration requires", labels=["device"])
    writes = CounterMetricFamily("frontage_entry_writes", "Written entries", labels=["device", "kind"])
    durations = HistogramMetricFamily("frontage_reconcile_duration_seconds", "Duration of reconciliations", labels=["device"])
    spills = GaugeMetricFamily("frontage_zone_spills", "VIPs for which the switch uses servers of other zones", labels=["device"])
    for device, controller in controllers.items():
        health = controller.health
        for name in Phase:
            phase.add_metric([device, name.value], float(health.phase is name))
        primary.add_metric([device], float(controller.primary))
        connections.add_metric([device], health.connections)
        pipelines.add_metric([device], health.pipelines_set)
        failures.add_metric([device], health.failures)
        entries.add_metric([device], health.last.entries if health.last else 0)
        for kind, count in health.writes.items():
            writes.add_metric([device, kind], count)
        durations.add_metric([device], _buckets(health), health.seconds_total)
        spills.add_metric([device], len(spilling(controller.config)))
    yield from (phase, primary, connections, pipelines, failures, entries, writes, durations, spills)


def _buckets(health: Health) -> list[tuple[str, float]]:
    """Return the cumulative histogram of durations, by upper bound in seconds."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound in DURATIONS:
        below += health.seconds[bound]
        buckets.append(("+Inf" if bound == math.inf else str(bound), float(below)))
    return buckets


def _counter_metrics(switches: Mapping[str, tuple[Config, Counters]]) -> Iterable[Metric]:
    for unit in ("packets", "bytes"):
        yield from _unit_metrics(switches, unit)
    claims = CounterMetricFamily(
        "frontage_connection_table_inserts", "Insertions into the connection table, by result", labels=["device", "result"]
    )
    handshakes = CounterMetricFamily(
        "frontage_handshake_table_inserts", "Insertions into the handshake table, by result", labels=["device", "result"]
    )
    segments = CounterMetricFamily(
        "frontage_remote_server_segment_sizes",
        "Maximum segment sizes in SYNs and SYN-ACKs of remote servers, by what happened to them",
        labels=["device", "result"],
    )
    syns = CounterMetricFamily(
        "frontage_syn_packets",
        "Packets of the defence of a VIP against SYN floods: SYNs passed and answered, acknowledgments completed, packets refused",
        labels=["device", "vip", "kind"],
    )
    states = GaugeMetricFamily("frontage_server_active", "1 if a server gets new connections", labels=["device", "vip", "server"])
    for device, (config, counters) in switches.items():
        by_result = ((claims, counters.claims), (handshakes, counters.handshakes), (segments, counters.segments))
        for family, counts in by_result:
            for result, count in counts.items():
                family.add_metric([device, result], count.packets)
        for vip, kinds in counters.syns.items():
            for kind, count in kinds.items():
                syns.add_metric([device, vip, kind], count.packets)
        for server in config.servers:
            states.add_metric([device, server.vip, server.name], float(server.active))
    yield from (claims, handshakes, segments, syns, states)


def _unit_metrics(switches: Mapping[str, tuple[Config, Counters]], unit: str) -> Iterable[Metric]:
    """Yield the counters of packets or of bytes."""
    title = unit.capitalize()
    servers = CounterMetricFamily(
        f"frontage_server_{unit}", f"{title} of the connections of a server", labels=["device", "vip", "server", "direction"]
    )
    vips = CounterMetricFamily(
        f"frontage_vip_{unit}", f"{title} of the current servers of a VIP", labels=["device", "vip", "direction"]
    )
    senders = CounterMetricFamily(
        f"frontage_real_server_{unit}",
        f"{title} to clients from a port of real servers, on behalf of a server",
        labels=["device", "port", "server"],
    )
    limited = CounterMetricFamily(
        f"frontage_limited_{unit}", f"{title} dropped above a limit of a VIP", labels=["device", "vip", "limit"]
    )
    drops = CounterMetricFamily(f"frontage_dropped_{unit}", f"{title} dropped, by reason", labels=["device", "reason"])
    refusals = CounterMetricFamily(
        f"frontage_aifo_dropped_{unit}",
        f"{title} that AIFO dropped, by band of remaining processing time; the label is the lower bound of the band",
        labels=["device", "min_rpt_us"],
    )
    steering = CounterMetricFamily(
        f"frontage_steering_{unit}", f"{title} to VIPs, by how the server was selected", labels=["device", "outcome"]
    )
    for device, (config, counters) in switches.items():
        names = {server.sid: server.name for server in config.servers}
        totals: dict[tuple[str, str], int] = {(vip.name, direction): 0 for vip in config.vips for direction in ("up", "down")}
        for server in config.servers:
            for direction, by_sid in (("up", counters.up), ("down", counters.down)):
                value = getattr(by_sid.get(server.sid, Count()), unit)
                servers.add_metric([device, server.vip, server.name, direction], value)
                totals[server.vip, direction] += value
        for (vip, direction), value in totals.items():
            vips.add_metric([device, vip, direction], value)
        for (port, sid), count in counters.senders.items():
            senders.add_metric([device, port, names[sid]], getattr(count, unit))
        for vip, kinds in counters.limited.items():
            for kind, count in kinds.items():
                limited.add_metric([device, vip, kind], getattr(count, unit))
        for family, counts in ((drops, counters.drops), (refusals, counters.refusals), (steering, counters.outcomes)):
            for label, count in counts.items():
                family.add_metric([device, label], getattr(count, unit))
    yield from (servers, vips, senders, limited, drops, refusals, steering)
