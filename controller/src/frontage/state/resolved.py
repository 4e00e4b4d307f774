# SPDX-License-Identifier: Apache-2.0
"""VIPs and servers together with the numbers that the switch knows them by."""

from __future__ import annotations

from dataclasses import dataclass

from frontage.config import Config
from frontage.config.vips import Server, Vip
from frontage.state.allocation import Allocation
from frontage.state.owners import Others, pools_by_vip, table_rooms
from frontage.state.scores import server_scores
from frontage.state.tree_slots import Block


@dataclass(frozen=True, slots=True)
class ResolvedServer:
    """A server with its numbers."""

    config: Server
    slot: int
    """Leaf of the VIP's tournament tree."""
    score_class: int


@dataclass(frozen=True, slots=True)
class ResolvedVip:
    """A VIP with its numbers and its servers."""

    config: Vip
    id: int
    tree: Block
    servers: tuple[ResolvedServer, ...]
    hashed: tuple[Server, ...]
    """The servers of Maglev's table."""
    room: int
    """The minimum number of servers for which that table has room."""
    others: Others
    """The other servers of its slots."""


def resolve(config: Config, allocation: Allocation) -> tuple[ResolvedVip, ...]:
    """Return the VIPs of ``config`` with the numbers of ``allocation``, in the order of the file."""
    scores = server_scores(config.vips, config.servers)
    servers_by_vip = config.servers_by_vip
    pools = pools_by_vip(config)
    room = table_rooms(config, pools)
    return tuple(
        ResolvedVip(
            vip,
            allocation.vip_ids[vip.name],
            allocation.trees[vip.name],
            tuple(
                ResolvedServer(server, allocation.slots[server.sid], allocation.classes[scores[server.sid]])
                for server in servers_by_vip[vip.name]
            ),
            pools[vip.name][0],
            room[vip.name],
            allocation.others.get(vip.name, {}),
        )
        for vip in config.vips
    )


def replicas(vips: tuple[ResolvedVip, ...]) -> list[Server]:
    """Return the servers that datagrams reach through tunnels."""
    return [server.config for vip in vips if vip.config.has_replicas for server in vip.servers]
