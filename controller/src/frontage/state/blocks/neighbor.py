"""``neighbor.p4``: the addresses that are the switch's own, for ARP, neighbor discovery and pings: gateways, VIPs, tunnel ends."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.network import Role
from frontage.fields import IPAddress, Mac
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

ARP = "neighbor.arp"
NDP = "neighbor.ndp"
ECHO4 = "neighbor.echo4"
ECHO6 = "neighbor.echo6"
TABLES = (ARP, NDP, ECHO4, ECHO6)


def entries(config: Config, allocation: Allocation) -> State:
    own: dict[IPAddress, Mac] = {vip.address: _mac_of(config, vip.address) for vip in config.vips}
    if config.site is not None:
        own.update((address, _mac_of(config, address)) for address in config.site.vtep)
    for port in config.ports:
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


def _mac_of(config: Config, vip: IPAddress) -> Mac:
    """Who asks for a VIP (or a tunnel's end) is on a link that contains it; where none does, nobody asks, and any client port's
    will do."""
    for port in config.ports:
        if any(vip in gateway.network for gateway in port.gateways):
            return port.mac
    return next((port.mac for port in config.ports if port.role is Role.CLIENT), config.ports[0].mac)
