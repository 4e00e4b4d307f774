"""The numbers that the switch needs and nobody chooses: VIP ids, tree blocks and slots, score classes, next-hop ids.

They are recovered from what is installed, so that a restarted controller finds its own numbers again and writes nothing;
what is new gets numbers that are in use by nothing, old or new, wherever the program has room for that.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, TypeVar

from frontage import limits
from frontage.config import Config, Neighbor, Route, Server, Vip
from frontage.cookie import IP6_SIGNAL
from frontage.fields import Mac
from frontage.state import Action, Key, exact

FLOW_UNIT = 16
"""What one flow weighs in a score at the VIP's lowest weight: room for fractions below, for 4,095 flows above."""

MAX_SCORE = 0xFFFE


class AllocationError(Exception):
    """The configuration needs more of something than the P4 program has."""


class Block(NamedTuple):
    """An aligned block of ``2 ** depth`` leaf slots: one VIP's tournament tree."""

    base: int
    depth: int

    @property
    def slots(self) -> range:
        return range(self.base, self.base + (1 << self.depth))

    def holds(self, slot: int) -> bool:
        return slot >> self.depth == self.base >> self.depth

    def overlaps(self, other: Block) -> bool:
        return self.holds(other.base) or other.holds(self.base)

    @property
    def parent(self) -> Block:
        depth = self.depth + 1
        return Block(self.base >> depth << depth, depth)


class Scores(NamedTuple):
    """One score class: the score of every code of N_AF and of N_FF."""

    af: tuple[int, ...]
    ff: tuple[int, ...]


class Hop(NamedTuple):
    port: int
    src: Mac
    dst: Mac


@dataclass(slots=True)
class Allocation:
    vip_ids: dict[str, int] = field(default_factory=dict)
    """By VIP name."""
    trees: dict[str, Block] = field(default_factory=dict)
    """By VIP name."""
    slots: dict[int, int] = field(default_factory=dict)
    """By SID."""
    classes: dict[Scores, int] = field(default_factory=dict)
    next_hops: dict[Hop, int] = field(default_factory=dict)


def scores(alpha: float, share: Fraction) -> Scores:
    """The products of equation 1, for a server whose weight is ``1 / share`` times the VIP's lowest."""
    af, ff = Fraction(alpha), 1 - Fraction(alpha)

    def row(factor: Fraction) -> tuple[int, ...]:
        unit = factor * share * FLOW_UNIT
        return tuple(min(int(unit * IP6_SIGNAL.decode(code) + Fraction(1, 2)), MAX_SCORE) for code in range(limits.SCORE_CODES))

    return Scores(row(af), row(ff))


def server_scores(config: Config) -> dict[int, Scores]:
    """The scores that each server (by SID) is judged with."""
    lightest: dict[str, int] = {}
    for server in config.servers:
        lightest[server.vip] = min(server.weight, lightest.get(server.vip, server.weight))
    alphas = {vip.name: vip.effective_alpha for vip in config.vips}
    known: dict[tuple[float, Fraction], Scores] = {}
    result: dict[int, Scores] = {}
    for server in config.servers:
        pair = alphas[server.vip], Fraction(lightest[server.vip], server.weight)
        if pair not in known:
            known[pair] = scores(*pair)
        result[server.sid] = known[pair]
    return result


def hops(config: Config) -> dict[tuple[str, Mac], Hop]:
    """Every next hop by (port name, its Ethernet address)."""
    ports = {port.name: port for port in config.ports}
    result: dict[tuple[str, Mac], Hop] = {}
    ways: list[Route | Neighbor] = [*config.routes, *config.hosts]
    for way in ways:
        port = ports[way.port]
        result[way.port, way.mac] = Hop(port.id, port.mac, way.mac)
    return result


_TABLES = frozenset(
    {"choice.member", "vip.vip4", "vip.vip6", "vip.policy", "forwarding.next_hop", "insight.score_af", "insight.score_ff"}
)


class Installed:
    """What the installed entries say about the numbers in use."""

    def __init__(self, state: Mapping[Key, Action]):
        self.vips: dict[tuple[int, int, int, int], int] = {}
        """By IP version, address, protocol and port."""
        self.trees: dict[int, Block] = {}
        self.slots: dict[tuple[int, int], int] = {}
        """By (VIP id, SID)."""
        self.active: set[tuple[int, int]] = set()
        self.next_hops: dict[Hop, int] = {}
        af: dict[int, dict[int, int]] = {}
        ff: dict[int, dict[int, int]] = {}
        for (table, match), action in state.items():
            if table not in _TABLES:
                continue
            params, key = action.params, exact(match)
            if table == "choice.member" and action.name == "is_member":
                self.slots[key[0], key[1]] = params[0]
                if params[1]:
                    self.active.add((key[0], key[1]))
            elif table in ("vip.vip4", "vip.vip6") and action.name == "set_vip":
                self.vips[4 if table == "vip.vip4" else 6, key[0], key[1], key[2]] = params[0]
            elif table == "vip.policy" and action.name == "set_policy":
                self.trees[key[0]] = Block(params[2], params[3])
            elif table == "forwarding.next_hop" and action.name == "forward":
                self.next_hops[Hop(params[0], Mac(params[1]), Mac(params[2]))] = key[0]
            elif table == "insight.score_af":
                af.setdefault(key[0], {})[key[1]] = params[0]
            elif table == "insight.score_ff":
                ff.setdefault(key[0], {})[key[1]] = params[0]
        self.classes = {
            Scores(_row(af.get(number, {})), _row(ff.get(number, {}))): number for number in sorted({*af, *ff}, reverse=True)
        }


def allocate(config: Config, old: Installed) -> Allocation:
    """Numbers for ``config``, as many as possible of them those in use. Raises AllocationError."""
    result = Allocation()
    _allocate_vips(config, old, result)
    _allocate_trees(config, old, result)
    wanted = list(dict.fromkeys(server_scores(config).values()))
    result.classes = _number(wanted, old.classes, limits.MAX_CLASSES, "score classes")
    result.next_hops = _number(list(dict.fromkeys(hops(config).values())), old.next_hops, limits.MAX_NEXT_HOPS, "next hops")
    return result


def _row(by_code: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(by_code.get(code, -1) for code in range(limits.SCORE_CODES))


T = TypeVar("T", bound=Hashable)


def _number(wanted: Iterable[T], old: Mapping[T, int], limit: int, noun: str) -> dict[T, int]:
    """Keep old numbers; give new things numbers that nothing has, or else those of things no longer wanted."""
    wanted = list(wanted)
    result = {thing: old[thing] for thing in wanted if thing in old}
    kept = set(result.values())
    fresh = _free_first(limit, kept, set(old.values()))
    for thing in wanted:
        if thing not in result:
            number = next(fresh, None)
            if number is None:
                raise AllocationError(f"more than {limit} {noun} needed, the P4 program has room for {limit}")
            result[thing] = number
    return result


def _free_first(limit: int, kept: Container[int], old: Container[int]) -> Iterator[int]:
    yield from (number for number in range(limit) if number not in kept and number not in old)
    yield from (number for number in range(limit) if number not in kept and number in old)


def _vip_key(vip: Vip) -> tuple[int, int, int, int]:
    return vip.address.version, int(vip.address), vip.protocol.number, vip.port


def _allocate_vips(config: Config, old: Installed, result: Allocation) -> None:
    by_key = _number([_vip_key(vip) for vip in config.vips], old.vips, limits.MAX_VIPS, "VIPs")
    result.vip_ids = {vip.name: by_key[_vip_key(vip)] for vip in config.vips}


def _depth(servers: int) -> int:
    return (max(servers, 1) - 1).bit_length()


def _allocate_trees(config: Config, old: Installed, result: Allocation) -> None:
    members: dict[str, list[Server]] = {vip.name: [] for vip in config.vips}
    for server in config.servers:
        members[server.vip].append(server)
    depths = {name: _depth(len(servers)) for name, servers in members.items()}
    for name, depth in depths.items():
        if depth > limits.MAX_TREE_DEPTH:
            raise AllocationError(f"VIP {name} has {len(members[name])} servers, a VIP can have {1 << limits.MAX_TREE_DEPTH}")

    result.trees = _place(depths, old, result.vip_ids)
    for name, servers in members.items():
        _allocate_slots(result.trees[name], result.vip_ids[name], servers, old, result.slots)


def _place(depths: Mapping[str, int], old: Installed, vip_ids: Mapping[str, int]) -> dict[str, Block]:
    """A block for every VIP: the installed one while it is large enough, else one that contains it, else a free one."""
    kept: dict[str, Block] = {}
    installed = {name: old.trees[vip_ids[name]] for name in depths if vip_ids[name] in old.trees}
    for name, block in installed.items():
        if block.depth >= depths[name] and not any(block.overlaps(other) for other in kept.values()):
            kept[name] = block
    # Largest first: then blocks of powers of two fit without gaps.
    largest_first = sorted(depths, key=lambda name: (-depths[name], vip_ids[name]))
    rest = [name for name in largest_first if name not in kept]
    # If possible, blocks that VIPs leave are avoided (servers report into them until their entries are gone), and the block
    # beside a new one is left free, for it to grow into.
    left = set(old.trees.values())
    for avoided, spare in ((left, 1), (left, 0), (set[Block](), 0)):
        placed = dict(kept)
        free = _FreeSlots([*kept.values(), *avoided])
        for name in rest:
            found = None
            if name in installed:
                others = {*placed.values(), *(avoided - {installed[name]})}
                found = _grow(installed[name], depths[name], others)
            if found is None:
                taken = free.take(depths[name] + spare)
                if taken is None:
                    break
                free.mark(taken)
                found = Block(taken.base, depths[name])
            free.mark(found)
            placed[name] = found
        else:
            return placed
    # Fragmented: lay all blocks out anew.
    free = _FreeSlots([])
    placed = {}
    for name in largest_first:
        found = free.take(depths[name])
        if found is None:
            raise AllocationError(
                f"the VIPs need more than {limits.TREE_SLOTS} tree slots (each takes the next power of two of its servers); "
                "remove VIPs that have no servers, or some servers"
            )
        free.mark(found)
        placed[name] = found
    return placed


def _grow(block: Block, depth: int, others: Iterable[Block]) -> Block | None:
    """The block of this depth that contains ``block``, so that slots keep their numbers; None if it is not free."""
    while block.depth < depth:
        block = block.parent
    return None if any(block.overlaps(other) for other in others) else block


class _FreeSlots:
    """First-fit search of aligned blocks. Depths must be asked for in descending order."""

    def __init__(self, taken: Iterable[Block]):
        self._used = bytearray(limits.TREE_SLOTS)
        self._cursor: dict[int, int] = {}
        for block in taken:
            self.mark(block)

    def mark(self, block: Block) -> None:
        self._used[block.slots.start : block.slots.stop] = b"\1" * len(block.slots)

    def take(self, depth: int) -> Block | None:
        size = 1 << depth
        for base in range(self._cursor.get(depth, 0), limits.TREE_SLOTS, size):
            if not any(self._used[base : base + size]):
                self._cursor[depth] = base
                return Block(base, depth)
        return None


def _allocate_slots(block: Block, vip_id: int, servers: list[Server], old: Installed, slots: dict[int, int]) -> None:
    used: set[int] = set()
    new: list[int] = []
    for server in servers:
        slot = old.slots.get((vip_id, server.sid))
        if slot is None or not block.holds(slot) or slot in used:
            new.append(server.sid)
        else:
            slots[server.sid] = slot
            used.add(slot)
    occupied = {slot for (vip, _), slot in old.slots.items() if vip == vip_id} if new else set()
    free = [slot for slot in block.slots if slot not in used]
    # A slot that a removed server leaves is taken last: it reports there until its entries are gone.
    free.sort(key=lambda slot: slot in occupied)
    slots.update(zip(sorted(new), free, strict=False))
