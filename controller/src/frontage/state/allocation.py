# SPDX-License-Identifier: Apache-2.0
"""The numbers that the controller assigns, and the other owners of slots of Maglev's tables.

The numbers are VIP ids, tree blocks and slots, score classes, and next-hop ids. The controller recovers all of this from the
installed entries, so that it finds its own numbers again after a restart and writes nothing. New items get numbers that no old or
new item uses, as long as the P4 program has room for that.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from frontage import limits
from frontage.config import Config
from frontage.config.network import Neighbor, Route
from frontage.config.vips import Server, Vip
from frontage.fields import IPAddress, Mac
from frontage.learned import NextHops
from frontage.p4.entries import Action, Key, exact
from frontage.state.owners import Others, Owners, other_owners
from frontage.state.scores import Scores, all_scores
from frontage.state.tree_slots import AllocationError, Block, leaves, place


class Hop(NamedTuple):
    """A next hop as the switch needs it: egress port, source and destination Ethernet address."""

    port: int
    src: Mac
    dst: Mac


@dataclass(slots=True)
class Allocation:
    """The assigned numbers."""

    vip_ids: dict[str, int] = field(default_factory=dict)
    """By VIP name."""
    trees: dict[str, Block] = field(default_factory=dict)
    """By VIP name."""
    slots: dict[int, int] = field(default_factory=dict)
    """By SID."""
    classes: dict[Scores, int] = field(default_factory=dict)
    next_hops: dict[Hop, int] = field(default_factory=dict)
    others: dict[str, Others] = field(default_factory=dict)
    """By VIP name."""
    groups: dict[NextHops, int] = field(default_factory=dict)
    """The groups of next hops of learned routes (`frontage.state.numbered_groups`)."""


def hops(config: Config) -> dict[tuple[str, Mac], Hop]:
    """Return every resolved next hop, by port name and Ethernet address of the next hop."""
    ports = {port.name: port for port in config.ports}
    result: dict[tuple[str, Mac], Hop] = {}
    destinations: list[Route | Neighbor] = [*config.routes, *config.on_link_hosts]
    for destination in destinations:
        port = ports[destination.port]
        if destination.mac is not None:
            result[destination.port, destination.mac] = Hop(port.id, port.mac, destination.mac)
    return result


def host_ids(config: Config, ids: Mapping[Hop, int]) -> dict[IPAddress, int]:
    """Return the ids of the next hops that are resolved hosts on links, by address."""
    by_port_and_mac = hops(config)
    return {host.address: ids[by_port_and_mac[host.port, host.mac]] for host in config.on_link_hosts if host.mac is not None}


_TABLES = frozenset(
    {
        "choice.member",
        "vip.vip4",
        "vip.vip6",
        "vip.policy",
        "forwarding.next_hop",
        "insight.score_af",
        "insight.score_ff",
        "maglev.maglev",
        "second_hop.others",
    }
)


class Installed:
    """The numbers in use, recovered from the installed entries."""

    def __init__(self, state: Mapping[Key, Action]):
        self.vips: dict[tuple[int, int, int, int], int] = {}
        """By IP version, address, protocol and port."""
        self.trees: dict[int, Block] = {}
        self.slots: dict[tuple[int, int], int] = {}
        """By (VIP id, SID)."""
        self.active: set[tuple[int, int]] = set()
        self.next_hops: dict[Hop, int] = {}
        self.maglev_sizes: dict[int, int] = {}
        self.maglev: dict[int, dict[int, int]] = {}
        self.others: dict[int, dict[int, tuple[int, ...]]] = {}
        """By VIP id and slot."""
        af: dict[int, dict[int, int]] = {}
        ff: dict[int, dict[int, int]] = {}
        for (table, match), action in state.items():
            if table not in _TABLES:
                continue
            params, key = action.params, exact(match)
            if table == "choice.member" and action.name == "set_member":
                self.slots[key[0], key[1]] = params[0]
                if params[1]:
                    self.active.add((key[0], key[1]))
            elif table in ("vip.vip4", "vip.vip6") and action.name == "set_vip":
                self.vips[4 if table == "vip.vip4" else 6, key[0], key[1], key[2]] = params[0]
            elif table == "vip.policy" and action.name == "set_policy":
                self.trees[key[0]] = Block(params[2], params[3])
                self.maglev_sizes[key[0]] = params[5] + 1
            elif table == "maglev.maglev":
                self.maglev.setdefault(key[0], {})[key[1]] = params[0]
            elif table == "second_hop.others":
                self.others.setdefault(key[0], {})[key[1]] = params[1 : 1 + params[0]]
            elif table == "forwarding.next_hop" and action.name == "forward":
                self.next_hops[Hop(params[0], Mac(params[1]), Mac(params[2]))] = key[0]
            elif table == "insight.score_af":
                af.setdefault(key[0], {})[key[1]] = params[0]
            elif table == "insight.score_ff":
                ff.setdefault(key[0], {})[key[1]] = params[0]
        self.classes = {
            Scores(_row(af.get(number, {})), _row(ff.get(number, {}))): number for number in sorted({*af, *ff}, reverse=True)
        }

    def ids(self, vips: Iterable[Vip]) -> dict[str, int]:
        """Return the ids of the VIPs in the switch, by name."""
        return {vip.name: self.vips[key] for vip in vips if (key := vip_key(vip)) in self.vips}

    def owners(self, vip: Vip) -> Owners:
        """Return the owners of a VIP's slots."""
        number = self.vips.get(vip_key(vip), -1)
        size = self.maglev_sizes.get(number, 0)
        sids = self.maglev.get(number, {})
        # Some are missing only if an installation was interrupted.
        table = [sids[slot] for slot in range(size)] if sids.keys() >= set(range(size)) else []
        return Owners(table, self.others.get(number, {}), size)


def allocate(config: Config, old: Installed) -> Allocation:
    """Return numbers for ``config`` and keep those in use where possible. Raises AllocationError."""
    result = Allocation()
    _allocate_vips(config, old, result)
    _allocate_trees(config, old, result)
    result.classes = _number(all_scores(config.vips, config.servers), old.classes, limits.MAX_CLASSES, "score classes")
    result.next_hops = allocate_next_hops(config, old)
    names = [vip.name for vip in config.vips]
    result.others = other_owners(config, {vip.name: old.owners(vip) for vip in config.vips}, names)
    return result


def allocate_next_hops(config: Config, old: Installed) -> dict[Hop, int]:
    """Return the ids of the resolved next hops, and keep those in use where possible. Raises AllocationError."""
    return _number(list(dict.fromkeys(hops(config).values())), old.next_hops, limits.MAX_NEXT_HOPS, "next hops")


def _row(by_code: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(by_code.get(code, -1) for code in range(limits.SCORE_CODES))


T = TypeVar("T", bound=Hashable)


def _number(wanted: Iterable[T], old: Mapping[T, int], limit: int, noun: str) -> dict[T, int]:
    """Keep old numbers. New items get numbers that no item has, or else numbers of items that are no longer wanted."""
    wanted = list(wanted)
    result = {item: old[item] for item in wanted if item in old}
    kept = set(result.values())
    fresh = _free_first(limit, kept, set(old.values()))
    for item in wanted:
        if item not in result:
            number = next(fresh, None)
            if number is None:
                raise AllocationError(f"more than {limit} {noun}, but the P4 program has room for {limit}: remove some")
            result[item] = number
    return result


def _free_first(limit: int, kept: Container[int], old: Container[int]) -> Iterator[int]:
    yield from (number for number in range(limit) if number not in kept and number not in old)
    yield from (number for number in range(limit) if number not in kept and number in old)


def vip_key(vip: Vip) -> tuple[int, int, int, int]:
    """Return the key of a VIP in `Installed.vips`."""
    return vip.address.version, int(vip.address), vip.protocol.number, vip.port


def _allocate_vips(config: Config, old: Installed, result: Allocation) -> None:
    by_key = _number([vip_key(vip) for vip in config.vips], old.vips, limits.MAX_VIPS, "VIPs")
    result.vip_ids = {vip.name: by_key[vip_key(vip)] for vip in config.vips}


def _depth(servers: int) -> int:
    return (max(servers, 1) - 1).bit_length()


def _allocate_trees(config: Config, old: Installed, result: Allocation) -> None:
    members: dict[str, list[Server]] = {vip.name: [] for vip in config.vips}
    for server in config.servers:
        members[server.vip].append(server)
    depths = {name: _depth(len(servers)) for name, servers in members.items()}
    for name, depth in depths.items():
        if depth > limits.MAX_TREE_DEPTH:
            raise AllocationError(
                f"VIP {name} has {len(members[name])} servers, but a VIP can have {1 << limits.MAX_TREE_DEPTH}: remove some"
            )

    result.trees = place(depths, old.trees, result.vip_ids)
    for name, servers in members.items():
        sids = [server.sid for server in servers]
        result.slots |= leaves(result.trees[name], result.vip_ids[name], sids, old.slots)
