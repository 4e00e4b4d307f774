# SPDX-License-Identifier: Apache-2.0
"""Configurations of balancers that delegate requests, and of their real servers.

host-agents/cclb7-quic and host-agents/real-server document all fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LINK_PORT = 4500
"""UDP port on which real servers accept balancers."""
ORIGIN_PORT = 8080
"""Port on which real servers answer proxied requests over HTTP/1.1."""

BALANCER = """\
listen = ["[{address}]:{port}"]
certificate = "{name}.pem"
private_key = "{name}.key"
{fields}"""

HANDOFF = """\
[handoff]
certificate = "{balancer}.pem"
private_key = "{balancer}.key"
ca = "ca.pem"
servers = [{servers}]
{fields}"""

REAL_SERVER = """\
listen = "[{address}]:{link_port}"
certificate = "{name}.pem"
private_key = "{name}.key"
ca = "ca.pem"
balancers = [{balancers}]
origin = "[{address}]:{origin_port}"
{fields}
{routes}"""

OBJECTS = """\
[[route]]
path = "/"
directory = "objects"
"""
"""The route of a real server that serves files."""


@dataclass(frozen=True)
class RealServer:
    """A real server; its certificate is issued for its name."""

    name: str
    address: str

    @property
    def origin(self) -> str:
        """Base URL for proxied requests over HTTP/1.1."""
        return f"http://[{self.address}]:{ORIGIN_PORT}"


def balancer(name: str, address: str, port: int, fields: str = "") -> str:
    """Return the beginning of a balancer's configuration, with additional `fields`; sections and routes follow it."""
    return BALANCER.format(name=name, address=address, port=port, fields=fields)


def handoff(name: str, servers: Iterable[RealServer], fields: str = "") -> str:
    """Return the section [handoff] for the balancer of this name."""
    listed = (f'{{ name = "{s.name}", address = "[{s.address}]:{LINK_PORT}", origin = "{s.origin}" }}' for s in servers)
    return HANDOFF.format(balancer=name, servers=", ".join(listed), fields=fields)


def handed_route(policy: str) -> str:
    """Return a route that delegates all requests to the real servers that `policy` selects."""
    return f'[[route]]\npath = "/"\nreal_servers = {{ policy = "{policy}" }}\n'


def proxied_route(server: RealServer) -> str:
    """Return a route that proxies all requests to one real server."""
    return f'[[route]]\npath = "/"\norigin = "{server.origin}"\n'


def real_server(server: RealServer, balancers: Iterable[str], fields: str = "", routes: str = OBJECTS) -> str:
    """Return a real server's configuration; `balancers` are the names of its balancers, and `fields` may end with sections."""
    return REAL_SERVER.format(
        name=server.name,
        address=server.address,
        balancers=", ".join(f'"{balancer}"' for balancer in balancers),
        link_port=LINK_PORT,
        origin_port=ORIGIN_PORT,
        fields=fields,
        routes=routes,
    )
