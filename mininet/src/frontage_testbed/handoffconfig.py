"""Configurations of balancers that hand requests over, and of the real servers that get them. All fields are in
host-agents/cclb7-quic and host-agents/real-server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LINK_PORT = 4500
"""Where real servers wait for balancers: UDP."""
ORIGIN_PORT = 8080
"""Where they answer over HTTP/1.1 what is not handed to them."""

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
balancers = ["{balancer}"]
origin = "[{address}]:{origin_port}"
{fields}
{routes}"""

OBJECTS = """\
[[route]]
path = "/"
directory = "objects"
"""
"""The route of one that has files."""


@dataclass(frozen=True)
class RealServer:
    """One of them: its certificate is for its name."""

    name: str
    address: str

    @property
    def origin(self) -> str:
        """Where it answers over HTTP/1.1."""
        return f"http://[{self.address}]:{ORIGIN_PORT}"


def balancer(name: str, address: str, port: int, fields: str = "") -> str:
    """How a balancer's begins, with what it has beside these fields; its sections and routes follow."""
    return BALANCER.format(name=name, address=address, port=port, fields=fields)


def handoff(name: str, servers: Iterable[RealServer], fields: str = "") -> str:
    """The section [handoff] of a balancer of this name."""
    listed = (f'{{ name = "{s.name}", address = "[{s.address}]:{LINK_PORT}", origin = "{s.origin}" }}' for s in servers)
    return HANDOFF.format(balancer=name, servers=", ".join(listed), fields=fields)


def handed_route(policy: str) -> str:
    """All requests are for the real servers, as this policy chooses."""
    return f'[[route]]\npath = "/"\nreal_servers = {{ policy = "{policy}" }}\n'


def proxied_route(server: RealServer) -> str:
    """The balancer is a proxy of one of them."""
    return f'[[route]]\npath = "/"\norigin = "{server.origin}"\n'


def real_server(server: RealServer, balancer: str, fields: str = "", routes: str = OBJECTS) -> str:
    """A real server's, whose balancer has this name; `fields` may end with sections."""
    return REAL_SERVER.format(
        name=server.name,
        address=server.address,
        balancer=balancer,
        link_port=LINK_PORT,
        origin_port=ORIGIN_PORT,
        fields=fields,
        routes=routes,
    )
