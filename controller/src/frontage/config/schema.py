"""The schema of the configuration file: `Config`, of which `network`, `vips` and others are sections.

The field descriptions define every field; ``controller/README.md`` lists them all.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from frontage.config.network import Neighbor, Port, Route
from frontage.config.real_servers import RealServer
from frontage.config.records import Records
from frontage.config.sites import Dispatcher, OwnSite, Site
from frontage.config.vips import Server, Vip
from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN, CookieKey
from frontage.fields import Listen, Model, SecretField
from frontage.limits import MAX_PORT_ID
from frontage.mapping.settings import EndUsers, Placement


class Pipeline(Model):
    p4info: Path = Field(description="the path of the compiled program's P4Info in text form", examples=["frontage.p4info.txtpb"])
    # The field's name in the file is ``json``; BaseModel has a method of that name.
    json_file: Path = Field(alias="json", description="the path of the compiled program's BMv2 JSON", examples=["frontage.json"])


class Device(Model):
    address: str = Field(
        description="host:port of the switch's P4Runtime server, or unix:PATH", examples=["127.0.0.1:9559"], min_length=1
    )
    device_id: int = Field(1, ge=1, lt=1 << 64, description="the P4Runtime device id", examples=[1])
    election_id: int = Field(
        100, ge=1, lt=1 << 64, description="the first election id; a second controller stands by below it", examples=[100]
    )
    cpu_port: int = Field(ge=1, le=MAX_PORT_ID, description="the port number the switch was given as CPU port", examples=[510])
    pipeline: Pipeline = Field(description="the compiled P4 program")


class Key(Model):
    id: int = Field(ge=1, lt=1 << 32, description="a key id; the newest key has the largest and seals", examples=[1])
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
            raise ValueError("needs either a secret or a secret_file")
        return self


class Metrics(Model):
    address: Listen = Field("127.0.0.1:9464", description="host:port of the Prometheus endpoint", examples=["127.0.0.1:9464"])


class Fallback(Model):
    idle_timeout: int = Field(
        120, ge=1, le=65535, description="the seconds after which an idle entry of the connection table expires", examples=[120]
    )


class Handshake(Model):
    timeout: int = Field(
        10, ge=1, le=65535, description="the seconds after which an idle entry of the handshake table expires", examples=[10]
    )


class Config(Model):
    device: Device = Field(description="the switch")
    ports: tuple[Port, ...] = Field(min_length=1, description="the switch's ports")
    routes: tuple[Route, ...] = Field((), description="prefixes behind a next hop")
    neighbors: tuple[Neighbor, ...] = Field((), description="hosts on the switch's own links")
    vips: tuple[Vip, ...] = Field((), description="the services")
    servers: tuple[Server, ...] = Field((), description="the servers, each one endpoint of one VIP")
    real_servers: tuple[RealServer, ...] = Field((), description="the real servers of QDSR, which send in the names of servers")
    site: OwnSite | None = Field(None, description="this site, where there are others")
    sites: tuple[Site, ...] = Field((), description="the sites; this one may be among them")
    dispatchers: tuple[Dispatcher, ...] = Field((), description="this site's dispatchers")
    mapping: Path | None = Field(
        None, description="the path of the end-user mapping in JSON; none if absent", examples=["mapping.json"]
    )
    keys: tuple[Key, ...] = Field(min_length=1, max_length=2, description="one or two cookie keys of consecutive ids")
    metrics: Metrics | None = Field(None, description="the Prometheus endpoint; none if absent")
    fallback: Fallback = Field(default_factory=Fallback, description="the connection table of flows that carry no cookie")
    handshake: Handshake = Field(default_factory=Handshake, description="the handshake table of QUIC")
    end_users: EndUsers | None = Field(None, description="how the end-user mapping is computed; it is not, if absent")
    placement: Placement | None = Field(
        None, description="which services' sites follow their demand; each is wherever it has replicas, if absent"
    )
    records: Records | None = Field(None, description="the record store, for `frontage records serve`; none if absent")
    control_socket: Path | None = Field(
        None, description="unix socket through which commands reach the running controller; beside this file if absent"
    )

    @property
    def cookie_keys(self) -> tuple[CookieKey, ...]:
        """The keys with their secrets, oldest first; the last one seals."""
        keys = [CookieKey(key.id, key.secret) for key in self.keys if key.secret is not None]
        return tuple(sorted(keys, key=lambda key: key.id))

    @property
    def on_link_hosts(self) -> tuple[Neighbor, ...]:
        """Hosts on the switch's own links: neighbors, and every address of every real server."""
        return (
            *self.neighbors,
            *(Neighbor(address=address, port=r.port, mac=r.mac) for r in self.real_servers for address in r.addresses),
        )

    @property
    def other_sites(self) -> tuple[Site, ...]:
        return tuple(site for site in self.sites if self.site is not None and site.id != self.site.id)

    @property
    def site_ids(self) -> frozenset[int]:
        """Of all sites, the own one included."""
        own = {self.site.id} if self.site is not None else set()
        return frozenset(own | {site.id for site in self.sites})

    @property
    def decided(self) -> frozenset[int]:
        """Numbers of the services of Artemis that the address alone decides: those that the switch maps."""
        return frozenset(vip.artemis.id for vip in self.vips if vip.artemis is not None and vip.artemis.decided)

    @property
    def servers_by_vip(self) -> dict[str, list[Server]]:
        """Every VIP's name, with its servers."""
        result: dict[str, list[Server]] = {vip.name: [] for vip in self.vips}
        for server in self.servers:
            result[server.vip].append(server)
        return result
