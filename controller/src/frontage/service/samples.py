# SPDX-License-Identifier: Apache-2.0
"""Samples of the running fleet for live displays: counters, and the loads that servers report in their cookies.

A sample is much cheaper than a status, which compares all entries with the configuration. Concurrent requests share
a sample.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from frontage.config import Config
from frontage.cookie import IP6_SIGNAL, RPT_UNIT_US, TCP_LOAD, TCP_RPT
from frontage.p4.entities import Count
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError, Schema
from frontage.p4.session import Session
from frontage.service.controller import Controller
from frontage.service.delegation import ReadingOf, describe_delegation, helpers
from frontage.service.fleet import Fleet
from frontage.service.status import Counters, read_counters, spilling

K = TypeVar("K")

MAX_AGE = 0.4
"""Seconds for which further requests reuse a sample."""

_REPORTS = "server_loads.reports"
_NEW_FLOWS = "new_flows"
_SCORE_UNIT = 16
"""Units of a score per flow."""
_QUANTISERS = {1: (TCP_RPT, TCP_LOAD), 2: (IP6_SIGNAL, IP6_SIGNAL)}
"""Quantisers of RPT and of loads by the carrier of a report (`p4src/v1model/server_loads.p4`)."""


@dataclass(frozen=True, slots=True)
class Report:
    """The last report of a server."""

    n_af: int
    n_ff: int
    rpt_us: int
    score: float | None
    """In flows; None if the server gets no connections by score."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one switch, and its server reports by SID."""

    counters: Counters
    new_flows: Mapping[int, int]
    reports: Mapping[int, Report]


@dataclass(slots=True)
class Sample:
    """The totals over all switches at one time."""

    time: float
    """Unix time."""
    seconds: float = 0.0
    """Duration of the reading."""
    errors: dict[str, str] = field(default_factory=dict)
    """The errors of unreadable switches, by name."""
    up: dict[int, Count] = field(default_factory=dict)
    down: dict[int, Count] = field(default_factory=dict)
    new_flows: Counter[int] = field(default_factory=Counter)
    reports: dict[int, Report] = field(default_factory=dict)
    drops: dict[str, Count] = field(default_factory=dict)
    outcomes: dict[str, Count] = field(default_factory=dict)
    senders: dict[tuple[str, int], Count] = field(default_factory=dict)
    dropped_by: dict[str, int] = field(default_factory=dict)
    """Dropped packets, by name of the switch."""
    packets_by: dict[str, int] = field(default_factory=dict)
    """Packets to VIPs, by name of the switch."""
    has_reports: bool = False
    """True if a switch stores the reports of servers, unlike BMv2 and the Tofino programs."""

    def add(self, name: str, reading: Reading) -> None:
        """Add the counters of one switch."""
        counters = reading.counters
        for total, counts in ((self.up, counters.up), (self.down, counters.down)):
            _add(total, counts)
        _add(self.drops, counters.drops)
        _add(self.outcomes, counters.outcomes)
        _add(self.senders, counters.senders)
        self.new_flows.update(reading.new_flows)
        self.reports |= reading.reports
        self.has_reports |= bool(reading.reports) or bool(reading.new_flows)
        self.dropped_by[name] = sum(count.packets for count in counters.drops.values())
        self.packets_by[name] = sum(count.packets for count in counters.up.values())


class Samples:
    """Reads the fleet on request."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._last: Sample | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Sample:
        """Return a sample that is at most `MAX_AGE` old."""
        async with self._lock:
            if self._last is None or time.time() - self._last.time > max(MAX_AGE, self._last.seconds):
                self._last = await self._read()
            return self._last

    async def _read(self) -> Sample:
        sample = Sample(time.time())
        began = time.monotonic()
        controllers = dict(self._fleet.controllers)
        found = await asyncio.gather(*(_read_switch(controller) for controller in controllers.values()))
        for name, reading in zip(controllers, found, strict=True):
            if isinstance(reading, str):
                sample.errors[name] = reading
            else:
                sample.add(name, reading)
        sample.seconds = time.monotonic() - began
        return sample


async def _read_switch(controller: Controller) -> Reading | str:
    """Return the counters of a switch, or the reason why it cannot be read."""
    session, pipeline, config = controller.session, controller.pipeline, controller.config
    if session is None or pipeline is None:
        return controller.health.error or "not connected"
    try:
        counters = await read_counters(session, pipeline.schema, config, controller.vip_ids)
    except (SwitchError, PipelineError) as error:
        return str(error)
    try:
        return await _with_loads(session, pipeline.schema, counters, [server.sid for server in config.servers])
    except SwitchError:  # BMv2 has no access to registers
        return Reading(counters, {}, {})


async def _with_loads(session: Session, schema: Schema, counters: Counters, sids: Sequence[int]) -> Reading:
    if _REPORTS not in schema.registers or _NEW_FLOWS not in schema.counters:
        return Reading(counters, {}, {})
    cells = await session.read_register_cells(schema.registers[_REPORTS], sids)
    reports = {sid: report for sid, word in cells.items() if (report := decode_report(word)) is not None}
    found = await session.read_cells(schema.counter(_NEW_FLOWS), sids)
    return Reading(counters, {sid: count.packets for sid, count in found.items() if count.packets}, reports)


def decode_report(word: int) -> Report | None:
    """Return a report from its cell; None if its carrier is unknown."""
    quantisers = _QUANTISERS.get(word >> 56)
    if quantisers is None:
        return None
    rpt, load = quantisers
    rpt_code, af_code, ff_code = (word >> shift & 0xFF for shift in (48, 40, 32))
    score = (word & 0xFFFF) / _SCORE_UNIT if word >> 16 & 1 else None
    return Report(load.decode(af_code), load.decode(ff_code), rpt.decode(rpt_code) * RPT_UNIT_US, score)


def _add(total: dict[K, Count], counts: Mapping[K, Count]) -> None:
    for key, count in counts.items():
        total[key] = total.get(key, Count()) + count


def describe_overview(sample: Sample, fleet: Fleet, config: Config, health: Mapping[str, str]) -> dict[str, Any]:
    """Return the totals of each VIP, and the state of the switches."""
    vips = []
    for vip, servers in zip(config.vips, config.servers_by_vip.values(), strict=True):
        up, down = (sum((counts.get(s.sid, Count()) for s in servers), Count()) for counts in (sample.up, sample.down))
        reports = [report for server in servers if (report := sample.reports.get(server.sid)) is not None]
        vips.append(
            {
                "name": vip.name,
                "address": str(vip.address),
                "protocol": str(vip.protocol),
                "port": vip.port,
                "policy": str(vip.policy),
                "alpha": vip.effective_alpha,
                "active": sum(server.active for server in servers),
                "draining": sum(not server.active for server in servers),
                "failed": sum(health.get(server.name) == "failed" for server in servers),
                "up": asdict(up),
                "down": asdict(down),
                "new_flows": sum(sample.new_flows[server.sid] for server in servers),
                "n_af": sum(report.n_af for report in reports),
                "n_ff": sum(report.n_ff for report in reports),
            }
        )
    draining = config.draining_switches
    switches = [
        {
            "name": name,
            "address": controller.config.device.address,
            "phase": str(controller.health.phase),
            "role": "primary" if controller.primary else "standby",
            "error": sample.errors.get(name) or controller.health.error,
            "state": "draining" if name in draining else "active",
            "zone": controller.config.device.zone,
            "spilling": spilling(controller.config),
            "entries": controller.health.last.entries if controller.health.last else None,
            "packets": sample.packets_by.get(name),
            "dropped": sample.dropped_by.get(name),
        }
        for name, controller in fleet.controllers.items()
    ]
    return {
        "time": sample.time,
        "seconds": round(sample.seconds, 4),
        "has_reports": sample.has_reports,
        "switches": switches,
        "vips": vips,
        "drops": _nonzero(sample.drops),
        "outcomes": _nonzero(sample.outcomes),
    }


def describe_servers(sample: Sample, config: Config, vip: str, health: Mapping[str, str], reading_of: ReadingOf) -> dict[str, Any]:
    """Return the servers of one VIP. ``reading_of`` returns the last reading of an agent's metrics."""
    senders = helpers(config)
    servers = []
    for server in config.servers_by_vip[vip]:
        report = sample.reports.get(server.sid)
        servers.append(
            {
                "name": server.name,
                "address": str(server.address),
                "port": server.port,
                "sid": server.sid,
                "weight": server.weight,
                "share": server.share,
                "zone": server.zone,
                "state": str(server.state),
                "health": health.get(server.name),
                "up": asdict(sample.up.get(server.sid, Count())),
                "down": asdict(sample.down.get(server.sid, Count())),
                "new_flows": sample.new_flows[server.sid],
                "n_af": report.n_af if report else None,
                "n_ff": report.n_ff if report else None,
                "rpt_us": report.rpt_us if report else None,
                "score": report.score if report else None,
                **describe_delegation(config, server, senders.get(server.sid, []), sample.senders, reading_of),
            }
        )
    return {"time": sample.time, "seconds": round(sample.seconds, 4), "has_reports": sample.has_reports, "servers": servers}


def _nonzero(counts: Mapping[str, Count]) -> dict[str, dict[str, int]]:
    return {name: asdict(count) for name, count in counts.items() if count.packets}
