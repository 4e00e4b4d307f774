# SPDX-License-Identifier: Apache-2.0
"""``neighbor.p4``: the switch's own addresses, for which it answers ARP, neighbor discovery and pings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.network import Port, Role
from frontage.fields import IPAddress, Mac
from frontage.p4.entries import Action, Key, State

ARP = "neighbor.arp"
NDP = "neighbor.ndp"
ECHO4 = "neighbor.echo4"
ECHO6 = "neighbor.echo6"
TABLES = (ARP, NDP, ECHO4, ECHO6)


def entries(ports: Sequence[Port], addresses: Iterable[IPAddress]) -> State:
    """Return the entries. ``addresses`` are the switch's addresses besides the gateways of its ports: VIPs and tunnel endpoints."""
    own: dict[IPAddress, Mac] = {address: _mac_of(ports, address) for address in addresses}
    for port in ports:
        own.update((gateway.ip, port.mac) for gateway in port.gateways)
    state: State = {}
    for address, mac in own.items():
        key = (int(address),)
        if address.version == 4:
            state[Key(ARP, key)] = Action("arp_reply", (mac,))
            state[Key(ECHO4, key)] = Action("echo_reply")
        else:
            state[Key(NDP, key)] = Action("ndp_reply", (mac,))
            state[Key(ECHO6, key)] = Action("echo_reply")
    return state


def _mac_of(ports: Sequence[Port], address: IPAddress) -> Mac:
    """Return the Ethernet address of the port on whose link ``address`` is.

    If it is on no link, no host resolves it, and the address of any client port will do.
    """
    for port in ports:
        if any(address in gateway.network for gateway in port.gateways):
            return port.mac
    return next((port.mac for port in ports if port.role is Role.CLIENT), ports[0].mac)
