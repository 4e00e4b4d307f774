# SPDX-License-Identifier: Apache-2.0
"""The desired state of the switch: a pure function of the configuration and of the numbers in `Allocation`."""

from __future__ import annotations

from collections.abc import Mapping

from frontage.config import Config
from frontage.config.routing import RoutingTable
from frontage.config.schema import Fallback, Handshake
from frontage.config.vips import Policy, Protocol
from frontage.learned import NOTHING, Learned
from frontage.p4.cells import in_registers
from frontage.p4.entries import Action, Key, State
from frontage.p4.p4info import Schema
from frontage.state.allocation import Allocation, hops, host_ids
from frontage.state.blocks import (
    aifo,
    assign,
    checker,
    choice,
    copies,
    demand,
    encapsulation,
    fallback,
    forwarding,
    fragments,
    gate,
    groups,
    handshake,
    insight,
    limits,
    maglev,
    masking,
    neighbor,
    ports,
    real_servers,
    remote_servers,
    retrieve,
    samples,
    scheduler,
    second_hop,
    server,
    steering,
    syn_defence,
    tunnel,
    unseal,
    vip,
)
from frontage.state.resolved import replicas, resolve

STAGES: tuple[tuple[str, ...], ...] = (
    (*neighbor.TABLES, forwarding.NEXT_HOP, *real_servers.DESTINATIONS),
    groups.TABLES,
    (forwarding.IPV4_LPM, forwarding.IPV6_LPM),
    (
        *insight.TABLES,
        *retrieve.TABLES,
        *unseal.TABLES,
        *syn_defence.KEYS,
        *masking.ROUNDS,
        masking.STATIC_COOKIE,
        *fallback.TABLES,
        *handshake.TABLES,
        *aifo.TABLES,
        *encapsulation.TABLES,
        *copies.TABLES,
        gate.ROUTE,
        *remote_servers.TABLES,
        *tunnel.PEERS,
    ),
    server.TABLES,
    (*choice.TABLES, *vip.DIPS, *fragments.TABLES, *real_servers.SENDERS),
    second_hop.TABLES,
    (*maglev.TABLES, *assign.TABLES),
    (*steering.TABLES, *demand.TABLES, *checker.TABLES, *limits.TABLES, *samples.TABLES, syn_defence.VIP, vip.POLICY),
    (masking.ACTIVE_KEY, vip.VIP4, vip.VIP6, vip.COOKIE_ADDRESS, vip.ADDRESS4, vip.ADDRESS6, vip.COOKIE_PREFIX),
    (*tunnel.SOURCES, tunnel.ORIGIN, *tunnel.ENDPOINTS, *gate.COPIES, *scheduler.TABLES),
    ports.TABLES,
)
"""The order of writing: an entry follows those that it leads to, so that no packet meets half of a change.

Deletions go in reverse order. Ports come last, so that no packet enters an empty switch before everything is there: otherwise
packets of servers would reach clients unmasked, and the clients would reset the connections."""

TREE_STAGE = next(number for number, stage in enumerate(STAGES) if vip.POLICY in stage)
"""The leaves of the tournament trees are seeded before this stage, whose policies may lead to them."""

TABLES = tuple(table for stage in STAGES for table in stage)

BLOCKS = (
    ports,
    neighbor,
    forwarding,
    groups,
    scheduler,
    aifo,
    vip,
    fragments,
    checker,
    remote_servers,
    limits,
    samples,
    real_servers,
    unseal,
    retrieve,
    insight,
    handshake,
    maglev,
    second_hop,
    fallback,
    assign,
    choice,
    server,
    tunnel,
    gate,
    encapsulation,
    copies,
    demand,
    steering,
    syn_defence,
    masking,
)
"""The modules of all controls that have tables."""


NETWORK = (forwarding.NEXT_HOP, *groups.TABLES, forwarding.IPV4_LPM, forwarding.IPV6_LPM, *copies.TABLES, gate.ROUTE)
"""The tables of `network`, and those that depend on them, in the order of writing."""


def network(config: Config, allocation: Allocation, learned: Learned, installed: Mapping[Key, Action]) -> State:
    """Return the entries that depend on neighbors and learned routes.

    ``installed`` are the entries that stay if ``learned`` is not complete. Configured routes come before learned ones.
    """
    ids = host_ids(config, allocation.next_hops)
    state = forwarding.unconfirmed_entries(learned, installed, ids)
    state |= groups.entries(allocation.groups, learned, ids)
    state |= forwarding.learned_entries(learned, allocation.groups, ids)
    state |= forwarding.entries(config.routes, config.on_link_hosts, hops(config), allocation.next_hops)
    if config.site is not None:
        routing = RoutingTable(config.routes, config.on_link_hosts, learned)
        state |= copies.entries(config.site, config.other_sites, config.ports, routing)
    return state


def desired(
    config: Config, allocation: Allocation, learned: Learned = NOTHING, installed: Mapping[Key, Action] | None = None
) -> State:
    """Return every entry that ``config`` requires, with ``learned`` routes; see `network`."""
    vips = resolve(config, allocation)
    keys, own, others = config.cookie_keys, config.site, config.other_sites
    vteps = own.vtep if own is not None else ()
    state: State = {
        **network(config, allocation, learned, installed or {}),
        **ports.entries(config.ports, config.samples),
        **samples.entries(config.samples),
        **neighbor.entries(config.ports, (*(vip.address for vip in config.vips), *vteps)),
        **scheduler.entries(config.ports),
        **aifo.entries(config.ports),
        **vip.entries(vips, vteps),
        **fragments.entries(vips),
        **checker.entries(config.health, config.ports),
        **limits.entries(vips),
        **real_servers.entries(config.real_servers, config.servers, config.ports),
        **unseal.entries(keys if _unseals(config) else ()),
        **retrieve.entries(keys),
        **insight.entries(allocation.classes),
        **handshake.entries(config.handshake.timeout),
        **maglev.entries(vips),
        **second_hop.entries(vips),
        **fallback.entries(config.fallback.idle_timeout),
        **assign.entries(vips),
        **choice.entries(vips),
        **server.entries(config.servers),
        **demand.entries(demand.cells(config), allocation.vip_ids),
        **syn_defence.entries(keys, vips, is_only_switch=not config.has_other_switches),
        **masking.entries(keys, vips),
    }
    if own is not None:
        state |= tunnel.entries(own, others, config.dispatchers, vips)
        state |= encapsulation.entries(own, others, config.dispatchers, replicas(vips))
        state |= steering.entries(own, config.sites, vips)
        state |= encapsulation.server_entries(own, config.servers)
        state |= tunnel.server_entries(config.servers)
        state |= remote_servers.entries(config.servers)
    return state


def _unseals(config: Config) -> bool:
    """Return whether the switch opens cookies of QUIC packets: for QUIC services, and for schedulers that use ranks."""
    return any(vip.protocol is Protocol.UDP for vip in config.vips) or any(port.uses_ranks for port in config.ports)


TCP_TABLES = (*retrieve.TABLES, *masking.ROUNDS, masking.ACTIVE_KEY)
"""The tables that seal and open TCP's cookies with every key."""

DEFAULTS: State = {
    **fallback.entries(Fallback().idle_timeout),
    **handshake.entries(Handshake().timeout),
    **syn_defence.UNUSED,
}
"""Default actions that a configuration has if it does not name others."""


def supported(state: State, schema: Schema, config: Config) -> State:
    """Return the entries, except those whose table the program lacks and that ``config`` does not need.

    Programs for Tofino may lack the tables of defaults, servers' fragments and second hops, and those of TCP or of a policy. Some
    entries are cells of registers (`frontage.p4.cells`).
    """
    optional = {*fragments.TABLES, second_hop.OTHERS}
    if all(vip.protocol is not Protocol.TCP for vip in config.vips):
        optional.update(TCP_TABLES)
    if all(vip.policy is not Policy.CHEETAH_RR for vip in config.vips):
        optional.update(assign.TABLES)

    def is_optional(key: Key, action: Action) -> bool:
        return key.table in optional or DEFAULTS.get(key) == action

    held = {
        key: action
        for key, action in state.items()
        if key.table in schema.tables or key.table in schema.registers or not is_optional(key, action)
    }
    return in_registers(held, schema.registers)
