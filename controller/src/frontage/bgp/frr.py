# SPDX-License-Identifier: Apache-2.0
"""FRR's configuration, through its shell ``vtysh``.

The BGP instance with the configured AS number belongs to the controller: it removes neighbors and networks of that instance that
the configuration does not have. Everything else in FRR stays.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from frontage.bgp.announce import Announcement, Export
from frontage.config.bgp import DEFAULT_ROUTES, Announce, Bgp, BgpNeighbor, Learn
from frontage.config.schema import Config
from frontage.fields import IPAddress, IPNetwork, split_listen

TIMEOUT = 10.0
"""Seconds that FRR may take for a command."""
BFD_TIMERS = "3 100 100"
"""Detection multiplier, and receive and transmit intervals in milliseconds."""
TIMERS = "3 9"
"""Keepalive and hold time of sessions in seconds."""
CONNECT_RETRY = 1
POLICY_DELAY = 1
"""Seconds after which a changed route map takes effect. With zero, it never would by itself."""
MAX_HOPS = 4
"""Hops to a router: the session passes through the switch."""
IMPORT = "frontage-in"
"""The route map for what routers announce. It accepts everything if switches learn routes: the controller has the prefix lists."""
OWN = "frontage-own"
"""The list of the AS paths of own routes, so that no router learns the routes of another."""
REJECT = "frontage-reject"
"""The route map for announcements of servers and rack routers."""
DEFAULT = "frontage-default"
"""The prefix list of the default routes."""
NO_KERNEL = "frontage-rib"
"""The route map that keeps learned routes out of the kernel of FRR's host."""
BMP_TARGETS = "frontage"
MAP = "frontage-"
"""Prefix of the names of the outgoing route maps. The address of the router follows."""
WITHHELD = "frontage-withheld-"
"""Prefix of the names of the lists of withheld prefixes. The name of the switch follows."""


ESTABLISHED = "Established"
"""The state of a session in which routes are exchanged (RFC 4271, section 8.2.2)."""


class FrrError(Exception):
    """FRR does not run, or rejects a command."""


@dataclass(frozen=True, slots=True)
class Originated:
    """The part of FRR's BGP instance that may have to be removed."""

    neighbors: frozenset[IPAddress] = frozenset()
    networks: frozenset[IPNetwork] = frozenset()
    listeners: frozenset[str] = frozenset()
    """Where it offers routes by BMP, in FRR's words."""
    withheld: Mapping[str, frozenset[IPNetwork]] = field(default_factory=dict)
    """Prefixes that are withheld from the routers of a switch, by name of the switch."""
    permitted: frozenset[IPAddress] = frozenset()
    """Routers that get routes."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session with a router."""

    state: str
    """As in RFC 4271, section 8.2.2, for example ``Established``."""
    sent: int = 0
    """Announced prefixes."""
    drops: int = 0
    """How many times the session ended."""


@dataclass(slots=True)
class Frr:
    """FRR as seen through ``vtysh``."""

    vtysh: Sequence[str] = field(default=("vtysh",))

    async def configure(self, lines: Iterable[str]) -> None:
        """Run lines of configuration. Raises FrrError."""
        await self._run(["-f", "/dev/stdin"], "\n".join(lines) + "\n")

    async def originated(self, asn: int) -> Originated:
        """Return what the instance has. Raises FrrError, also if FRR has an instance with another AS number."""
        return parse_running(await self._run(["-c", "show running-config bgpd"]), asn)

    async def sessions(self) -> dict[IPAddress, SessionState]:
        """Return the state of the session with each router. Raises FrrError."""
        text = await self._run(["-c", "show bgp summary json"])
        try:
            return parse_summary(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FrrError(f"vtysh: unexpected summary of BGP: {error}: use FRR 8.4 or later") from None

    async def keeps_stale(self, prefix: IPNetwork, neighbor: IPAddress) -> bool:
        """Return whether FRR has kept a route of a router that restarts (RFC 4724, section 4.2). Raises FrrError."""
        text = await self._run(["-c", f"show bgp ipv{prefix.version} unicast {prefix} json"])
        try:
            return is_stale(json.loads(text), neighbor)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FrrError(f"vtysh: unexpected description of {prefix}: {error}: use FRR 8.4 or later") from None

    async def _run(self, arguments: Sequence[str], text: str = "") -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.vtysh,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as error:
            raise FrrError(f"{self.vtysh[0]}: cannot be run: {error.strerror}: install FRR, or correct bgp.vtysh") from None
        try:
            async with asyncio.timeout(TIMEOUT):
                output, _ = await process.communicate(text.encode())
        except TimeoutError:
            raise FrrError(f"vtysh: no result after {TIMEOUT:g} s: is FRR running?") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = output.decode(errors="replace")
        if process.returncode != 0 or "failed to connect to any daemons" in said:
            why = said.strip().splitlines()[-1] if said.strip() else f"exit status {process.returncode}"
            raise FrrError(f"vtysh: {why}: start FRR with bgpd and bfdd")
        return said


def parse_running(text: str, asn: int) -> Originated:
    """Return what FRR's running configuration has of our instance. Raises FrrError if the instance has another AS number."""
    neighbors: set[IPAddress] = set()
    networks: set[IPNetwork] = set()
    listeners: set[str] = set()
    withheld: dict[str, set[IPNetwork]] = {}
    permitted: set[IPAddress] = set()
    is_ours = False
    for line in text.splitlines():
        if found := re.match(r"router bgp (\d+)\s*$", line):
            if int(found[1]) != asn:
                raise FrrError(
                    f"FRR already has a BGP instance with AS number {found[1]}: use it as bgp.asn, or remove it from FRR"
                )
            is_ours = True
        elif line and not line[0].isspace() and line[0] != "!":
            is_ours = False
            if found := re.match(rf"ip(?:v6)? prefix-list {WITHHELD}(\S+) seq \d+ permit (\S+)\s*$", line):
                withheld.setdefault(found[1], set()).add(ip_network(found[2]))
            elif found := re.match(rf"route-map {MAP}(?:default-)?([0-9a-f.:]+) permit 10\s*$", line):
                permitted.add(ip_address(found[1]))
        elif is_ours and (found := re.match(r"\s+neighbor (\S+) remote-as ", line)):
            neighbors.add(ip_address(found[1]))
        elif is_ours and (found := re.match(r"\s+network (\S+)", line)):
            networks.add(ip_network(found[1]))
        elif is_ours and (found := re.match(r"\s+bmp listener (.+?)\s*$", line)):
            listeners.add(found[1])
    lists = {name: frozenset(prefixes) for name, prefixes in withheld.items()}
    return Originated(frozenset(neighbors), frozenset(networks), frozenset(listeners), lists, frozenset(permitted))


def recovered(config: Config, bgp: Bgp, present: Originated) -> Announcement:
    """Return FRR's announcements for an earlier controller. This one keeps them until it knows the state of a switch."""
    exports = {
        config.bgp_device(neighbor): Export.ANNOUNCED if neighbor.address in present.permitted else Export.WITHDRAWN
        for neighbor in bgp.neighbors
        if neighbor.address in present.neighbors
    }
    return Announcement(present.networks, exports, present.withheld)


def parse_summary(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, object]]]]) -> dict[IPAddress, SessionState]:
    """Return the sessions of ``show bgp summary json``."""
    return {
        ip_address(address): SessionState(
            str(peer["state"]), int(str(peer.get("pfxSnt") or 0)), int(str(peer.get("connectionsDropped") or 0))
        )
        for family in summary.values()
        for address, peer in family.get("peers", {}).items()
    }


def is_stale(route: Mapping[str, Any], neighbor: IPAddress) -> bool:
    """Return whether the path of a neighbor is stale, by ``show bgp ... PREFIX json``."""
    return any(bool(path.get("stale")) for path in route.get("paths", ()) if path["peer"]["peerId"] == str(neighbor))


def setup_lines(bgp: Bgp, passwords: Mapping[IPAddress, str], present: Originated) -> Iterator[str]:
    """Yield the lines that set up the instance and its neighbors. They change nothing if they have been run before."""
    yield f"bgp route-map delay-timer {POLICY_DELAY}"
    yield from (f"route-map {IMPORT} {'deny' if bgp.learn is None else 'permit'} 10", "exit")
    yield from (f"route-map {REJECT} deny 10", "exit")
    yield from (f"{_ip(version)} prefix-list {DEFAULT} permit {route}" for version, route in DEFAULT_ROUTES.items())
    yield from (f"route-map {NO_KERNEL} deny 10", "exit")
    yield f"bgp as-path access-list {OWN} permit ^$"
    yield f"router bgp {bgp.asn}"
    yield f" bgp router-id {bgp.router_id}"
    yield " no bgp default ipv4-unicast"
    yield " no bgp network import-check"
    yield f" {'' if bgp.graceful_restart else 'no '}bgp graceful-restart"
    wanted = {neighbor.address for neighbor in bgp.neighbors}
    for address in sorted(present.neighbors - wanted, key=str):
        yield f" no neighbor {address}"
    if present.listeners - ({_listener(bgp.learn)} if bgp.learn is not None else set()):
        yield f" no bmp targets {BMP_TARGETS}"
    for version in (4, 6):
        yield from (f" address-family ipv{version} unicast", f"  table-map {NO_KERNEL}", " exit-address-family")
    for neighbor in bgp.neighbors:
        yield from _neighbor_lines(neighbor, passwords.get(neighbor.address))
    yield "exit"


def monitor_lines(bgp: Bgp, learn: Learn) -> Iterator[str]:
    """Yield the lines that let FRR offer its routes by BMP. FRR rejects them without its module for BMP."""
    yield from (f"router bgp {bgp.asn}", f" bmp targets {BMP_TARGETS}")
    yield from (f"  bmp monitor ipv{version} unicast post-policy" for version in (4, 6))
    yield from (f"  bmp listener {_listener(learn)}", " exit", "exit")


def _listener(learn: Learn) -> str:
    host, port = split_listen(learn.bmp)
    return f"{host} port {port}"


def _neighbor_lines(neighbor: BgpNeighbor, password: str | None) -> Iterator[str]:
    who = f" neighbor {neighbor.address}"
    yield f"{who} remote-as {neighbor.asn}"
    yield f"{who} ebgp-multihop {MAX_HOPS}"
    yield f"{who} disable-connected-check"
    yield f"{who} timers {TIMERS}"
    yield f"{who} timers connect {CONNECT_RETRY}"
    yield f"{who} update-source {neighbor.source}" if neighbor.source else f" no neighbor {neighbor.address} update-source"
    yield f"{who} bfd {BFD_TIMERS}" if neighbor.bfd else f" no neighbor {neighbor.address} bfd"
    yield f"{who} password {password}" if password else f" no neighbor {neighbor.address} password"
    yield f" address-family ipv{neighbor.address.version} unicast"
    yield f" {who} activate"
    yield f" {who} route-map {map_name(neighbor)} out"
    yield f" {who} route-map {IMPORT if neighbor.announce is Announce.SERVICES else REJECT} in"
    yield " exit-address-family"


def map_name(neighbor: BgpNeighbor) -> str:
    """Return the name of the route map for what a router learns."""
    kind = "" if neighbor.announce is Announce.SERVICES else f"{neighbor.announce}-"
    return f"{MAP}{kind}{neighbor.address}"


def export_lines(config: Config, bgp: Bgp, exports: Mapping[str, Export]) -> Iterator[str]:
    """Yield the route maps of the routers of these switches."""
    for neighbor in bgp.neighbors:
        device = config.bgp_device(neighbor)
        export = exports.get(device)
        if export is None:
            continue
        yield f"route-map {map_name(neighbor)} deny 5"
        yield f" match {_ip(neighbor.address.version)} address prefix-list {WITHHELD}{device}"
        yield "exit"
        default = f" match {_ip(neighbor.address.version)} address prefix-list {DEFAULT}"
        if neighbor.announce is Announce.SERVICES:
            yield from (f"route-map {map_name(neighbor)} deny 7", default, "exit")
        yield f"route-map {map_name(neighbor)} {'deny' if export is Export.WITHDRAWN else 'permit'} 10"
        yield f" match as-path {OWN}"
        if neighbor.announce is Announce.DEFAULT:
            yield default
        if export is not Export.WITHDRAWN:
            yield from _attribute_lines(config, bgp, neighbor, export)
        yield "exit"


def _attribute_lines(config: Config, bgp: Bgp, neighbor: BgpNeighbor, export: Export) -> Iterator[str]:
    hop = config.bgp_next_hop(neighbor)
    yield f" set ip next-hop {hop}" if neighbor.address.version == 4 else f" set ipv6 next-hop global {hop}"
    communities = [*neighbor.communities, *([] if export is Export.ANNOUNCED else ["graceful-shutdown"])]
    yield f" set community {' '.join(communities)}" if communities else " no set community"
    yield f" set as-path prepend {' '.join([str(bgp.asn)] * neighbor.prepend)}" if neighbor.prepend else " no set as-path prepend"


def _ip(version: int) -> str:
    return "ip" if version == 4 else "ipv6"


def withheld_lines(present: Mapping[str, Collection[IPNetwork]], wanted: Mapping[str, Collection[IPNetwork]]) -> Iterator[str]:
    """Yield the prefix lists that withhold ``wanted`` instead of ``present``, both by name of the switch."""
    for name in sorted(present.keys() | wanted.keys()):
        old, new = set(present.get(name, ())), set(wanted.get(name, ()))
        for word, prefixes in (("", new - old), ("no ", old - new)):
            for prefix in sorted(prefixes, key=str):
                yield f"{word}{_ip(prefix.version)} prefix-list {WITHHELD}{name} permit {prefix}"


def network_lines(bgp: Bgp, present: Collection[IPNetwork], wanted: Collection[IPNetwork]) -> Iterator[str]:
    """Yield the lines that originate ``wanted`` instead of ``present``."""
    yield f"router bgp {bgp.asn}"
    for version in (4, 6):
        yield f" address-family ipv{version} unicast"
        for word, networks in (("network", set(wanted) - set(present)), ("no network", set(present) - set(wanted))):
            yield from (f"  {word} {network}" for network in sorted(networks, key=str) if network.version == version)
        yield " exit-address-family"
    yield "exit"


def lines(config: Config, bgp: Bgp, present: Originated, wanted: Announcement) -> Iterator[str]:
    """Yield the lines that announce ``wanted``: export policies before the routes that they apply to."""
    yield from withheld_lines(present.withheld, wanted.withheld)
    yield from export_lines(config, bgp, wanted.exports)
    yield from network_lines(bgp, present.networks, wanted.prefixes)
