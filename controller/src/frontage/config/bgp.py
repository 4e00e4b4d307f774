# SPDX-License-Identifier: Apache-2.0
"""The section ``bgp`` of the configuration: the routers to which FRR announces VIPs, and from which switches learn routes."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path

from pydantic import Field

from frontage.fields import AddressField, IPNetwork, Listen, Model, Name, NetworkField
from frontage.limits import MAX_GROUP_SIZE, MAX_ROUTES

COMMUNITY = r"^\d{1,5}:\d{1,5}$"
MAX_ASN = (1 << 32) - 1
DEFAULT_ROUTES: dict[int, IPNetwork] = {4: IPv4Network("0.0.0.0/0"), 6: IPv6Network("::/0")}
"""By IP version."""


class Announce(StrEnum):
    """The routes that a neighbor learns."""

    SERVICES = "services"
    """VIPs and the site's prefixes, for upstream routers."""
    DEFAULT = "default"
    """A default route through the switch, for servers and rack routers."""


class BgpNeighbor(Model):
    address: AddressField = Field(
        description="the router's address; its IP version is that of the announced VIPs", examples=["192.0.2.254"]
    )
    asn: int = Field(ge=1, le=MAX_ASN, description="the router's AS number", examples=[64513])
    announce: Announce = Field(
        Announce.SERVICES,
        description="one of services (for upstream routers) or default (a default route, for servers and rack routers)",
        examples=["default"],
    )
    device: Name | None = Field(
        None, description="the name of one of `devices`, which forwards what this router sends to VIPs", examples=["edge1"]
    )
    source: AddressField | None = Field(
        None, description="the local address of the session; the kernel's choice if absent", examples=["10.0.254.1"]
    )
    next_hop: AddressField | None = Field(
        None,
        description="the next hop of the announced routes; if absent, the switch's gateway address on the router's link",
        examples=["192.0.2.1"],
    )
    bfd: bool = Field(True, description="whether BFD watches the session", examples=["true"])
    password_file: Path | None = Field(
        None, description="the path of a file with the password of the session (TCP MD5)", examples=["router1.password"]
    )
    communities: tuple[str, ...] = Field((), description="the communities of the announced routes", examples=["[64512:100]"])
    prepend: int = Field(0, ge=0, le=10, description="how many times the own AS number is prepended", examples=[2])


class RuleAction(StrEnum):
    """The effect of a rule of a prefix list."""

    PERMIT = "permit"
    DENY = "deny"


class PrefixRule(Model):
    prefix: NetworkField = Field(description="a prefix that contains the routes' prefixes", examples=["0.0.0.0/0"])
    min_length: int | None = Field(
        None, ge=0, le=128, description="the shortest prefix of a route; that of `prefix` if absent", examples=[8]
    )
    max_length: int | None = Field(
        None,
        ge=0,
        le=128,
        description="the longest prefix of a route; that of `prefix`, or `min_length`, if absent",
        examples=[24],
    )
    action: RuleAction = Field(
        RuleAction.PERMIT, description="one of " + ", ".join(RuleAction) + "; the first rule that matches counts", examples=["deny"]
    )

    @property
    def lengths(self) -> range:
        """The lengths of the prefixes that match."""
        shortest = self.prefix.prefixlen if self.min_length is None else self.min_length
        longest = shortest if self.max_length is None else self.max_length
        return range(shortest, longest + 1)


class LearnFamily(Model):
    prefixes: tuple[PrefixRule, ...] = Field(min_length=1, description="the prefix list: routes that no rule permits are rejected")
    max_routes: int = Field(
        10_000,
        ge=1,
        le=MAX_ROUTES,
        description="the number of learned routes of a switch beyond which further ones are rejected",
        examples=[10000],
    )


class Learn(Model):
    ipv4: LearnFamily | None = Field(None, description="the IPv4 routes that are accepted; none if absent")
    ipv6: LearnFamily | None = Field(None, description="the IPv6 routes that are accepted; none if absent")
    max_paths: int = Field(
        8, ge=1, le=MAX_GROUP_SIZE, description="the number of next hops of a route; 1 disables multipath", examples=[8]
    )
    stale_time: float = Field(
        120.0, ge=0, le=4095, description="the seconds for which routes stay while FRR or a router restarts", examples=[120]
    )
    bmp: Listen = Field(
        "127.0.0.1:11019", description="host:port at which FRR offers its routes by BMP", examples=["127.0.0.1:11019"]
    )

    def family(self, version: int) -> LearnFamily | None:
        """Return the section of an IP version."""
        return self.ipv4 if version == 4 else self.ipv6


class Bgp(Model):
    asn: int = Field(ge=1, le=MAX_ASN, description="the own AS number", examples=[64512])
    router_id: IPv4Address = Field(description="the BGP identifier, an IPv4 address", examples=["10.0.254.1"])
    neighbors: tuple[BgpNeighbor, ...] = Field(min_length=1, description="the routers")
    service_prefixes: tuple[NetworkField, ...] = Field(
        (),
        description="the anycast prefixes of service addresses, which are announced instead of each address",
        examples=["['2001:db8:a57e::/48']"],
    )
    own_prefixes: tuple[NetworkField, ...] = Field(
        (),
        description="the unicast prefixes of this site, which are announced besides the cookie prefixes",
        examples=["['2001:db8:101::/48']"],
    )
    min_servers: int = Field(
        1, ge=1, le=4096, description="the number of active servers below which a VIP is withdrawn", examples=[1]
    )
    graceful_shutdown: float = Field(
        5.0,
        ge=0,
        le=600,
        description="the seconds for which a draining switch announces its routes with the community GRACEFUL_SHUTDOWN",
        examples=[5],
    )
    graceful_restart: bool = Field(
        True, description="whether routers keep the routes for a while when FRR restarts", examples=["true"]
    )
    learn: Learn | None = Field(None, description="the routes that the switches learn from the routers; none if absent")
    vtysh: tuple[str, ...] = Field(
        ("vtysh",), min_length=1, description="the command that configures FRR", examples=['["vtysh", "-N", "edge"]']
    )

    @property
    def upstreams(self) -> tuple[BgpNeighbor, ...]:
        """The upstream routers."""
        return tuple(neighbor for neighbor in self.neighbors if neighbor.announce is Announce.SERVICES)

    @property
    def default_routes(self) -> frozenset[IPNetwork]:
        """The default routes that neighbors learn."""
        versions = {neighbor.address.version for neighbor in self.neighbors if neighbor.announce is Announce.DEFAULT}
        return frozenset(DEFAULT_ROUTES[version] for version in versions)

    def in_folder(self, folder: Path) -> Bgp:
        """Return the section with absolute paths, for paths relative to ``folder``."""
        return self.model_copy(
            update={
                "neighbors": tuple(
                    neighbor
                    if neighbor.password_file is None
                    else neighbor.model_copy(update={"password_file": (folder / neighbor.password_file).absolute()})
                    for neighbor in self.neighbors
                )
            }
        )
