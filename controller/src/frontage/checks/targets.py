# SPDX-License-Identifier: Apache-2.0
"""The orders for the prober that a configuration needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frontage.checks.messages import Ping, Target
from frontage.config import Config
from frontage.config.health import CheckKind
from frontage.config.vips import Server

_LIBRARIES = {CheckKind.HTTP: "h11", CheckKind.HTTPS: "h11", CheckKind.HTTP3: "aioquic", CheckKind.GRPC: "h2"}


def targets(config: Config) -> Iterator[tuple[Server, Target]]:
    """Yield every checked server, including draining ones, with its target. The id is 0, and the source is missing."""
    if not config.checkers:
        return
    vips = {vip.name: vip for vip in config.vips if vip.health is not None}
    for server in config.servers:
        vip = vips.get(server.vip)
        if vip is None or vip.health is None:
            continue
        check = vip.health
        statuses = check.statuses
        yield (
            server,
            Target(
                id=0,
                kind=str(check.kind),
                source="",
                sid=server.sid,
                address=str(vip.address),
                port=vip.port,
                interval=check.interval,
                timeout=check.timeout,
                jitter=check.jitter,
                path=check.path,
                host=check.host or "",
                status=(statuses[0], statuses[-1]),
                body=check.body,
                verify=check.verify,
                service=check.service,
                tls=check.tls,
                command=check.command,
            ),
        )


@dataclass(frozen=True, slots=True)
class Source:
    """An address of the checker, behind a port of a switch."""

    switch: str
    version: int
    ping: Ping
    """The pings from the address to a gateway of that port."""


def sources(config: Config) -> list[Source]:
    """Return the addresses of the checkers of all switches."""
    result = []
    for switch, checker in config.checkers.items():
        gateways = next(port.gateways for port in config.ports_of(switch) if port.name == checker.port)
        for address in checker.addresses:
            same_version = [gateway for gateway in gateways if gateway.version == address.version]
            nearest = next((gateway for gateway in same_version if address in gateway.network), same_version[0])
            result.append(Source(switch, address.version, Ping(str(address), str(nearest.ip))))
    return result


def libraries(config: Config) -> list[str]:
    """Return the Python modules that the checks of this configuration need, beyond those of the controller."""
    kinds = {vip.health.kind for vip in config.vips if vip.health is not None}
    return sorted({_LIBRARIES[kind] for kind in kinds if kind in _LIBRARIES})
