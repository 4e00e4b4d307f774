# SPDX-License-Identifier: Apache-2.0
"""Sites under measurement: a P4 program, all entries of a realistic site, and its traffic.

A site is written as JSON for ``frontage-bench`` (``src/site.rs``), or installed in a switch over P4Runtime.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from finsy.proto import p4r, p4r_grpc

import acl
from frontage.config import Config, loads
from frontage.p4.entities import BATCH
from frontage.p4.entries import Action, Key, State
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session
from frontage.state.offline import contents, plain_entries, plain_packets, plain_sessions
from paths import P4, ROOT, WORK, program

CPU_PORT = 510


@dataclass(frozen=True)
class Link:
    """A port of the switch and the only neighbor behind it."""

    port: int
    mac: str
    neighbor: str

    def to_json(self) -> dict[str, Any]:
        return {"port": self.port, "mac": list(_bytes(self.mac)), "neighbor": list(_bytes(self.neighbor))}


OUTSIDE = Link(1, "02:00:00:00:01:01", "02:00:00:00:02:01")
INSIDE = Link(2, "02:00:00:00:01:02", "02:00:00:00:02:02")

SERVERS = 16
"""Servers of each VIP: TCP over IPv4, TCP over IPv6, and QUIC."""
TCP_PROFILES = ("tofino1",)
"""Profiles for Tofino without QUIC."""
PREFIXES = 200
"""Routes to clients."""
ROUTES = 1000
"""Routes of the plain router."""

VIP = "203.0.113.10"
QUIC_VIP, QUIC_PORT = "2001:db8:ffff::20", 443
COOKIE_PREFIX = "2001:db8:ffff:1::"
KEY_ID = 8
SECRETS = {KEY_ID - 1: "00112233445566778899aabbccddeeff", KEY_ID: "0123456789abcdef0123456789abcdef"}
"""Two keys, as between two key rotations."""


@dataclass(frozen=True)
class Site:
    """A P4 program with entries and traffic."""

    name: str
    program: Path
    pipeline: Pipeline
    state: State
    """Entries in the order of their installation."""
    packets_out: list[p4r.PacketOut]
    traffic: dict[str, Any]
    rules: list[acl.Rule] = field(default_factory=list)
    """Entries of the table ``I.acl``, whose match kinds the controller does not support."""
    clone_sessions: list[dict[str, Any]] = field(default_factory=list)
    pipes: int = 1

    def write(self) -> Path:
        """Write the site's file for ``frontage-bench``; return its path."""
        schema = self.pipeline.schema
        entries = [*plain_entries(schema, self.state), *(rule.to_json(schema.tables["I.acl"]) for rule in self.rules)]
        site = {
            "program": str(self.program),
            "switch": {
                "name": self.name,
                "program": self.name,
                "ports": [],
                "entries": entries,
                "packets_out": list(plain_packets(schema, self.packets_out)),
                "clone_sessions": self.clone_sessions,
                "cpu_port": CPU_PORT,
                "pipes": self.pipes,
            },
            "traffic": self.traffic,
        }
        WORK.mkdir(parents=True, exist_ok=True)
        path = WORK / f"{self.name}-site.json"
        path.write_text(json.dumps(site))
        return path

    async def install(self, session: Session) -> None:
        """Set the program of a switch and write all entries."""
        await session.take(self.pipeline, 10)
        by_table: dict[str, State] = defaultdict(dict)
        for key, action in self.state.items():
            by_table[key.table][key] = action
        for entries in by_table.values():
            has_key = any(key.match for key in entries)
            kind = p4r.Update.INSERT if has_key else p4r.Update.MODIFY
            await session.write(self.pipeline.schema, kind, entries.items())
        stub = p4r_grpc.P4RuntimeStub(session.channel)
        for start in range(0, len(self.rules), BATCH):
            request = p4r.WriteRequest(device_id=session.device_id, election_id=p4r.Uint128(low=1))
            for rule in self.rules[start : start + BATCH]:
                entry = rule.encode(self.pipeline.schema.tables["I.acl"])
                request.updates.add(type=p4r.Update.INSERT).entity.table_entry.CopyFrom(entry)
            await stub.Write(request)
        await session.packet_out(self.packets_out)
        await asyncio.sleep(0.2)  # the switch does not acknowledge packet-outs


def frontage() -> Site:
    """Return a site with two TCP services and a QUIC service on 16 servers each, and two cookie keys; the traffic is downloads over TCP."""
    return _frontage("frontage", _tcp_traffic)


def quic() -> Site:
    """Return the same site with downloads over QUIC."""
    return _frontage("quic", _quic_traffic)


def tofino() -> Site:
    """Return the site of `frontage` with the program for Tofino 2."""
    return chip("tofino", "tofino2", "tcp")


def tofino_quic() -> Site:
    """Return the site of `quic` with the program for Tofino 2."""
    return chip("tofino_quic", "tofino2", "quic")


def chip(name: str, profile: str, protocol: str, pipes: int = 1, scheduler: dict[str, Any] | None = None) -> Site:
    """Return the site of `frontage` or `quic` with a program for Tofino, and a scheduler at the port to the clients.

    With a profile without QUIC, the site has no QUIC service.
    """
    traffic = {"tcp": _tcp_traffic, "quic": _quic_traffic}[protocol]
    target, _ = compiled(ROOT / "p4src" / "tna" / f"{profile}.p4")
    return _frontage(name, traffic, target, pipes, scheduler, has_quic=profile not in TCP_PROFILES)


def _frontage(
    name: str,
    traffic: Callable[[Config], dict[str, Any]],
    target: Path = P4 / "frontage.json",
    pipes: int = 1,
    scheduler: dict[str, Any] | None = None,
    *,
    has_quic: bool = True,
) -> Site:
    if not target.exists():
        raise FileNotFoundError(f"{target} is missing: run `make setup`, or set ARTIFACTS to its folder")
    config = loads(json.dumps(_configuration(target, pipes, scheduler, has_quic)), WORK / "frontage.yaml")
    return site(name, config, traffic(config), pipes)


def site(name: str, config: Config, traffic: dict[str, Any], pipes: int = 1) -> Site:
    """Return a site with the program of a configuration, its entries, and traffic."""
    target, p4info = config.device.pipeline.json_file, config.device.pipeline.p4info
    pipeline = Pipeline.load(p4info, target)
    state, packets_out = contents(config, pipeline.schema)
    return Site(
        name=name,
        program=target,
        pipeline=pipeline,
        state=state,
        packets_out=packets_out,
        traffic=traffic,
        clone_sessions=list(plain_sessions(config, pipeline.schema)),
        pipes=pipes,
    )


def compiled(source: Path) -> tuple[Path, Path]:
    """Compile a P4 program; return the paths of its BMv2 JSON and P4Info."""
    target, p4info = WORK / f"{source.stem}.json", WORK / f"{source.stem}.p4info.txtpb"
    WORK.mkdir(parents=True, exist_ok=True)
    compiler = program("SOFTSWITCH_P4C", "softswitch-p4c")
    subprocess.run([compiler, "-o", target, "--p4runtime-files", p4info, source], check=True)
    return target, p4info


def router() -> Site:
    """Return a plain IPv4 router: longest prefix match, next hop, TTL and checksum."""
    target, p4info = compiled(ROOT / "softswitch" / "pipeline" / "tests" / "programs" / "router.p4")
    prefixes = [int(IPv4Address("20.0.0.0")) + (n << 16) for n in range(ROUTES)]
    state: State = {Key("I.next_hops", (1,)): Action("forward", (INSIDE.port, _number(INSIDE.mac), _number(INSIDE.neighbor)))}
    state |= {Key("I.routes", ((prefix, 16 + n % 9),)): Action("set_next_hop", (1,)) for n, prefix in enumerate(prefixes)}
    destinations = [str(IPv4Address(prefix + 7)) for prefix in prefixes]
    traffic = {"kind": "router", "from": OUTSIDE.to_json(), "to": INSIDE.to_json(), "destinations": destinations}
    return Site("router", target, Pipeline.load(p4info, target), state, [], traffic)


def packet_filter(rules: int = 10_000, masks: str = "prefixes") -> Site:
    """Return a packet filter with so many rules over the five-tuple, and packets that hit them."""
    target, p4info = compiled(ROOT / "bench" / "p4" / "acl.p4")
    entries, probes = acl.draw(rules, masks, INSIDE.port)
    traffic = {"kind": "acl", "from": OUTSIDE.to_json(), "to": INSIDE.to_json(), "packets": probes}
    return Site(f"acl-{masks}-{rules}", target, Pipeline.load(p4info, target), {}, [], traffic, entries)


SITES = {"frontage": frontage, "quic": quic, "tofino": tofino, "tofino_quic": tofino_quic, "router": router, "acl": packet_filter}


def _configuration(target: Path, pipes: int, scheduler: dict[str, Any] | None, has_quic: bool) -> dict[str, Any]:
    services = ["web", "six", *(["quic"] if has_quic else [])]
    servers = [
        {"name": f"{name}{n}", "vip": name, "address": address.format(n), "port": 8080, "sid": first + n}
        for name, address, first in (
            ("web", "10.0.0.{}", 0),
            ("six", "2001:db8:2::{:x}", SERVERS),
            ("quic", "2001:db8:d:{:x}::10", 2 * SERVERS),
        )
        if name in services
        for n in range(1, SERVERS + 1)
    ]
    vips = [
        {"name": "web", "address": VIP, "port": 80, "policy": "cclb4"},
        {"name": "six", "address": "2001:db8:ffff::10", "port": 80, "policy": "cclb4"},
        {
            "name": "quic",
            "address": QUIC_VIP,
            "protocol": "udp",
            "port": QUIC_PORT,
            "policy": "cclb4",
            "cookie_prefix": f"{COOKIE_PREFIX}/64",
        },
    ]
    routes = [{"prefix": f"{prefix}/24", "port": "outside", "mac": OUTSIDE.neighbor} for prefix in client_prefixes()]
    routes += [{"prefix": f"{prefix}/64", "port": "outside", "mac": OUTSIDE.neighbor} for prefix in _client_prefixes6()]
    # Each QUIC server has its own /64.
    routes += [{"prefix": f"2001:db8:d:{n:x}::/64", "port": "inside", "mac": INSIDE.neighbor} for n in range(1, SERVERS + 1)]
    return {
        "device": {
            "address": "unix:unused",
            "cpu_port": CPU_PORT,
            "pipes": pipes,
            "pipeline": {"p4info": str(target.with_suffix(".p4info.txtpb")), "json": str(target)},
        },
        "ports": [
            {
                "id": OUTSIDE.port,
                "name": "outside",
                "role": "client",
                "mac": OUTSIDE.mac,
                "gateways": ["192.0.2.1/24", "2001:db8:1::1/64"],
                "scheduler": scheduler,
            },
            {
                "id": INSIDE.port,
                "name": "inside",
                "role": "server",
                "mac": INSIDE.mac,
                "gateways": ["10.0.0.254/24", "2001:db8:2::ffff/64"],
            },
        ],
        "routes": routes,
        "neighbors": [{"address": server["address"], "port": "inside", "mac": INSIDE.neighbor} for server in servers],
        "vips": [vip for vip in vips if vip["name"] in services],
        "servers": servers,
        "keys": [{"id": key_id, "secret": secret} for key_id, secret in SECRETS.items()],
    }


def client_prefixes() -> Iterable[IPv4Address]:
    return (IPv4Address("100.64.0.0") + (n << 8) for n in range(PREFIXES))


def _client_prefixes6() -> Iterable[IPv6Address]:
    return (IPv6Address("2001:db8:c::") + (n << 64) for n in range(PREFIXES))


def downloads(services: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the traffic of downloads over TCP from these services, which have a `vip` and `servers`."""
    return {
        "kind": "frontage",
        "outside": OUTSIDE.to_json(),
        "clients": [str(prefix + 9) for prefix in client_prefixes()],
        "services": services,
        "key_id": KEY_ID,
        "secret": SECRETS[KEY_ID],
    }


def _tcp_traffic(config: Config) -> dict[str, Any]:
    inside = INSIDE.to_json()
    servers = [{"sid": one.sid, "address": f"{one.address}:{one.port}", "inside": inside} for one in config.servers_by_vip["web"]]
    return downloads([{"vip": f"{VIP}:80", "servers": servers}])


def _quic_traffic(config: Config) -> dict[str, Any]:
    return {
        "kind": "quic",
        "outside": OUTSIDE.to_json(),
        "inside": INSIDE.to_json(),
        "clients": [str(prefix + 9) for prefix in _client_prefixes6()],
        "vip": f"[{QUIC_VIP}]:{QUIC_PORT}",
        "cookie_prefix": COOKIE_PREFIX,
        "servers": [(server.sid, f"[{server.address}]:{server.port}") for server in config.servers_by_vip["quic"]],
        "key_id": KEY_ID,
        "secret": SECRETS[KEY_ID],
    }


def _bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _number(mac: str) -> int:
    return int.from_bytes(_bytes(mac), "big")
