# SPDX-License-Identifier: Apache-2.0
"""Configurations of a site's controller and servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from frontage.naming import ServicePrefix
from frontage_testbed.wan.addresses import (
    DISPATCHER_PORT,
    INSTANCE,
    PLAIN_PREFIX,
    PORT,
    REGIONAL_PREFIX,
    SERVER_PORT,
    TUNNEL_PORT,
    WAN_MAC,
    SiteAddresses,
)
from frontage_testbed.wan.topology import BACKBONE_PORT, REPLICA_PORT, WAN_PORT
from frontage_testbed.wan.topology import DISPATCHER_PORT as DISPATCHER_LINK

from .names import ZONE

CPU_PORT = 510
INTERVAL = 2.0
"""Seconds between two computations of the mapping."""
STORE = "mapping.db"
"""File name of the controllers' shared store, in the folder of all sites."""
SERVICE_ID = 1
TCP_SERVER_PORT = 8080
"""The port of the TCP servers, which tests start."""
DEPLOYMENT = 1
SERVICE_TTL = 60
"""Seconds for which clients may use the replica's own address without asking again."""
KEY = {"id": 1, "secret": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"}
"""The cookie key of all sites; packets never leave the testbed's namespaces."""

KEYS = f"""\
[[keys]]
id = {KEY["id"]}
secret = "{KEY["secret"]}"
"""
_SERVER = """\
listen = ["[::]:{port}"]
certificate = "../certificate.pem"
private_key = "../key.pem"
{more}
{routes}"""
_REPLICA = """\
access_log = "{log}"

[cookie]
sid = {sid}
server_prefix = "{server_prefix}"
cookie_prefix = "{cookie_prefix}"
port = {port}
keys = "keys.toml"
bandwidth = "100mbit"
look_ahead = "10kB"
"""
_ARTEMIS = """
[artemis]
service_ttl = {ttl}
services = ["{service}"]
vip = "{vip}"
site = {site}
tunnel = {{ listen = "[{own}]:{tunnel}", gateway = "{vtep}", peers = [{peers}] }}
dispatchers = [{dispatchers}]
capacity = 200
overload = 0.9
"""


OBJECTS = """\
[[route]]
path = "/"
directory = "../objects"
"""
"""The route of a server that serves files."""


class Replica(Protocol):
    """A replica behind the switch."""

    @property
    def sid(self) -> int:
        """The SID that identifies the replica."""

    @property
    def address(self) -> str:
        """Its own address, for tunnels."""

    @property
    def server_prefix(self) -> str:
        """The /64 in which it answers at any address."""


@dataclass(frozen=True)
class OnlyReplica:
    """The replica of a site that has one."""

    sid: int
    address: str
    server_prefix: str

    @classmethod
    def of(cls, site: SiteAddresses) -> OnlyReplica:
        """Return the replica of a site."""
        return cls(site.sids[0], site.replica, site.server_prefix)


def replica(
    site: SiteAddresses, own: Replica, log: Path, *, dispatched: bool, fields: str = "", sections: str = "", routes: str = OBJECTS
) -> str:
    """Return the configuration of a replica behind the switch, which writes cookies and answers on the service address.

    `fields` and `sections` are further ones.
    """
    sections = artemis_section(site, own, dispatched=dispatched) + sections
    return cookie_server(site, own, log, fields=fields, sections=sections, routes=routes)


def cookie_server(site: SiteAddresses, own: Replica, log: Path, *, fields: str, sections: str, routes: str) -> str:
    """Return the configuration of a server behind the switch, which writes cookies."""
    text = _REPLICA.format(log=log, sid=own.sid, server_prefix=own.server_prefix, cookie_prefix=site.cookie_prefix, port=PORT)
    return _SERVER.format(port=SERVER_PORT, more=fields + text + sections, routes=routes)


def artemis_section(site: SiteAddresses, own: Replica, *, dispatched: bool) -> str:
    """Return the section of a server that answers on the service address."""
    return _ARTEMIS.format(
        ttl=SERVICE_TTL,
        service=ZONE,
        vip=ServicePrefix.parse(INSTANCE).service_address(ZONE),
        site=site.id,
        own=own.address,
        tunnel=TUNNEL_PORT,
        vtep=site.vtep,
        peers=", ".join(f'"{peer}"' for peer in (site.vtep, *([site.dispatcher] if dispatched else []))),
        dispatchers=f'"http://[{site.dispatcher}]:{DISPATCHER_PORT}"' if dispatched else "",
    )


def plain(port: int = PORT, fields: str = "", routes: str = OBJECTS) -> str:
    """Return the configuration of a server without cookies, such as the one that clients reach directly."""
    return _SERVER.format(port=port, more=fields, routes=routes)


def controller(
    site: SiteAddresses,
    sites: Sequence[SiteAddresses],
    *,
    service_address: str,
    dispatched: bool,
    computed: bool,
    tcp: bool,
    placement: Mapping[str, object] | None,
    grpc: str,
    metrics: str,
    p4info: Path,
    json_file: Path,
    directory: Path,
) -> dict[str, object]:
    """Return the configuration of the edge switch's controller.

    `directory` has `mapping.json`, unless the mapping is `computed`. With `dispatched`, first flights go to the dispatchers;
    otherwise the service address determines the service. With `tcp`, the service has a VIP of TCP, too.
    """
    ports = []
    for number, name, role, mac, gateway in (
        (WAN_PORT, "wan", "client", site.mac, site.wan_gateway),
        (BACKBONE_PORT, "backbone", "site", site.backbone_mac, None),
        (REPLICA_PORT, "replica", "server", site.link_macs(REPLICA_PORT)[0], site.replica_gateway),
        (DISPATCHER_LINK, "dispatcher", "server", site.link_macs(DISPATCHER_LINK)[0], site.dispatcher_gateway),
    ):
        port: dict[str, object] = {"id": number, "name": name, "role": role, "mac": mac}
        ports.append(port | ({"gateways": [f"{gateway}/64"]} if gateway else {}))
    # The controller resolves the replica and the dispatcher. The WAN, a P4 program, does not answer neighbor discovery.
    neighbors = [{"address": site.dispatcher, "port": "dispatcher"}]
    served = (site.server_prefix, PLAIN_PREFIX, REGIONAL_PREFIX)
    routes = [{"prefix": p, "port": "replica", "next_hop": site.replica} for p in served]
    routes.append({"prefix": "::/0", "port": "wan", "mac": WAN_MAC})
    routes += [{"prefix": f"{s.vtep}/128", "port": "backbone", "mac": WAN_MAC} for s in sites if s != site]
    artemis = {"name": ZONE, "id": SERVICE_ID, "dedicated_address": not dispatched}
    vip: dict[str, object] = {"name": "films", "address": service_address, "protocol": "udp", "port": PORT}
    vip |= {"policy": "cclb4", "cookie_prefix": site.cookie_prefix, "artemis": artemis}
    server: dict[str, object] = {"name": f"{site.name}-replica", "vip": "films", "address": site.dip}
    server |= {"port": SERVER_PORT, "sid": site.sids[0], "tunnel_address": site.replica}
    vips, servers = [vip], [server]
    if tcp:
        pages: dict[str, object] = {"name": "pages", "address": service_address, "protocol": "tcp", "port": PORT}
        vips.append(pages | {"policy": "cclb4", "artemis": artemis | {"dedicated_address": True}})
        page = {"name": f"{site.name}-pages", "vip": "pages", "address": site.dip, "port": TCP_SERVER_PORT, "sid": site.sids[0] + 1}
        servers.append(page)
    pipeline = {"p4info": str(p4info), "json": str(json_file)}
    return {
        "device": {"address": grpc, "device_id": 1, "cpu_port": CPU_PORT, "pipeline": pipeline},
        "ports": ports,
        "routes": routes,
        "neighbors": neighbors,
        "instances": [{"prefix": INSTANCE, "names": [ZONE]}],
        "vips": vips,
        "servers": servers,
        "site": {"id": site.id, "vtep": site.vtep},
        "sites": [_site(s, dispatched=dispatched and s != site) for s in sites],
        "dispatchers": [{"name": "dispatcher", "address": site.dispatcher}] if dispatched else [],
        **({"end_users": end_users(sites)} if computed else {"mapping": "mapping.json"}),
        **({"placement": dict(placement)} if placement is not None else {}),
        "keys": [KEY],
        "control_socket": str(directory / "control"),
        "metrics": {"address": metrics},
    }


def end_users(sites: Sequence[SiteAddresses]) -> dict[str, object]:
    """Return the settings for a computed mapping. All controllers query all dispatchers, so that a site may fail as a whole."""
    urls = {site.id: f"http://[{site.management[1]}]:{DISPATCHER_PORT}" for site in sites}
    dispatchers = [{"site": site, "url": url} for site, url in urls.items()]
    return {"store": f"sqlite:///../{STORE}", "interval": INTERVAL, "dispatchers": dispatchers}


def mapping(whole: Mapping[str, Any], redundancy: int) -> dict[str, Any]:
    """Return the part of a mapping for the switch: only the sites that get a first flight.

    A dispatcher knows which replicas accept connections, so it gets the other sites in reserve.
    """
    best = [choice | {"sites": choice["sites"][:redundancy]} for choice in whole["mapping"]]
    return {**whole, "mapping": best}


def _site(site: SiteAddresses, *, dispatched: bool) -> dict[str, object]:
    entry: dict[str, object] = {"id": site.id, "name": site.name, "vtep": site.vtep, "sids": list(site.sids)}
    return entry | ({"dispatchers": [site.dispatcher]} if dispatched else {})
