# SPDX-License-Identifier: Apache-2.0
"""Checks whether a P4 program has the tables that a configuration needs, and room in them.

A profile may leave out features together with their tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from frontage.config import Config
from frontage.config.vips import Policy, Protocol
from frontage.p4.p4info import Schema
from frontage.p4.replication import CLONE_SESSION
from frontage.state.allocation import Allocation
from frontage.state.blocks import (
    aifo,
    assign,
    checker,
    copies,
    demand,
    encapsulation,
    fallback,
    handshake,
    limits,
    masking,
    real_servers,
    remote_servers,
    samples,
    scheduler,
    steering,
    syn_defence,
    tunnel,
    unseal,
    vip,
)
from frontage.state.desired import TCP_TABLES
from frontage.state.errors import ReconcileError

_QUIC_TABLES = frozenset((*unseal.TABLES, vip.QUIC_DIP6, vip.COOKIE_ADDRESS, vip.COOKIE_PREFIX, masking.STATIC_COOKIE))
_TCP_TABLES = frozenset((*TCP_TABLES, vip.DIP6))
_SITE_TABLES = frozenset((*steering.TABLES, *tunnel.TABLES, *encapsulation.TABLES, *copies.TABLES))


@dataclass(frozen=True, slots=True)
class _Use:
    """A feature that a configuration uses, and the tables that only this feature needs."""

    field: str
    """The field of the configuration."""
    feature: str
    tables: Collection[str]


def check_tables(schema: Schema, config: Config, counts: Mapping[str, int]) -> None:
    """Raise ReconcileError if the program lacks a table, or room in one, for these numbers of entries by table."""
    if config.samples is not None and samples.REASON not in schema.tables:
        raise ReconcileError(_lacks("samples", "packet samples"))
    missing = {name for name in counts if name not in schema.tables and name not in schema.registers and name != CLONE_SESSION}
    for use in _uses(config):
        if not missing.isdisjoint(use.tables):
            raise ReconcileError(_lacks(use.field, use.feature))
    for name in missing:
        raise ReconcileError(
            f"device.pipeline: the configuration needs entries in {name}, a table that the P4 program does not have: "
            "use a controller and a P4 program of the same version"
        )
    for name, count in counts.items():
        table = schema.tables.get(name)
        if table is not None and count > table.size > 0 and table.fields:
            raise ReconcileError(
                f"the configuration needs {count} entries in {table.full_name}, which has room for {table.size}: "
                "remove something, or compile the P4 program with larger sizes"
            )


def _lacks(field: str, feature: str) -> str:
    """Return the message that the program lacks a feature."""
    fix = "remove the feature or setting, or use a program or profile that has it"
    return f"{field}: the P4 program does not have {feature}: {fix}"


def check_trees(schema: Schema, allocation: Allocation) -> None:
    """Raise ReconcileError if the tree of a VIP is larger than the program's trees."""
    for name, block in allocation.trees.items():
        if block.depth > schema.tree_levels:
            raise ReconcileError(
                f"the VIP {name} needs {1 << block.depth} tree slots, and the P4 program has room for {1 << schema.tree_levels} per VIP: "
                "remove servers of the VIP, or use a program or profile with larger trees"
            )


def _uses(config: Config) -> Iterator[_Use]:
    """Yield the optional features that a configuration uses."""
    for number, service in enumerate(config.vips):
        if service.protocol is Protocol.UDP:
            yield _Use(f"vips[{number}].protocol", "QUIC services", _QUIC_TABLES)
        else:
            yield _Use(f"vips[{number}].protocol", "TCP services", _TCP_TABLES)
        if service.policy is Policy.CHEETAH_RR:
            yield _Use(f"vips[{number}].policy", "the policy cheetah-rr", assign.TABLES)
        if service.limits is not None:
            yield _Use(f"vips[{number}].limits", "limits", limits.TABLES)
        if service.syn_defence is not None:
            yield _Use(f"vips[{number}].syn_defence", "the defence against SYN floods", syn_defence.TABLES)
    for number, port in enumerate(config.ports):
        if port.scheduler is not None:
            # A rank is in a cookie, which unseal.p4 opens.
            yield _Use(f"ports[{number}].scheduler", "schedulers", {*scheduler.TABLES, *aifo.TABLES, *unseal.TABLES})
        if port.ecn_threshold is not None:
            yield _Use(f"ports[{number}].ecn_threshold", "ECN marking", scheduler.TABLES)
    if config.health is not None:
        yield _Use("health", "health checks", checker.TABLES)
    if config.real_servers:
        yield _Use("real_servers", "real servers", real_servers.TABLES)
    if config.placement is not None:
        yield _Use("placement", "counters of demand", demand.TABLES)
    for number, server in enumerate(config.servers):
        if server.remote is not None:
            yield _Use(f"servers[{number}].encapsulation", "remote servers", remote_servers.TABLES)
    if config.site is not None:
        yield _Use("site", "steering between sites", _SITE_TABLES)
    yield _Use("fallback.idle_timeout", "a configurable timeout of connections", fallback.TABLES)
    yield _Use("handshake.timeout", "a configurable timeout of handshakes", handshake.TABLES)
