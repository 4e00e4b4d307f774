# SPDX-License-Identifier: Apache-2.0
"""BGP between a fleet, its upstream router and its servers: FRR on each of them, and on a host in the rack, which the controller
configures.

The router and each server have one session for each edge switch and IP version, and its packets pass through that switch. For this,
a server has an address for each switch.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from ..datacentre.addresses import ServerAddresses
from ..frr import Frr
from .addresses import RACK4, RACK6, EdgeAddresses

SPEAKER = "speaker"
ASN = 64512
ROUTER_ASN = 64513
SERVER_ASN = 64514
BFD = "bfd 3 100 100"


def speaker4(edge: EdgeAddresses) -> str:
    """Return the speaker's IPv4 address for the session through a switch."""
    return f"10.0.254.{edge.index + 1}"


def speaker6(edge: EdgeAddresses) -> str:
    """Return the speaker's IPv6 address for the session through a switch."""
    return f"fd00:0:0:fffe::{edge.index + 1:x}"


def session4(server: ServerAddresses, edge: EdgeAddresses) -> str:
    """Return a server's IPv4 address for the session through a switch."""
    return f"10.0.{240 + edge.index}.{server.index + 1}"


def session6(server: ServerAddresses, edge: EdgeAddresses) -> str:
    """Return a server's IPv6 address for the session through a switch."""
    return f"fd00:0:0:ff{240 + edge.index:02x}::{server.index + 1:x}"


def speaker_setup(edges: Sequence[EdgeAddresses], servers: Sequence[ServerAddresses]) -> list[str]:
    """Return the set-up script of the speaker: each address of a router or server is behind its switch."""
    lines = []
    for edge in edges:
        lines.append(f"ip addr add {speaker4(edge)}/{RACK4} dev eth0")
        # With the rack's prefix length, FRR would announce its own link-local address to the servers, as a second next hop.
        lines.append(f"ip addr add {speaker6(edge)}/128 dev eth0 nodad")
        lines.append(f"ip -6 route add {edge.rack6}/128 dev eth0")
        lines.append(f"ip route add {edge.router4}/32 via {edge.rack4}")
        lines.append(f"ip -6 route add {edge.router6}/128 via {edge.rack6}")
        for server in servers:
            lines.append(f"ip route add {session4(server, edge)}/32 via {edge.rack4}")
            lines.append(f"ip -6 route add {session6(server, edge)}/128 via {edge.rack6}")
    return lines


def routes_to_speaker(edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the lines of the router's set-up script: each address of the speaker is behind its switch."""
    lines = []
    for edge in edges:
        lines.append(f"ip route add {speaker4(edge)}/32 via {edge.uplink4}")
        lines.append(f"ip -6 route add {speaker6(edge)}/128 via {edge.uplink6}")
    return lines


def server_session_setup(server: ServerAddresses, edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the lines of a server's set-up script: its addresses for sessions, and those of the speaker behind the switches."""
    lines = []
    for edge in edges:
        lines.append(f"ip addr add {session4(server, edge)}/{RACK4} dev eth0")
        lines.append(f"ip addr add {session6(server, edge)}/{RACK6} dev eth0 nodad preferred_lft 0")
        lines.append(f"ip route add {speaker4(edge)}/32 via {edge.rack4}")
        lines.append(f"ip -6 route add {speaker6(edge)}/128 via {edge.rack6}")
    return lines


def server_configuration(server: ServerAddresses, edges: Sequence[EdgeAddresses], password: str) -> str:
    """Return the configuration of a server's FRR, which learns default routes and announces nothing.

    Routes with GRACEFUL_SHUTDOWN are its last choice (RFC 8326).
    """
    sessions = [
        (speaker(edge), source(server, edge)) for edge in edges for speaker, source in ((speaker4, session4), (speaker6, session6))
    ]
    lines = ["bgp community-list standard shutdown permit graceful-shutdown"]
    lines += ["route-map in permit 5", " match community shutdown", " set local-preference 0", "exit"]
    lines += ["route-map in permit 10", "exit", "route-map out deny 10", "exit"]
    lines += [f"router bgp {SERVER_ASN}", " no bgp default ipv4-unicast", f" bgp router-id {server.address4}"]
    for neighbor, source in sessions:
        lines.append(f" neighbor {neighbor} remote-as {ASN}")
        options = (f"update-source {source}", "ebgp-multihop 4", "timers connect 1", f"password {password}", BFD)
        lines += [f" neighbor {neighbor} {option}" for option in options]
    for version in (4, 6):
        lines += [f" address-family ipv{version} unicast", "  maximum-paths 8"]
        for neighbor, _ in sessions:
            if (":" in neighbor) == (version == 6):
                lines += [f"  neighbor {neighbor} {word}" for word in ("activate", "route-map in in", "route-map out out")]
        lines.append(" exit-address-family")
    return "\n".join([*lines, "exit", ""])


def router_configuration(edges: Sequence[EdgeAddresses], password: str) -> str:
    """Return the configuration of the router's FRR, which accepts everything that the speaker announces."""
    sessions = [
        (speaker(edge), source) for edge in edges for speaker, source in ((speaker4, edge.router4), (speaker6, edge.router6))
    ]
    lines = [f"router bgp {ROUTER_ASN}", " no bgp default ipv4-unicast", " no bgp ebgp-requires-policy"]
    lines += [" bgp bestpath as-path multipath-relax", f" bgp router-id {edges[0].router4}"]
    for neighbor, source in sessions:
        lines += [
            f" neighbor {neighbor} remote-as {ASN}",
            f" neighbor {neighbor} ebgp-multihop 4",
            f" neighbor {neighbor} update-source {source}",
            f" neighbor {neighbor} timers connect 1",
            f" neighbor {neighbor} password {password}",
            f" neighbor {neighbor} {BFD}",
        ]
    for version in (4, 6):
        lines += [f" address-family ipv{version} unicast", "  maximum-paths 8"]
        lines += [f"  neighbor {neighbor} activate" for neighbor, _ in sessions if (":" in neighbor) == (version == 6)]
        lines.append(" exit-address-family")
    return "\n".join([*lines, "exit", ""])


def with_bgp(
    text: str, edges: Sequence[EdgeAddresses], servers: Sequence[ServerAddresses], speaker: Frr, password_file: str
) -> str:
    """Return a fleet's configuration with the section `bgp`, and with the hosts of sessions as neighbors of each switch."""
    document = yaml.safe_load(text)
    for device, edge in zip(document["devices"], edges, strict=True):
        hosts = [speaker4(edge), speaker6(edge), *(session(s, edge) for s in servers for session in (session4, session6))]
        device["neighbors"] = [{"address": address, "port": "rack"} for address in hosts]
    document["bgp"] = {
        "asn": ASN,
        "router_id": speaker4(edges[0]),
        "graceful_shutdown": 1,
        "vtysh": speaker.vtysh,
        "neighbors": [
            {"address": router, "asn": ROUTER_ASN, "device": edge.name, "source": source, "password_file": password_file}
            for edge in edges
            for router, source in ((edge.router4, speaker4(edge)), (edge.router6, speaker6(edge)))
        ],
    }
    document["bgp"]["neighbors"] += [
        {"address": session(server, edge), "asn": SERVER_ASN, "device": edge.name, "source": source, "password_file": password_file}
        | {"announce": "default"}
        for edge in edges
        for server in servers
        for session, source in ((session4, speaker4(edge)), (session6, speaker6(edge)))
    ]
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed
