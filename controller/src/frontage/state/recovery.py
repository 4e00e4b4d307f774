# SPDX-License-Identifier: Apache-2.0
"""The Ethernet addresses of neighbors that the switch already has: a restarted controller keeps using them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from frontage.config import Config
from frontage.config.links import Resolved
from frontage.fields import IPAddress
from frontage.learned import Learned, NextHops
from frontage.p4.entries import Action, Key
from frontage.state.blocks.forwarding import host_key, installed_hops, route_key


def recover(config: Config, installed: Mapping[Key, Action]) -> dict[IPAddress, Resolved]:
    """Return the installed Ethernet addresses of the hosts that ``config`` wants to have resolved, by address.

    Those of hosts come from their own routes, those of next hops from the routes that use them.
    """
    wanted = config.wanted
    if not wanted:
        return {}
    hops, names = installed_hops(installed), {port.id: port.name for port in config.ports}
    found: dict[IPAddress, Resolved] = {}

    def add(address: IPAddress | None, key: Key) -> None:
        if address in wanted and address not in found and (hop := hops.get(key)) is not None:
            name = names.get(hop[0])
            if any(link.port.name == name for link in wanted[address].links):
                found[address] = Resolved(str(name), hop[1])

    for address in wanted:
        add(address, host_key(address))
    for route in config.routes:
        add(route.next_hop, route_key(route))
    return found


UNKNOWN = Learned(is_complete=False)


class Known(NamedTuple):
    """The knowledge of a controller about the neighbors of its switch, and about the routes that it learned from them."""

    current: Mapping[IPAddress, Resolved | None] = {}
    """The Ethernet addresses that count. None means that the neighbor has failed. About other neighbors nothing is known, so that
    they keep the addresses that the switch has."""
    old: Mapping[IPAddress, Resolved | None] = {}
    """The Ethernet addresses known before the controller lost the switch. They count where the switch has none."""
    learned: Learned = UNKNOWN
    groups: Mapping[NextHops, int] = {}
    """The numbers of groups of next hops."""


def merge(config: Config, known: Known, installed: Mapping[Key, Action]) -> tuple[Config, dict[IPAddress, Resolved]]:
    """Return ``config`` with the Ethernet addresses of its neighbors, and those of them that come from the switch."""
    recovered = {address: found for address, found in recover(config, installed).items() if address not in known.current}
    resolved = {**known.old, **recovered, **known.current}
    return config.complete({address: found for address, found in resolved.items() if found is not None}), recovered
