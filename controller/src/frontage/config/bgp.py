# SPDX-License-Identifier: Apache-2.0
"""The section ``bgp`` of the configuration: the routers to which FRR announces VIPs."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from pydantic import Field

from frontage.fields import AddressField, Model, Name

COMMUNITY = r"^\d{1,5}:\d{1,5}$"
MAX_ASN = (1 << 32) - 1


class BgpNeighbor(Model):
    address: AddressField = Field(
        description="the router's address; its IP version is that of the announced VIPs", examples=["192.0.2.254"]
    )
    asn: int = Field(ge=1, le=MAX_ASN, description="the router's AS number", examples=[64513])
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


class Bgp(Model):
    asn: int = Field(ge=1, le=MAX_ASN, description="the own AS number", examples=[64512])
    router_id: IPv4Address = Field(description="the BGP identifier, an IPv4 address", examples=["10.0.254.1"])
    neighbors: tuple[BgpNeighbor, ...] = Field(min_length=1, description="the routers")
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
    vtysh: tuple[str, ...] = Field(
        ("vtysh",), min_length=1, description="the command that configures FRR", examples=['["vtysh", "-N", "edge"]']
    )

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
