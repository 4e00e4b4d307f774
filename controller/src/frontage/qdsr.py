"""The part of the configuration about QDSR: real servers, and the servers in whose names they send (docs/real-servers.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from frontage.artemis import Addresses, listed
from frontage.fields import IPAddress, MacField, Name
from frontage.model import Model

if TYPE_CHECKING:
    from frontage.config import Config
    from frontage.vips import Server

Names = Annotated[tuple[Name, ...], BeforeValidator(listed)]
"""One name, or a list of them."""


class RealServer(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["real1"])
    port: Name = Field(description="the name of one of `ports`, of role 'real-server'", examples=["rack3"])
    mac: MacField = Field(description="its unicast Ethernet address, or its next hop's", examples=["02:00:00:00:04:01"])
    addresses: Addresses = Field(
        min_length=1,
        description="its own address, or a list of them, at which its load balancers reach it",
        examples=["['10.0.3.1', '2001:db8:3::1']"],
    )
    # The field's name in the file is ``for``, a word of Python's.
    senders: Names = Field(
        alias="for",
        min_length=1,
        description="the servers as which it may send: their names, or those of VIPs, for all servers of a VIP",
        examples=["[films]"],
    )


def balancers(config: Config) -> Iterator[tuple[RealServer, list[Server]]]:
    """Every real server, with the servers as which it may send, its load balancers."""
    by_name: dict[str, list[Server]] = {}
    for server in config.servers:
        by_name.setdefault(server.vip, []).append(server)
        by_name.setdefault(server.name, []).append(server)
    for real_server in config.real_servers:
        found = {server.sid: server for name in real_server.senders for server in by_name.get(name, [])}
        yield real_server, list(found.values())


def senders(config: Config) -> dict[tuple[str, int], bool]:
    """By name of a port of real servers and SID, as whom they may send, and whether that is second-hand: not the server itself."""
    found = {(real_server.port, server.sid): True for real_server, servers in balancers(config) for server in servers}
    by_address: dict[IPAddress, list[Server]] = {}
    for server in config.servers:
        by_address.setdefault(server.address, []).append(server)
    for real_server in config.real_servers:
        for address in real_server.addresses:
            found |= {(real_server.port, server.sid): False for server in by_address.get(address, [])}
    return found
