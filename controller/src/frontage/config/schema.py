# SPDX-License-Identifier: Apache-2.0
"""The schema of the configuration file. `network`, `vips` and other modules define its sections.

Every field has a description, which error messages show; ``controller/README.md`` lists all fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from pydantic import Field, model_validator

from frontage.config.api import Api
from frontage.config.bgp import Bgp, BgpNeighbor
from frontage.config.devices import Device, DeviceState, FleetDevice
from frontage.config.health import Checker
from frontage.config.instances import Instance
from frontage.config.links import Resolved, Wanted, implied_hosts, wanted_hosts
from frontage.config.network import Neighbor, Port, Route
from frontage.config.real_servers import RealServer
from frontage.config.records import Records
from frontage.config.samples import Samples
from frontage.config.sites import Dispatcher, OwnSite, Site
from frontage.config.store import Store
from frontage.config.tls import Tls
from frontage.config.vips import Server, Vip
from frontage.config.zones import for_zone
from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN, CookieKey
from frontage.fields import IPAddress, Listen, Model, SecretField
from frontage.mapping.settings import EndUsers, Placement


class Key(Model):
    """A cookie key as the file has it: with the secret, or with the path of a file that holds it."""

    id: int = Field(ge=1, lt=1 << 32, description="the key id; the key with the largest id is the newest and seals", examples=[1])
    secret: SecretField | None = Field(
        None,
        repr=False,
        description=f"{SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in hexadecimal",
        examples=["the output of `openssl rand -hex 32`"],
    )
    secret_file: Path | None = Field(
        None, description="the path of a file that holds the secret in hexadecimal", examples=["key-1.hex"]
    )

    @model_validator(mode="after")
    def _one_source(self) -> Key:
        if (self.secret is None) == (self.secret_file is None):
            raise ValueError("needs either secret or secret_file")
        return self


class Metrics(Model):
    address: Listen = Field("127.0.0.1:9464", description="host:port of the Prometheus endpoint", examples=["127.0.0.1:9464"])
    tls: Tls | None = Field(None, description="HTTPS, with the certificate of `api` or another one; plain HTTP if absent")

    def in_folder(self, folder: Path) -> Metrics:
        """Return the settings with absolute paths."""
        return self if self.tls is None else self.model_copy(update={"tls": self.tls.in_folder(folder)})


class Fallback(Model):
    idle_timeout: int = Field(
        120, ge=1, le=65535, description="the idle timeout of the connection table, in seconds", examples=[120]
    )


class Handshake(Model):
    timeout: int = Field(10, ge=1, le=65535, description="the idle timeout of the handshake table, in seconds", examples=[10])


class ConfigFile(Model):
    """The content of a configuration file."""

    device: Device | None = Field(None, description="the switch")
    devices: tuple[FleetDevice, ...] = Field((), description="the switches of a fleet, instead of `device`")
    ports: tuple[Port, ...] = Field((), description="the switch's ports, or those of all switches without ports of their own")
    routes: tuple[Route, ...] = Field((), description="the routes: prefixes and their next hops")
    neighbors: tuple[Neighbor, ...] = Field((), description="the hosts on the switch's own links")
    vips: tuple[Vip, ...] = Field((), description="the virtual IP addresses (VIPs) of the services")
    servers: tuple[Server, ...] = Field((), description="the servers; each is one endpoint of one VIP")
    real_servers: tuple[RealServer, ...] = Field((), description="the real servers of QDSR, which send on behalf of servers")
    instances: tuple[Instance, ...] = Field((), description="the Artemis instances, which determine service addresses")
    site: OwnSite | None = Field(None, description="this site; only needed with several sites")
    sites: tuple[Site, ...] = Field((), description="the sites, with or without this one")
    dispatchers: tuple[Dispatcher, ...] = Field((), description="this site's dispatchers")
    mapping: Path | None = Field(
        None, description="the path of a JSON file with the end-user mapping; optional", examples=["mapping.json"]
    )
    keys: tuple[Key, ...] = Field(min_length=1, max_length=2, description="one or two cookie keys with consecutive ids")
    bgp: Bgp | None = Field(None, description="the announcement of VIPs by BGP; disabled if absent")
    metrics: Metrics | None = Field(None, description="the Prometheus endpoint; disabled if absent")
    fallback: Fallback = Field(default_factory=Fallback, description="the connection table, for connections without a cookie")
    handshake: Handshake = Field(default_factory=Handshake, description="the QUIC handshake table")
    health: Checker | None = Field(None, description="the checker of servers, for `vips[].health`; none if absent")
    end_users: EndUsers | None = Field(None, description="the computation of the end-user mapping; disabled if absent")
    placement: Placement | None = Field(
        None, description="the services that are placed by demand; if absent, services run wherever they have replicas"
    )
    records: Records | None = Field(None, description="the record store, for `frontage records serve`; disabled if absent")
    samples: Samples | None = Field(None, description="packet samples for sFlow and INT collectors; none if absent")
    api: Api | None = Field(None, description="the HTTP API for remote clients; only on the control socket if absent")
    store: Store | None = Field(None, description="the store that several controllers share; this file alone if absent")
    control_socket: Path | None = Field(
        None, description="the path of the Unix socket for commands to the running controller; next to this file if absent"
    )

    @model_validator(mode="after")
    def _one_kind_of_device(self) -> ConfigFile:
        if (self.device is None) != bool(self.devices):
            raise ValueError("needs either `device` (one switch) or `devices` (a fleet)")
        return self


class Config(ConfigFile):
    """A loaded configuration: paths are absolute, and the secrets of the keys are read.

    With ``devices``, the sections about the network are those of the file, and `switches` has those of each switch.
    """

    device: Device
    """The switch; the first one of several."""
    has_other_switches: bool = False
    """True for one of several switches."""
    cookie_keys: tuple[CookieKey, ...]
    """The last one seals. In a file, that is the newest one."""
    pools: tuple[tuple[Server, ...], ...] = ()
    """The servers of Maglev's tables, which hash connections without a cookie; the servers of this configuration if empty.

    Only the first pool gets new connections. The others may have connections, because they were or will be the first one on a switch
    (`frontage.service.fleet`).
    """

    @property
    def switches(self) -> tuple[Config, ...]:
        """The configuration of each switch, with its own sections about the network. Each access makes copies."""
        return tuple(self._of(device) for device in self.devices) or (self._in_zone(self.device.zone, {self.device.zone}),)

    def ports_of(self, name: str) -> tuple[Port, ...]:
        """Return the ports of the switch with this name."""
        own = next((device.ports for device in self.devices if device.name == name), None)
        return self.ports if own is None else own

    @property
    def checkers(self) -> dict[str, Checker]:
        """The checker of each switch that has one, by name of the switch."""
        found = {device.name: device.health or self.health for device in self.devices} or {self.device.name: self.health}
        return {name: checker for name, checker in found.items() if checker is not None}

    @property
    def draining_switches(self) -> frozenset[str]:
        """The names of the switches through which VIPs are not announced."""
        return frozenset(device.name for device in self.devices if device.state is DeviceState.DRAINING)

    def bgp_device(self, neighbor: BgpNeighbor) -> str:
        """Return the name of the switch whose routes a router learns: the only one, unless the neighbor names one."""
        return neighbor.device or self.device.name

    def bgp_next_hop(self, neighbor: BgpNeighbor) -> IPAddress | None:
        """Return the next hop of the routes that a router learns, or None if it has to be configured."""
        if neighbor.next_hop is not None:
            return neighbor.next_hop
        gateways = (gateway for port in self.ports_of(self.bgp_device(neighbor)) for gateway in port.gateways)
        return next((gateway.ip for gateway in gateways if neighbor.address in gateway.network), None)

    def _of(self, device: FleetDevice) -> Config:
        own = {name: getattr(device, name) for name in FleetDevice.OWN_SECTIONS}
        sections = {name: section for name, section in own.items() if section is not None}
        return self.model_copy(
            update={"device": device.device, "devices": (), "has_other_switches": len(self.devices) > 1, **sections}
        )._in_zone(device.zone, {device.zone for device in self.devices})

    def _in_zone(self, zone: str | None, zones: Set[str | None]) -> Config:
        """Return the configuration of a switch in this zone, with the servers that it uses active.

        Its pools are those of all ``zones``, because it may get connections of switches in other zones.
        """
        if zone is None or all(vip.spill_over is None for vip in self.vips):
            return self
        others = sorted(other for other in zones if other not in (None, zone))
        pools = [for_zone(self.vips, pool, one) for pool in self.pools or (self.servers,) for one in (zone, *others)]
        servers = for_zone(self.vips, self.servers, zone)
        return self.model_copy(update={"servers": servers, "pools": tuple(dict.fromkeys(pools))})

    @property
    def on_link_hosts(self) -> tuple[Neighbor, ...]:
        """Hosts on the switch's own links: neighbors, real servers, next hops with an IP address, and other hosts with one there.

        Those whose Ethernet address is unknown have none.
        """
        hosts = {host.address: host for host in self._named_hosts}
        implied = implied_hosts(self.ports, self.routes, hosts, self._addresses)
        return (*hosts.values(), *implied)

    @property
    def _named_hosts(self) -> Iterator[Neighbor]:
        """Hosts that the file names together with a port. `complete` adds neighbors that are real servers, too."""
        known = {neighbor.address for neighbor in self.neighbors}
        yield from self.neighbors
        for r in self.real_servers:
            yield from (Neighbor(address=a, port=r.port, mac=r.mac) for a in r.addresses if r.mac is not None or a not in known)
        known.update(address for r in self.real_servers for address in r.addresses)
        hops = {route.next_hop: route.port for route in self.routes if route.next_hop is not None}
        yield from (Neighbor(address=address, port=port) for address, port in hops.items() if address not in known)

    @property
    def _addresses(self) -> Iterator[IPAddress]:
        """Addresses to which the switch itself sends packets."""
        yield from (server.destination for server in self.servers)
        yield from (server.tunnel_address for server in self.servers if server.tunnel_address is not None)
        yield from (dispatcher.address for dispatcher in self.dispatchers)
        yield from (site.vtep for site in self.other_sites)
        yield from (neighbor.address for neighbor in self.learned_from)

    @property
    def learned_from(self) -> tuple[BgpNeighbor, ...]:
        """The routers from which this switch learns routes."""
        if self.bgp is None or self.bgp.learn is None:
            return ()
        return tuple(neighbor for neighbor in self.bgp.upstreams if neighbor.device in (None, self.device.name))

    @property
    def wanted(self) -> dict[IPAddress, Wanted]:
        """The hosts on the switch's own links whose Ethernet addresses are unknown, by address."""
        named = (host.address for host in self._named_hosts)
        return wanted_hosts(self.ports, self.on_link_hosts, named)

    def complete(self, resolved: Mapping[IPAddress, Resolved]) -> Config:
        """Return this configuration with the Ethernet addresses of ``resolved``. Other hosts keep having none."""
        resolved = dict(resolved)
        hosts = {host.address: host for host in self.neighbors}
        for host in self.on_link_hosts:
            if host.mac is not None:
                resolved[host.address] = Resolved(host.port, host.mac)
            elif (found := resolved.get(host.address)) is not None:
                hosts[host.address] = Neighbor(address=host.address, port=found.port, mac=found.mac)
        routes = [
            route.model_copy(update={"mac": found.mac, "next_hop": None})
            if route.next_hop is not None and (found := resolved.get(route.next_hop)) is not None and found.port == route.port
            else route
            for route in self.routes
        ]
        return self.model_copy(update={"neighbors": tuple(hosts.values()), "routes": tuple(routes)})

    @property
    def other_sites(self) -> tuple[Site, ...]:
        """All sites but this one; none if the file does not say which site this is."""
        return tuple(site for site in self.sites if self.site is not None and site.id != self.site.id)

    @property
    def site_ids(self) -> frozenset[int]:
        """The ids of all sites, including this one."""
        own = {self.site.id} if self.site is not None else set()
        return frozenset(own | {site.id for site in self.sites})

    @property
    def dedicated_services(self) -> frozenset[int]:
        """The ids of the Artemis services with an address of their own, which the switch maps to sites itself."""
        return frozenset(vip.artemis.id for vip in self.vips if vip.artemis is not None and vip.artemis.dedicated_address)

    @property
    def active_servers(self) -> dict[str, int]:
        """The number of active servers of every VIP, by VIP name."""
        return {name: sum(server.active for server in servers) for name, servers in self.servers_by_vip.items()}

    @property
    def servers_by_vip(self) -> dict[str, list[Server]]:
        """The servers of every VIP, by VIP name."""
        result: dict[str, list[Server]] = {vip.name: [] for vip in self.vips}
        for server in self.servers:
            result[server.vip].append(server)
        return result
