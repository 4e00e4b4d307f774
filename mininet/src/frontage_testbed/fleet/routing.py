# SPDX-License-Identifier: Apache-2.0
"""BGP between a fleet and its upstream router: FRR on the router, and FRR on a host in the rack, which the controller configures.

There is one session for each edge switch and IP version, and its packets pass through that switch.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from ..frr import Frr
from .addresses import RACK4, RACK6, EdgeAddresses

SPEAKER = "speaker"
ASN = 64512
ROUTER_ASN = 64513


def speaker4(edge: EdgeAddresses) -> str:
    """Return the speaker's IPv4 address for the session through a switch."""
    return f"10.0.254.{edge.index + 1}"


def speaker6(edge: EdgeAddresses) -> str:
    """Return the speaker's IPv6 address for the session through a switch."""
    return f"fd00:0:0:fffe::{edge.index + 1:x}"


def speaker_setup(edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the set-up script of the speaker: each router address is behind its switch."""
    lines = []
    for edge in edges:
        lines.append(f"ip addr add {speaker4(edge)}/{RACK4} dev eth0")
        lines.append(f"ip addr add {speaker6(edge)}/{RACK6} dev eth0 nodad")
        lines.append(f"ip route add {edge.router4}/32 via {edge.rack4}")
        lines.append(f"ip -6 route add {edge.router6}/128 via {edge.rack6}")
    return lines


def routes_to_speaker(edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the lines of the router's set-up script: each address of the speaker is behind its switch."""
    lines = []
    for edge in edges:
        lines.append(f"ip route add {speaker4(edge)}/32 via {edge.uplink4}")
        lines.append(f"ip -6 route add {speaker6(edge)}/128 via {edge.uplink6}")
    return lines


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
            f" neighbor {neighbor} bfd 3 100 100",
        ]
    for version in (4, 6):
        lines += [f" address-family ipv{version} unicast", "  maximum-paths 8"]
        lines += [f"  neighbor {neighbor} activate" for neighbor, _ in sessions if (":" in neighbor) == (version == 6)]
        lines.append(" exit-address-family")
    return "\n".join([*lines, "exit", ""])


def with_bgp(text: str, edges: Sequence[EdgeAddresses], speaker: Frr, password_file: str) -> str:
    """Return a fleet's configuration with the section `bgp`, and with the speaker as a neighbor of each switch."""
    document = yaml.safe_load(text)
    for device, edge in zip(document["devices"], edges, strict=True):
        device["neighbors"] = [{"address": address, "port": "rack"} for address in (speaker4(edge), speaker6(edge))]
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
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed
