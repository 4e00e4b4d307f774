# SPDX-License-Identifier: Apache-2.0
"""Changes of the servers' states and shares, and of who answers SYNs: the entries and leaves that they change, without the rest of
the desired state.

Health checks and the defence against SYN floods need them within a second. At 4,096 servers, reading the switch and computing its
whole state takes several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontage.config import Config
from frontage.config.hash_tables import slots
from frontage.config.syn_defence import SynMode
from frontage.config.vips import Server, Vip
from frontage.p4.entries import Action, Difference, Key, State, difference
from frontage.state.allocation import Allocation, Installed
from frontage.state.blocks import assign, choice, maglev, second_hop, syn_defence, vip
from frontage.state.owners import Others, Owners, other_owners, pools_by_vip, slot_sids, table_rooms
from frontage.state.resolved import ResolvedVip, resolve
from frontage.state.tree import LeafOps, leaf_ops


@dataclass(frozen=True, slots=True)
class Activation:
    """The changes of the switch that an activation needs."""

    entries: Difference
    leaves: LeafOps
    allocation: Allocation
    """The allocation after the changes, which differs in the other owners of slots."""


def is_activation(old: Config, new: Config) -> bool:
    """Return whether ``new`` was copied from ``old`` and differs from it only in states and shares of servers and modes of defences.

    A defence that is off makes other entries, so no mode may become or have been off.

    The sections are the same objects, except for `device`: `Config.switches` makes a new one for each switch of a fleet.
    """
    names = set(type(old).model_fields) - {"servers", "pools", "device", "vips"}
    if any(getattr(old, name) is not getattr(new, name) for name in names) or old.device != new.device:
        return False
    if len(old.servers) != len(new.servers) or len(old.vips) != len(new.vips):
        return False
    pairs = zip(old.servers, new.servers, strict=True)
    return all(a is b or all(getattr(a, name) == getattr(b, name) for name in _LASTING) for a, b in pairs) and all(
        a is b or _differs_in_mode(a, b) for a, b in zip(old.vips, new.vips, strict=True)
    )


def _differs_in_mode(old: Vip, new: Vip) -> bool:
    """Return whether two VIPs differ at most in the times at which the switch answers SYNs."""
    before, after = old.syn_defence, new.syn_defence
    if before is None or after is None or SynMode.OFF in (before.mode, after.mode):
        return False
    return new == old.model_copy(update={"syn_defence": before.model_copy(update={"mode": after.mode})})


_LASTING = frozenset(Server.model_fields) - {"state"}
"""The fields of a server that no activation changes."""


def activation(old: Config, new: Config, allocation: Allocation) -> Activation:
    """Return the difference between the states of two configurations for which `is_activation` is true."""
    changed = {b.sid for a, b in zip(old.servers, new.servers, strict=True) if a.active != b.active or a.share != b.share}
    affected = {server.vip for server in new.servers if server.sid in changed}
    olds, news = pools_by_vip(old), pools_by_vip(new)
    affected |= {name for name, pools in news.items() if pools != olds[name]}
    modes = difference(_answers(new, allocation), _answers(old, allocation))
    if not affected:
        return Activation(modes, LeafOps([], []), allocation)
    room = table_rooms(old, olds)
    before_change = {name: _owners(olds[name][0], room[name], allocation.others.get(name, {})) for name in affected}
    later = replace(allocation, others={**allocation.others, **other_owners(new, before_change, affected)})
    missing: State = {}
    different: State = {}
    unexpected: State = {}
    befores = [one for one in resolve(old, allocation) if one.config.name in affected]
    afters = [one for one in resolve(new, later) if one.config.name in affected]
    installed: State = {}
    for before, after in zip(befores, afters, strict=True):
        parts = [_entries(one, changed) for one in (before, after)]
        parts_difference = difference(parts[1], parts[0])
        different |= parts_difference.different
        installed |= {**choice.entries([before]), **dict([vip.policy_entry(before, 0)])}
        pools = [assign.pool([server.config for server in one.servers]) for one in (before, after)]
        tables = [slot_sids(one.hashed, one.room) for one in (before, after)]
        for part in (
            _list_difference(assign.POOL, after.id, *pools),
            _list_difference(maglev.MAGLEV, after.id, *tables),
            difference(second_hop.entries([after]), second_hop.entries([before])),
        ):
            missing |= part.missing
            different |= part.different
            unexpected |= part.unexpected
    leaves = leaf_ops(afters, Installed(installed), resync=False)
    return Activation(Difference(missing, different | modes.different, unexpected), leaves, later)


def _answers(config: Config, allocation: Allocation) -> State:
    """Return the entries of defended VIPs."""
    vips = ((allocation.vip_ids[vip.name], vip) for vip in config.vips)
    return syn_defence.answers(vips, is_only_switch=not config.has_other_switches)


def _owners(servers: Sequence[Server], room: int, others: Others) -> Owners:
    return Owners(slot_sids(servers, room), others, slots(len(servers), room))


def _entries(one: ResolvedVip, sids: set[int]) -> State:
    """Return the VIP's policy, and the entries of these servers that depend on their state."""
    servers = tuple(server for server in one.servers if server.config.sid in sids)
    policy, action = vip.policy_entry(one, len(assign.pool([server.config for server in one.servers])))
    return {
        policy: action,
        **choice.entries([replace(one, servers=servers)]),
        **dict(vip.server_entry(one, server) for server in servers),
    }


def _list_difference(table: str, vip_id: int, old: Sequence[int], new: Sequence[int]) -> Difference:
    """Return the difference between two lists of SIDs, which are entries by (VIP id, position)."""

    def entries(positions: range, sids: Sequence[int]) -> State:
        return {Key(table, (vip_id, i)): Action("select_server", (sids[i],)) for i in positions}

    both = min(len(old), len(new))
    different = {Key(table, (vip_id, i)): Action("select_server", (new[i],)) for i in range(both) if old[i] != new[i]}
    return Difference(entries(range(both, len(new)), new), different, entries(range(both, len(old)), old))
