# SPDX-License-Identifier: Apache-2.0
"""Explains to which server a packet belongs, and why: unseals cookies with the installed keys, and looks up Maglev's table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

from frontage.config import Config
from frontage.config.vips import Protocol, Server, Vip
from frontage.cookie import CID_BYTES, CID_PLAIN, IP6_SIGNAL, RPT_UNIT_US, TCP_LOAD, TCP_RPT, CookieKey, Ip6Cookie, tweak
from frontage.fields import IPAddress
from frontage.state.owners import pools_by_vip, slot_sids, table_rooms

_ENDPOINT = re.compile(r"^(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>\d{1,5})$")
_HEX = re.compile(r"^[0-9a-fA-F]{24}$")
_INTERFACE_ID_BITS = 64
_MAX_PORT = 65535


T = TypeVar("T")


class FlowError(ValueError):
    """The text cannot be explained; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Query:
    """The part of a packet that an operator knows."""

    text: str
    """An address, an address with a port, a cookie address, a connection id, or a TSval or TSecr."""
    vip: str | None = None
    client: IPAddress | None = None
    client_port: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One step of an explanation."""

    what: str
    result: str
    holds: bool


@dataclass(slots=True)
class Explanation:
    """Why a packet belongs to a server."""

    kind: str
    """The kind of the text: address, client, cookie-address, connection-id or timestamp."""
    findings: list[Finding] = field(default_factory=list)
    server: Server | None = None
    vip: Vip | None = None

    def found(self, what: str, result: str, *, holds: bool = True) -> None:
        """Add a step."""
        self.findings.append(Finding(what, result, holds))


def explain(config: Config, query: Query) -> Explanation:
    """Explain a text. Raises FlowError."""
    text = query.text.strip()
    if (endpoint := _ENDPOINT.match(text)) is not None:
        return _explain_client(config, query, _address(endpoint["v6"] or endpoint["v4"]), int(endpoint["port"]))
    if _HEX.match(text):
        return _explain_connection_id(config, bytes.fromhex(text))
    if (number := _number(text)) is not None:
        return _explain_timestamp(config, query, number)
    return _explain_address(config, query, _address(text))


def _address(text: str) -> IPAddress:
    try:
        return ip_address(text)
    except ValueError:
        raise FlowError(
            f'unknown kind of text "{text[:60]}": enter an address, client:port, a cookie address, '
            "a connection id (24 hexadecimal digits), or a TSval or TSecr"
        ) from None


def _number(text: str) -> int | None:
    try:
        number = int(text, 0)
    except ValueError:
        return None
    if not 0 <= number < 1 << 32:
        raise FlowError(f"{text}: a TSval or TSecr must be a 32-bit number: use 0 to 4294967295")
    return number


def _explain_address(config: Config, query: Query, address: IPAddress) -> Explanation:
    for vip in config.vips:
        if vip.cookie_prefix is not None and isinstance(address, IPv6Address) and address in ip_network(vip.cookie_prefix):
            return _explain_cookie_address(config, vip, address)
    explanation = Explanation("address")
    if vips := [vip for vip in config.vips if vip.address == address]:
        names = ", ".join(f"{vip.name} ({vip.protocol} port {vip.port})" for vip in vips)
        explanation.found("address of a VIP", f"{address} is the address of {names}")
        explanation.vip = vips[0]
        return explanation
    if servers := [server for server in config.servers if server.address == address]:
        explanation.server = servers[0]
        explanation.vip = _vip_of(config, servers[0])
        for server in servers:
            explanation.found("address of a server", f"{server.name} of the VIP {server.vip}, port {server.port}, SID {server.sid}")
        return explanation
    if query.client_port is not None:
        return _explain_client(config, query, address, query.client_port)
    explanation.found("address", f"{address} is not the address of a VIP or server: add a port to look up a client", holds=False)
    return explanation


def _explain_client(config: Config, query: Query, client: IPAddress, port: int) -> Explanation:
    """Explain which server a client's connection without a cookie reaches: the owner of its slot in Maglev's table."""
    if not 1 <= port <= _MAX_PORT:
        raise FlowError(f"invalid port {port}: use 1 to {_MAX_PORT}")
    vip = _chosen(config, query, client.version)
    explanation = Explanation("client", vip=vip)
    _find_slot(config, explanation, vip, client, port)
    explanation.found(
        "with a cookie",
        "the cookie in the client's packets identifies the server instead: paste its TSecr, cookie address or connection id",
        holds=False,
    )
    return explanation


def _find_slot(config: Config, explanation: Explanation, vip: Vip, client: IPAddress, port: int) -> None:
    pools = pools_by_vip(config)
    sids = slot_sids(pools[vip.name][0], table_rooms(config, pools)[vip.name])
    if not sids:
        explanation.found("Maglev's table", f"the VIP {vip.name} has no active server", holds=False)
        return
    value = int.from_bytes(tweak(client, vip.address, port, vip.port), "big")
    slot = value & len(sids) - 1
    explanation.found("hash of client, VIP and ports", f"CRC-32 0x{value:08x}")
    explanation.found("Maglev's table", f"slot {slot} of {len(sids)} belongs to SID {sids[slot]}")
    _find_server(config, explanation, sids[slot], vip)


def _explain_cookie_address(config: Config, vip: Vip, address: IPv6Address) -> Explanation:
    explanation = Explanation("cookie-address", vip=vip)
    explanation.found("cookie prefix", f"{address} is in {vip.cookie_prefix} of the VIP {vip.name}")
    word = int(address) & (1 << _INTERFACE_ID_BITS) - 1
    cookie = _opened(config, explanation, lambda key: key.open_ip6(word))
    if cookie is None:
        explanation.found("server", "no key unseals it: the switch drops the packet (COOKIE_FORGED)", holds=False)
        return explanation
    explanation.found("form", _describe_ip6(cookie))
    _find_server(config, explanation, cookie.sid, vip)
    return explanation


def _describe_ip6(cookie: Ip6Cookie) -> str:
    if not cookie.dynamic:
        return "static: clients send to this address"
    n_af, n_ff, rpt = (IP6_SIGNAL.decode(code) for code in (cookie.n_af, cookie.n_ff, cookie.rpt))
    return f"dynamic, from the server: N_AF {n_af}, N_FF {n_ff}, RPT {rpt * RPT_UNIT_US} us"


def _explain_connection_id(config: Config, connection_id: bytes) -> Explanation:
    explanation = Explanation("connection-id")
    if connection_id[0] == CID_PLAIN << 5 | CID_BYTES - 1:
        explanation.found("form", "plaintext: the server id is not encrypted")
        sid = int.from_bytes(connection_id[1:3], "big")
    else:
        opened = _opened(config, explanation, lambda key: key.open_cid(connection_id))
        if opened is None:
            explanation.found("server", "no key unseals it: no server has chosen this connection id", holds=False)
            return explanation
        sid = opened
    _find_server(config, explanation, sid, None)
    return explanation


def _explain_timestamp(config: Config, query: Query, value: int) -> Explanation:
    explanation = Explanation("timestamp")
    low = value & 0xFFFF
    n_af, n_ff, rpt = TCP_LOAD.decode(low >> 5 & 31), TCP_LOAD.decode(low & 31), TCP_RPT.decode(low >> 10) * RPT_UNIT_US
    explanation.found(
        "as a dynamic cookie", f"if a server sent this TSval to the switch: N_AF {n_af}, N_FF {n_ff}, RPT {rpt} us", holds=False
    )
    if query.client is None or query.client_port is None:
        explanation.found("as a static cookie", "sealed for one connection: enter the client's address and port, too", holds=False)
        return explanation
    vip = _chosen(config, query, query.client.version)
    explanation.vip = vip
    connection = tweak(query.client, vip.address, query.client_port, vip.port)
    explanation.found("connection", f"{query.client} port {query.client_port} to {vip.address} port {vip.port}")
    sid = _opened(config, explanation, lambda key: key.open_tcp(low, connection))
    if sid is None:
        explanation.found("as a static cookie", "no key unseals it for this connection: Maglev's table decides", holds=False)
        _find_slot(config, explanation, vip, query.client, query.client_port)
        return explanation
    explanation.found("as a static cookie", f"the low 16 bits 0x{low:04x} contain SID {sid}")
    _find_server(config, explanation, sid, vip)
    return explanation


def _opened(config: Config, explanation: Explanation, opens: Callable[[CookieKey], T | None]) -> T | None:
    """Return the content of a cookie, unsealed with the first key that fits."""
    for key in reversed(config.cookie_keys):
        if (found := opens(key)) is not None:
            explanation.found(f"key {key.id}", f"unseals it (epoch {key.epoch}, all check bits are zero)")
            return found
        explanation.found(f"key {key.id}", f"does not unseal it (epoch {key.epoch})", holds=False)
    return None


def _find_server(config: Config, explanation: Explanation, sid: int, vip: Vip | None) -> None:
    server = next((server for server in config.servers if server.sid == sid), None)
    if server is None:
        explanation.found("server", f"unknown SID {sid}: the switch drops the packet (SERVER_GONE)", holds=False)
        return
    if vip is not None and server.vip != vip.name:
        explanation.found("server", f"SID {sid} is {server.name}, which belongs to another VIP, {server.vip}", holds=False)
        return
    explanation.vip = _vip_of(config, server)
    explanation.server = server
    state = "active" if server.active else "draining: keeps its connections and gets no new ones"
    explanation.found("server", f"SID {sid} is {server.name}, {server.address} port {server.port}, {state}")


def _vip_of(config: Config, server: Server) -> Vip:
    return next(vip for vip in config.vips if vip.name == server.vip)


def _chosen(config: Config, query: Query, version: int) -> Vip:
    """Return the VIP of a query: the given one, or the only one with an address of this version. Raises FlowError."""
    vips = [vip for vip in config.vips if vip.address.version == version]
    if query.vip is not None:
        vips = [vip for vip in vips if vip.name == query.vip]
        if not vips:
            raise FlowError(f'no VIP "{query.vip}" with an IPv{version} address: choose another VIP')
    vips = sorted(vips, key=lambda vip: vip.protocol is not Protocol.TCP)
    if len(vips) == 1:
        return vips[0]
    names = ", ".join(vip.name for vip in vips[:8])
    raise FlowError(
        f"several VIPs have an IPv{version} address: choose one of {names}" if vips else f"no VIP has an IPv{version} address"
    )
