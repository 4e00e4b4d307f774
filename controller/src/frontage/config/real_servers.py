# SPDX-License-Identifier: Apache-2.0
"""The section of the configuration about the real servers of QDSR (docs/real-servers.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from frontage.config.sites import Addresses, as_list
from frontage.config.vips import Server
from frontage.fields import IPAddress, MacField, Model, Name

Names = Annotated[tuple[Name, ...], BeforeValidator(as_list)]
"""One name, or a list of names."""


class RealServer(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["real1"])
    port: Name = Field(description="the name of one of `ports`, of role 'real-server'", examples=["rack3"])
    mac: MacField | None = Field(
        None,
        description="the unicast Ethernet address of the real server, or of its next hop; "
        "the controller resolves the addresses if absent",
        examples=["02:00:00:00:04:01"],
    )
    addresses: Addresses = Field(
        min_length=1,
        description="the address, or a list of addresses, at which load balancers reach the real server",
        examples=["['10.0.3.1', '2001:db8:3::1']"],
    )
    # ``for`` in the file, a keyword in Python.
    senders: Names = Field(
        alias="for",
        min_length=1,
        description="the servers on whose behalf it may send: names of servers, or of VIPs for all their servers",
        examples=["[films]"],
    )


def balancers(real_servers: Sequence[RealServer], servers: Sequence[Server]) -> Iterator[tuple[RealServer, list[Server]]]:
    """Yield every real server with its load balancers: the servers on whose behalf it may send."""
    by_name: dict[str, list[Server]] = {}
    for server in servers:
        by_name.setdefault(server.vip, []).append(server)
        by_name.setdefault(server.name, []).append(server)
    for real_server in real_servers:
        found = {server.sid: server for name in real_server.senders for server in by_name.get(name, [])}
        yield real_server, list(found.values())


def senders(real_servers: Sequence[RealServer], servers: Sequence[Server]) -> dict[tuple[str, int], bool]:
    """Map (port name, SID) to whether real servers behind that port send for the server with that SID.

    The key is a server in whose name packets may come from the port. The value is False where the server itself is
    behind the port, and True where only real servers are.
    """
    found = {(r.port, server.sid): True for r, behind in balancers(real_servers, servers) for server in behind}
    by_address: dict[IPAddress, list[Server]] = {}
    for server in servers:
        by_address.setdefault(server.address, []).append(server)
    for real_server in real_servers:
        for address in real_server.addresses:
            found |= {(real_server.port, server.sid): False for server in by_address.get(address, [])}
    return found
