"""What the switch should hold: a pure function of the configuration and of the numbers in `Allocation`."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import State
from frontage.state.allocation import Allocation
from frontage.state.blocks import (
    aifo,
    assign,
    choice,
    copies,
    demand,
    encapsulation,
    fallback,
    forwarding,
    handshake,
    insight,
    maglev,
    masking,
    neighbor,
    ports,
    real_servers,
    retrieve,
    scheduler,
    server,
    steering,
    tunnel,
    unseal,
    vip,
)

STAGES: tuple[tuple[str, ...], ...] = (
    (*neighbor.TABLES, forwarding.NEXT_HOP, *real_servers.DESTINATIONS),
    (forwarding.IPV4_LPM, forwarding.IPV6_LPM),
    (
        *insight.TABLES,
        *retrieve.TABLES,
        *unseal.TABLES,
        *masking.ROUNDS,
        masking.STATIC_COOKIE,
        *fallback.TABLES,
        *handshake.TABLES,
        *aifo.TABLES,
    ),
    (*server.TABLES, *encapsulation.TABLES, *copies.TABLES),
    (*choice.TABLES, *vip.DIPS, *real_servers.SENDERS),
    (*maglev.TABLES, *assign.TABLES),
    (*steering.TABLES, *demand.TABLES, vip.POLICY),
    (masking.ACTIVE_KEY, vip.VIP4, vip.VIP6, vip.COOKIE_ADDRESS, vip.ADDRESS4, vip.ADDRESS6, vip.COOKIE_PREFIX),
    (*tunnel.TABLES, *scheduler.TABLES),
    ports.TABLES,
)
"""The order of writing: what an entry leads to is there before it, so that no packet meets half of a change. Deleting goes
the other way round. Ports come last: into an empty switch nothing enters before all is there, or a server's packets would
reach clients unmasked, who answer with RST."""

TREE_STAGE = 6
"""Before this stage, the leaves of the tournament trees are seeded: a policy may lead to them."""

TABLES = tuple(table for stage in STAGES for table in stage)

BLOCKS = (
    ports,
    neighbor,
    forwarding,
    scheduler,
    aifo,
    vip,
    real_servers,
    unseal,
    retrieve,
    insight,
    handshake,
    maglev,
    fallback,
    assign,
    choice,
    server,
    tunnel,
    encapsulation,
    copies,
    demand,
    steering,
    masking,
)
"""The controller's side of each control of the P4 program that has tables."""


def desired(config: Config, allocation: Allocation) -> State:
    """Every entry that ``config`` asks for."""
    state: State = {}
    for block in BLOCKS:
        state.update(block.entries(config, allocation))
    return state
