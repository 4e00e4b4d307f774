# SPDX-License-Identifier: Apache-2.0
"""The status of a fleet: the counters of its switches, and their state compared with the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import Any

from frontage.config import Config
from frontage.config.limits import Limits
from frontage.config.real_servers import balancers, senders
from frontage.config.syn_defence import SynDefence, SynMode
from frontage.config.vips import Server, Vip
from frontage.config.zones import is_own
from frontage.p4 import reasons
from frontage.p4.entities import Count
from frontage.p4.entries import Key
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError, Schema
from frontage.p4.session import Session
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet
from frontage.service.health import Health, Phase
from frontage.state.allocation import Installed
from frontage.state.blocks import demand, limits, real_servers, syn_defence
from frontage.state.blocks import server as server_block
from frontage.state.blocks import vip as vip_block
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import Outcome, plan
from frontage.state.recovery import Known
from frontage.state.steering import EndUserMapping

_CLAIMS = "fallback.claims"
_HANDSHAKES = "handshake.claims"
_REFUSALS = "aifo.refusals"
_SEGMENTS = "mss.segments"
_OUTCOMES = "outcomes"
_OPTIONAL = (_CLAIMS, _HANDSHAKES, _REFUSALS, _SEGMENTS)
"""Counters that profiles without QUIC, schedulers or remote servers do not have."""
_COUNTS = ("drops", "outcomes", "claims", "handshakes", "segments", "refusals")
"""Parts of a status, and fields of :class:`Counters`, that are sums over all VIPs."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of the switch."""

    up: dict[int, Count]
    """Packets from clients, by SID."""
    down: dict[int, Count]
    """Packets to clients, by SID."""
    senders: dict[tuple[str, int], Count]
    """Packets to clients from ports of real servers, by port name and SID of the server on whose behalf they were sent."""
    drops: dict[str, Count]
    """Dropped packets and copies of packets, by reason."""
    outcomes: dict[str, Count]
    claims: dict[str, Count]
    """Insertions into the TCP connection table, by result."""
    handshakes: dict[str, Count]
    """Insertions into the QUIC handshake table, by result."""
    segments: dict[str, Count]
    """SYNs and SYN-ACKs of remote servers, by what happened to their maximum segment size."""
    limited: dict[str, dict[str, Count]]
    """Packets above a limit, by name of the VIP and kind of the limit."""
    syns: dict[str, dict[str, Count]]
    """Packets of the defence against SYN floods, by name of the VIP and kind."""
    refusals: dict[str, Count]
    """Packets that AIFO dropped, by the lowest RPT of their band in microseconds."""


async def read_counters(session: Session, schema: Schema, config: Config, vip_ids: Mapping[str, int] | None = None) -> Counters:
    """Read the counters of the switch. Raises SwitchError.

    ``vip_ids`` are the ids of VIPs by name, as in `Controller.vip_ids`. Without them, they are read from the switch.
    """
    tables = schema.present((*server_block.TABLES, *vip_block.DIPS, real_servers.SENDER))
    direct = await session.read_direct_counters(schema, [t for t in tables if t.direct_counter])
    counter_ids = {name: schema.counter(name) for name in (_OUTCOMES, *schema.drop_counters)}
    counter_ids |= {name: schema.counter(name) for name in _OPTIONAL if name in schema.counters}
    indexed = await session.read_counters(list(counter_ids.values()))
    vips = {vip.name: vip for vip in config.vips}
    ports = {port.name: port.id for port in config.ports}

    def by_reason(counter: str, names: dict[int, reasons.Reason]) -> dict[str, Count]:
        counter_id = counter_ids.get(counter, 0)
        return {reason.name: indexed.get((counter_id, index), Count()) for index, reason in names.items()}

    def down(server: Server) -> Count:
        return direct.get(vip_block.dip(server, vips[server.vip]), Count())

    def up(server: Server) -> Count:
        return direct.get(server_block.key(server), Count())

    drops = [by_reason(counter, reasons.drops()) for counter in schema.drop_counters]
    return Counters(
        limited=await _read_limited(session, schema, config, vip_ids),
        syns=await read_syns(session, schema, config, vip_ids),
        up={server.sid: up(server) for server in config.servers},
        down={server.sid: down(server) for server in config.servers},
        senders={
            (port, sid): direct.get(Key(real_servers.SENDER, (ports[port], sid)), Count())
            for port, sid in senders(config.real_servers, config.servers)
        },
        drops={reason.name: sum((part[reason.name] for part in drops), Count()) for reason in reasons.drops().values()},
        outcomes=by_reason(_OUTCOMES, reasons.outcomes()),
        claims=by_reason(_CLAIMS, reasons.claims()),
        handshakes=by_reason(_HANDSHAKES, reasons.claims()),
        segments=by_reason(_SEGMENTS, reasons.segments()),
        refusals=by_reason(_REFUSALS, reasons.bands()),
    )


@dataclass(frozen=True, slots=True)
class _ByVip:
    """A counter with a cell for each VIP and each of four kinds: the id of the VIP | the kind (2 bits)."""

    counter: str
    kinds: dict[int, reasons.Reason]

    async def read(
        self, session: Session, schema: Schema, vips: Sequence[Vip], vip_ids: Mapping[str, int] | None
    ) -> dict[str, dict[str, Count]]:
        """Return the counts by name of the VIP and kind."""
        if not vips or self.counter not in schema.counters:
            return {}
        ids = await _read_vip_ids(session, schema, vips) if vip_ids is None else vip_ids
        cells = {
            (vip.name, reason.name): ids[vip.name] << 2 | kind
            for vip in vips
            if vip.name in ids
            for kind, reason in self.kinds.items()
        }
        counts = await session.read_cells(schema.counter(self.counter), list(cells.values()))
        return {
            vip.name: {reason.name: counts.get(cells.get((vip.name, reason.name), -1), Count()) for reason in self.kinds.values()}
            for vip in vips
        }


async def _read_vip_ids(session: Session, schema: Schema, vips: Sequence[Vip]) -> dict[str, int]:
    """Return the ids of the VIPs in the switch, by name."""
    return Installed(await session.read_tables(schema, schema.present((vip_block.VIP4, vip_block.VIP6)))).ids(vips)


async def _read_limited(
    session: Session, schema: Schema, config: Config, vip_ids: Mapping[str, int] | None
) -> dict[str, dict[str, Count]]:
    by_vip = _ByVip(limits.REFUSALS, reasons.limit_kinds())
    return await by_vip.read(session, schema, [vip for vip in config.vips if vip.limits is not None], vip_ids)


async def read_syns(
    session: Session, schema: Schema, config: Config, vip_ids: Mapping[str, int] | None
) -> dict[str, dict[str, Count]]:
    """Return the packets of the defence against SYN floods, by name of the VIP and kind. Raises SwitchError."""
    by_vip = _ByVip(syn_defence.PACKETS, reasons.syn_kinds())
    return await by_vip.read(session, schema, [vip for vip in config.vips if vip.syn_defence is not None], vip_ids)


async def read_demand(session: Session, schema: Schema, config: Config, regions: Collection[int]) -> dict[str, dict[int, int]]:
    """Return the number of handshakes by VIP and region, without zeros. Region 0 stands for clients in none of ``regions``."""
    cells = demand.cells(config)
    counts = await session.read_cells(schema.counter(demand.HANDSHAKES), demand.cell_indices(cells, regions)) if cells else {}
    seen = {cell: count.packets for cell, count in counts.items() if count.packets}
    return {
        name: {cell - part.base: count for cell, count in seen.items() if 0 <= cell - part.base < part.regions}
        for name, part in cells.items()
    }


def describe_health(health: Health) -> dict[str, Any]:
    """Return the state of a controller."""
    return {
        "phase": str(health.phase),
        "error": health.error,
        "election_id": health.election_id,
        "connections": health.connections,
        "reconciliations": health.reconciliations,
        "failures": health.failures,
        "last_reconciliation": _describe_outcome(health.last) if health.last else None,
    }


def _describe_outcome(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in ("entries", "inserted", "modified", "deleted", "leaf_ops", "seconds")}


def describe_config(config: Config) -> dict[str, Any]:
    """Return the part of a status that needs no switch."""
    newest = config.cookie_keys[-1].id
    return {
        "vips": [
            {
                "name": vip.name,
                "address": str(vip.address),
                "protocol": str(vip.protocol),
                "port": vip.port,
                "cookie_prefix": str(vip.cookie_prefix) if vip.cookie_prefix else None,
                "policy": str(vip.policy),
                "alpha": vip.effective_alpha,
                "look_ahead": vip.look_ahead,
                "active": sum(server.active for server in servers),
                "draining": sum(not server.active for server in servers),
                "syn_defence": _describe_syn_defence(vip.syn_defence) if vip.syn_defence is not None else None,
                "limits": describe_limits(vip.limits) if vip.limits is not None else None,
            }
            for vip, servers in zip(config.vips, config.servers_by_vip.values(), strict=True)
        ],
        "servers": [
            {
                "name": server.name,
                "vip": server.vip,
                "address": str(server.address),
                "port": server.port,
                "sid": server.sid,
                "weight": server.weight,
                "share": server.share,
                "zone": server.zone,
                "state": str(server.state),
                "encapsulation": _describe_tunnel(server),
            }
            for server in config.servers
        ],
        "real_servers": [
            {
                "name": real_server.name,
                "port": real_server.port,
                "mac": None if real_server.mac is None else str(real_server.mac),
                "addresses": [str(address) for address in real_server.addresses],
                "for": [server.name for server in servers],
            }
            for real_server, servers in balancers(config.real_servers, config.servers)
        ],
        "neighbors": [
            {"address": str(address), "port": ", ".join(link.port.name for link in host.links), "mac": None, "state": "unknown"}
            for address, host in config.wanted.items()
        ],
        "keys": [{"id": key.id, "epoch": key.epoch, "seals": key.id == newest} for key in config.cookie_keys],
    }


def spilling(config: Config) -> list[str]:
    """Return the VIPs for which a switch uses servers of other zones."""
    zone = config.device.zone
    zoned = {vip.name for vip in config.vips if vip.spill_over is not None}
    if zone is None:
        return []
    used = {server.vip for server in config.servers if server.active and not is_own(server, zone)}
    return sorted(used & zoned)


def _describe_tunnel(server: Server) -> dict[str, Any] | None:
    tunnel = server.remote
    if tunnel is None:
        return None
    return {
        "kind": str(tunnel.kind),
        "endpoint": str(server.destination),
        "vni": tunnel.tunnel_id if tunnel.kind.has_vni else None,
        "key": tunnel.key,
        "mtu": tunnel.mtu,
        "path_mtu": tunnel.path_mtu(server.destination.version),
        "answers": str(tunnel.answers),
    }


def _describe_syn_defence(configured: SynDefence) -> dict[str, Any]:
    return {
        "mode": str(configured.mode),
        "answering": configured.mode is SynMode.ALWAYS,
        "threshold": configured.threshold,
        "hold": configured.hold,
        "packets": {},
    }


def describe_limits(configured: Limits) -> dict[str, Any]:
    """Return the limits of a VIP by kind: rates per second, and the number of client prefixes with limits of their own."""

    def count(kind: str) -> int:
        return sum(client.size for client in configured.clients if getattr(client, kind) is not None)

    return {
        "client-connections": {"prefixes": count("new_connections")},
        "connections": {"rate": configured.new_connections},
        "client-bandwidth": {"prefixes": count("bandwidth")},
        "bandwidth": {"rate": configured.bandwidth},
    }


async def read_status(
    session: Session,
    schema: Schema,
    config: Config,
    mapping: EndUserMapping | None = None,
    neighbors: Known | None = None,
) -> dict[str, Any]:
    """Return the status of one switch. Without ``neighbors``, their Ethernet addresses are those in the switch.

    Raises SwitchError and ReconcileError.
    """
    status = describe_config(config)
    found = await plan(session, schema, config, mapping, neighbors)
    for neighbor in status["neighbors"]:
        resolved = found.recovered.get(ip_address(neighbor["address"]))
        if resolved is not None:
            neighbor |= {"port": resolved.port, "mac": str(resolved.mac), "state": "installed"}
    counters = await read_counters(session, schema, config, found.numbers.ids(config.vips))
    regions = set(mapping.regions.values()) if mapping is not None else set()
    status["demand"] = await read_demand(session, schema, config, regions)
    changes = found.difference
    status["difference"] = {
        "entries": len(found.wanted),
        "missing": len(changes.missing),
        "different": len(changes.different),
        "unexpected": len(changes.unexpected),
        "tables": {
            table: {"missing": missing, "different": different, "unexpected": unexpected}
            for table, missing, different, unexpected in changes.by_table()
        },
    }
    totals: dict[str, tuple[Count, Count]] = {}
    for server in status["servers"]:
        up, down = counters.up[server["sid"]], counters.down[server["sid"]]
        server["up"], server["down"] = asdict(up), asdict(down)
        total = totals.get(server["vip"], (Count(), Count()))
        totals[server["vip"]] = total[0] + up, total[1] + down
    for vip in status["vips"]:
        up, down = totals.get(vip["name"], (Count(), Count()))
        vip["up"], vip["down"] = asdict(up), asdict(down)
        for kind, count in counters.limited.get(vip["name"], {}).items():
            vip["limits"][kind]["dropped"] = asdict(count)
        for kind, count in counters.syns.get(vip["name"], {}).items():
            vip["syn_defence"]["packets"][kind] = count.packets
    for described, (real_server, servers) in zip(
        status["real_servers"], balancers(config.real_servers, config.servers), strict=True
    ):
        described["down"] = asdict(sum((counters.senders[real_server.port, server.sid] for server in servers), Count()))
    for part in _COUNTS:
        status[part] = {name: asdict(count) for name, count in getattr(counters, part).items()}
    return status


_SEVERITY = (Phase.INSTALLED, Phase.STANDBY, Phase.INSTALLING, Phase.CONNECTING, Phase.FAILED)
"""Phases, the worst last."""


def merge(config: Config, statuses: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the status of a fleet: the sums over its switches, and ``devices`` with what concerns one switch each.

    ``statuses`` are those of `read_status`, or of `describe_config` for a switch that cannot be read, each with ``controller``.
    """
    result = describe_config(config)
    states = [status["controller"] for status in statuses.values()]
    worst = max(states, key=lambda state: _SEVERITY.index(state["phase"]) if state["phase"] in list(_SEVERITY) else 0)
    roles = [state["role"] for state in states]
    result["controller"] = {"phase": worst["phase"], "error": worst["error"], "role": "primary" if "primary" in roles else roles[0]}
    result["devices"] = [
        {
            "name": own.device.name,
            "address": own.device.address,
            "device_id": own.device.device_id,
            "state": "draining" if own.device.name in config.draining_switches else "active",
            "zone": own.device.zone,
            "spilling": spilling(own),
            "controller": status["controller"],
            **{part: status[part] for part in ("difference", *_COUNTS) if part in status},
        }
        for own, status in ((own, statuses[own.device.name]) for own in config.switches)
    ]
    for device in result["devices"]:
        counted = [vip["up"]["packets"] for vip in statuses[device["name"]]["vips"] if "up" in vip]
        device["packets_to_vips"] = sum(counted) if counted else None
    result["neighbors"] = [{"device": name, **neighbor} for name, status in statuses.items() for neighbor in status["neighbors"]]
    for status in statuses.values():
        _add(result, status)
    return result


def _add(total: dict[str, Any], status: Mapping[str, Any]) -> None:
    """Add the counts of one switch."""
    for part in ("vips", "servers", "real_servers"):
        # In the middle of a rollout, switches have different servers.
        counted = {item["name"]: item for item in status[part]}
        for sums in total[part]:
            item = counted.get(sums["name"], {})
            _add_counts(sums, {name: item[name] for name in ("up", "down") if name in item})
            for kind, limit in (item.get("limits") or {}).items():
                _add_counts(sums["limits"][kind], {"dropped": limit["dropped"]} if "dropped" in limit else {})
            for kind, packets in (item.get("syn_defence") or {}).get("packets", {}).items():
                sums["syn_defence"]["packets"][kind] = sums["syn_defence"]["packets"].get(kind, 0) + packets
    for part in _COUNTS:
        if part in status:
            _add_counts(total.setdefault(part, {}), status[part])
    for vip, regions in status.get("demand", {}).items():
        counts = total.setdefault("demand", {}).setdefault(vip, {})
        for region, handshakes in regions.items():
            counts[region] = counts.get(region, 0) + handshakes
    if "difference" in status:
        _add_difference(total.setdefault("difference", {"entries": 0, "tables": {}}), status["difference"])


def _add_counts(sums: dict[str, Any], counts: Mapping[str, Mapping[str, int]]) -> None:
    for name, count in counts.items():
        before = sums.get(name, {})
        sums[name] = {unit: before.get(unit, 0) + value for unit, value in count.items()}


def _add_difference(sums: dict[str, Any], difference: Mapping[str, Any]) -> None:
    for name, value in difference.items():
        if name != "tables":
            sums[name] = sums.get(name, 0) + value
    _add_counts(sums["tables"], difference["tables"])


async def fleet_status(fleet: Fleet) -> dict[str, Any]:
    """Return the status of all switches of a running fleet."""
    found = await asyncio.gather(*(_controller_status(controller) for controller in fleet.controllers.values()))
    status = merge(fleet.config, dict(zip(fleet.controllers, found, strict=True)))
    if fleet.error is not None:
        status["controller"]["error"] = fleet.error
    return status


async def _controller_status(controller: Controller) -> dict[str, Any]:
    session, pipeline = controller.session, controller.pipeline
    status = describe_config(controller.config)
    problem = controller.health.error
    if session is not None and pipeline is not None:
        try:
            status = await read_status(session, pipeline.schema, controller.config, controller.mapping, controller.known_neighbors)
        except (ReconcileError, SwitchError, PipelineError) as error:
            problem = str(error)
    if controller.primary:
        status["neighbors"] = controller.neighbors.describe()
    role = "primary" if controller.primary else "standby"
    return status | {"controller": {**describe_health(controller.health), "error": problem, "role": role}}
