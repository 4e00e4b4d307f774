# SPDX-License-Identifier: Apache-2.0
"""The Prometheus endpoint. Every scrape reads the counters of the switch, so its values are current."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from frontage.config import Config
from frontage.config.schema import Metrics
from frontage.p4.entities import Count
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.service.controller import Controller
from frontage.service.health import DURATIONS, Health, Phase
from frontage.service.status import Counters, read_counters

log = logging.getLogger(__name__)

SCRAPE_TIMEOUT = 10.0
"""Seconds that a scrape waits for the switch."""


class FrontageCollector(Collector):
    """Collects the metrics of one controller and its switch."""

    def __init__(
        self, controller: Controller, loop: asyncio.AbstractEventLoop, extra: Callable[[], Iterable[Metric]] | None = None
    ):
        self._controller = controller
        self._extra = extra
        self._loop = loop

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics. Runs on the endpoint's thread."""
        controller = self._controller
        yield from _health_metrics(controller.health, primary=controller.primary)
        if self._extra is not None:
            yield from self._extra()
        config, counters = controller.config, None
        try:
            counters = asyncio.run_coroutine_threadsafe(self._read(config), self._loop).result(SCRAPE_TIMEOUT)
        except (SwitchError, PipelineError, TimeoutError) as error:
            log.warning("cannot read counters for a scrape: %s", error)
        if counters is not None:
            yield from _counter_metrics(config, counters)

    async def _read(self, config: Config) -> Counters | None:
        controller = self._controller
        if controller.session is None or controller.pipeline is None:
            return None
        return await read_counters(controller.session, controller.pipeline.schema, config)


def _health_metrics(health: Health, *, primary: bool) -> Iterable[Metric]:
    phase = GaugeMetricFamily("frontage_phase", "1 for the current phase of the controller", labels=["phase"])
    for name in Phase:
        phase.add_metric([name.value], float(health.phase is name))
    yield phase
    yield GaugeMetricFamily("frontage_primary", "1 if this controller is the primary of the switch", value=float(primary))
    yield CounterMetricFamily("frontage_switch_connections", "Connections to the switch", value=health.connections)
    yield CounterMetricFamily("frontage_pipeline_installs", "Installations of the pipeline", value=health.pipelines_set)
    yield CounterMetricFamily("frontage_failures", "Failed reconciliations and sessions", value=health.failures)
    entries = health.last.entries if health.last else 0
    yield GaugeMetricFamily("frontage_desired_entries", "Entries that the configuration requires", value=entries)
    writes = CounterMetricFamily("frontage_entry_writes", "Written entries", labels=["kind"])
    for kind, count in health.writes.items():
        writes.add_metric([kind], count)
    yield writes
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound in DURATIONS:
        below += health.seconds[bound]
        buckets.append(("+Inf" if bound == math.inf else str(bound), float(below)))
    durations = HistogramMetricFamily("frontage_reconcile_duration_seconds", "Duration of reconciliations")
    durations.add_metric([], buckets, health.seconds_total)
    yield durations


def _counter_metrics(config: Config, counters: Counters) -> Iterable[Metric]:
    names = {server.sid: server.name for server in config.servers}
    for unit in ("packets", "bytes"):
        servers = CounterMetricFamily(
            f"frontage_server_{unit}", f"{unit.capitalize()} of the connections of a server", labels=["vip", "server", "direction"]
        )
        totals: dict[tuple[str, str], int] = {(vip.name, direction): 0 for vip in config.vips for direction in ("up", "down")}
        for server in config.servers:
            for direction, counts in (("up", counters.up), ("down", counters.down)):
                value = getattr(counts.get(server.sid, Count()), unit)
                servers.add_metric([server.vip, server.name, direction], value)
                totals[server.vip, direction] += value
        yield servers
        vips = CounterMetricFamily(
            f"frontage_vip_{unit}", f"{unit.capitalize()} of the current servers of a VIP", labels=["vip", "direction"]
        )
        for (vip, direction), value in totals.items():
            vips.add_metric([vip, direction], value)
        yield vips
        senders = CounterMetricFamily(
            f"frontage_real_server_{unit}",
            f"{unit.capitalize()} to clients from a port of real servers, on behalf of a server",
            labels=["port", "server"],
        )
        for (port, sid), count in counters.senders.items():
            senders.add_metric([port, names[sid]], getattr(count, unit))
        yield senders
        drops = CounterMetricFamily(f"frontage_dropped_{unit}", f"{unit.capitalize()} dropped, by reason", labels=["reason"])
        for reason, count in counters.drops.items():
            drops.add_metric([reason], getattr(count, unit))
        yield drops
        refusals = CounterMetricFamily(
            f"frontage_aifo_dropped_{unit}",
            f"{unit.capitalize()} that AIFO dropped, by band of remaining processing time; the label is the lower bound of the band",
            labels=["min_rpt_us"],
        )
        for least, count in counters.refusals.items():
            refusals.add_metric([least], getattr(count, unit))
        yield refusals
        steering = CounterMetricFamily(
            f"frontage_steering_{unit}", f"{unit.capitalize()} to VIPs, by how the server was selected", labels=["outcome"]
        )
        for outcome, count in counters.outcomes.items():
            steering.add_metric([outcome], getattr(count, unit))
        yield steering
    claims = CounterMetricFamily(
        "frontage_connection_table_inserts", "Insertions into the connection table, by result", labels=["result"]
    )
    for result, count in counters.claims.items():
        claims.add_metric([result], count.packets)
    yield claims
    handshakes = CounterMetricFamily(
        "frontage_handshake_table_inserts", "Insertions into the handshake table, by result", labels=["result"]
    )
    for result, count in counters.handshakes.items():
        handshakes.add_metric([result], count.packets)
    yield handshakes
    states = GaugeMetricFamily("frontage_server_active", "1 if a server gets new connections", labels=["vip", "server"])
    for server in config.servers:
        states.add_metric([server.vip, server.name], float(server.active))
    yield states


class Endpoint:
    """An HTTP server for the metrics of one controller, on its own thread."""

    def __init__(
        self,
        metrics: Metrics,
        controller: Controller,
        loop: asyncio.AbstractEventLoop,
        extra: Callable[[], Iterable[Metric]] | None = None,
    ):
        self.metrics = metrics
        registry = CollectorRegistry(auto_describe=False)
        host, _, port = metrics.address.rpartition(":")
        self._server, self._thread = start_http_server(int(port), host.strip("[]"), registry)
        registry.register(FrontageCollector(controller, loop, extra))
        bound = self._server.server_address
        self.address = str(bound[0]), int(bound[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
