# SPDX-License-Identifier: Apache-2.0
"""Reconciliation: reads the state of the switch and writes the difference to the desired state.

The order is make-before-break (`desired.STAGES`): an entry is written before the entries that lead to it, and deleted after
them. So a change moves no established connection, and an interrupted reconciliation can be repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from finsy.proto import p4r

from frontage.config import Config
from frontage.config.links import Resolved
from frontage.fields import IPAddress
from frontage.learned import NextHops
from frontage.limits import SAMPLE_SESSION, WORKER_SESSION
from frontage.p4.entries import Action, Difference, Key, State, difference, exact
from frontage.p4.p4info import Schema
from frontage.p4.replication import CLONE_SESSION
from frontage.p4.session import Session
from frontage.state import worker
from frontage.state.activation import activation
from frontage.state.allocation import Allocation, Installed, allocate, allocate_next_hops, host_ids
from frontage.state.blocks import gate, groups, masking, samples, steering
from frontage.state.desired import NETWORK, STAGES, TABLES, TREE_STAGE, desired, network, supported
from frontage.state.errors import ReconcileError
from frontage.state.fit import check_tables, check_trees
from frontage.state.numbered_groups import number_groups
from frontage.state.recovery import Known, merge
from frontage.state.resolved import resolve
from frontage.state.steering import EndUserMapping, MappingEntries, MappingError
from frontage.state.tree import LeafOps, leaf_ops, packets
from frontage.state.tree_slots import AllocationError


@dataclass(frozen=True, slots=True)
class Plan:
    """The installed state of the switch compared with the state that a configuration requires."""

    installed: State
    numbers: Installed
    allocation: Allocation
    wanted: State
    difference: Difference
    mapped: MappingEntries | None
    """The mapping's part of the desired state, for later changes. None if the mapping is unknown."""
    config: Config
    """The configuration with the Ethernet addresses of its neighbors."""
    recovered: Mapping[IPAddress, Resolved]
    """The neighbors whose Ethernet addresses come from the installed state."""


@dataclass(frozen=True, slots=True)
class Written:
    """The configuration that a reconciliation installed, with its numbers."""

    config: Config
    allocation: Allocation
    counts: Counter[str]
    """Entries by table."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a reconciliation."""

    entries: int
    inserted: int
    modified: int
    deleted: int
    leaf_ops: int
    seconds: float
    mapped: MappingEntries
    """The mapping's part of the installed state, for later changes."""
    state: State | None = None
    """The installed state; None if it was not computed."""
    recovered: Mapping[IPAddress, Resolved] = field(default_factory=dict)
    """The neighbors whose Ethernet addresses come from the state that was installed before."""
    written: Written | None = None
    """The rest of it, for later changes of servers' states. None if it did not change."""

    @property
    def writes(self) -> int:
        return self.inserted + self.modified + self.deleted


async def plan(
    session: Session,
    schema: Schema,
    config: Config,
    mapping: EndUserMapping | None = None,
    neighbors: Known | None = None,
) -> Plan:
    """Read the installed state and compute the difference, without writing.

    Without ``mapping``, the mapping's tables are ignored. Ethernet addresses that are not in ``neighbors`` come from the installed
    state. Raises ReconcileError.
    """
    unknown = () if mapping is not None else steering.MAPPED
    installed = await session.read_tables(schema, schema.present(name for name in TABLES if name not in unknown))
    installed |= await session.read_registers(schema, [schema.registers[name] for name in TABLES if name in schema.registers])
    sessions = await session.read_clone_sessions()
    if mapping is None:
        sessions = {key: action for key, action in sessions.items() if exact(key.match)[0] in (WORKER_SESSION, SAMPLE_SESSION)}
    known = neighbors or Known()
    config, recovered = merge(config, known, installed)
    # Other tasks continue while this computes: several seconds at the largest size.
    numbers = await asyncio.to_thread(Installed, installed)
    try:
        allocation = allocate(config, numbers)
    except AllocationError as error:
        raise ReconcileError(str(error)) from None
    check_trees(schema, allocation)
    allocation.groups = _groups(schema, config, allocation, known, installed)
    wanted = await asyncio.to_thread(desired, config, allocation, known.learned, installed)
    wanted |= worker.session(schema, config)
    wanted |= samples.session(config)
    mapped = None
    if mapping is not None:
        try:
            mapped = MappingEntries(config, mapping, sessions)
        except MappingError as error:
            raise ReconcileError(str(error)) from None
        wanted |= mapped.state
    wanted |= gate.entries(schema, config.ports, wanted)
    wanted = supported(wanted, schema, config)
    check_tables(schema, config, Counter(key.table for key in wanted))
    _check_key(config.cookie_keys[-1].id, installed)
    installed |= sessions
    changes = await asyncio.to_thread(difference, wanted, installed)
    return Plan(installed, numbers, allocation, wanted, changes, mapped, config, recovered)


async def install(
    session: Session, schema: Schema, config: Config, mapping: EndUserMapping, todo: Plan, started: float, *, resync: bool
) -> Outcome:
    """Write the difference of a plan, which began at the monotonic time ``started``.

    ``resync`` also sends the state of the tournament trees, which cannot be read back. It is needed on every new connection.
    Raises ReconcileError and SwitchError.
    """
    ops = leaf_ops(resolve(todo.config, todo.allocation), todo.numbers, resync=resync)
    changes = todo.difference
    writes = _Writes(session, schema, changes, Counter(key.table for key in todo.installed))

    # Entries may lead to sessions, and sessions lead to no entry.
    await writes.put(CLONE_SESSION)
    await _write_stages(session, schema, writes, ops)
    await writes.remove(CLONE_SESSION)
    await session.packet_out(packets(schema, ops.after))

    return Outcome(
        entries=len(todo.wanted),
        inserted=writes.inserted,
        modified=writes.modified,
        deleted=writes.deleted,
        leaf_ops=len(ops.before) + len(ops.after),
        seconds=time.monotonic() - started,
        mapped=todo.mapped or MappingEntries(config, mapping),
        state=todo.wanted,
        recovered=todo.recovered,
        written=Written(config, todo.allocation, Counter(key.table for key in todo.wanted)),
    )


async def activate(
    session: Session, schema: Schema, written: Written, config: Config, mapped: MappingEntries, installed: State | None
) -> Outcome:
    """Write the difference that changes of servers' states make, without reading.

    ``config`` must be an activation of ``written.config`` (`frontage.state.activation`). ``installed`` is the state before the
    change, if it is known. Raises SwitchError and ReconcileError.
    """
    started = time.monotonic()
    todo = await asyncio.to_thread(activation, written.config, config, written.allocation)
    found = todo.entries
    changes = Difference(*(supported(part, schema, config) for part in (found.missing, found.different, found.unexpected)))
    counts = written.counts + Counter(key.table for key in changes.missing)
    counts -= Counter(key.table for key in changes.unexpected)
    check_tables(schema, config, counts)
    writes = _Writes(session, schema, changes, written.counts)
    await _write_stages(session, schema, writes, todo.leaves)
    await session.packet_out(packets(schema, todo.leaves.after))
    return Outcome(
        entries=counts.total(),
        inserted=writes.inserted,
        modified=writes.modified,
        deleted=writes.deleted,
        leaf_ops=len(todo.leaves.before) + len(todo.leaves.after),
        seconds=time.monotonic() - started,
        mapped=mapped,
        state=None if installed is None else changes.applied_to(installed),
        written=Written(config, todo.allocation, counts),
    )


async def _write_stages(session: Session, schema: Schema, writes: _Writes, ops: LeafOps) -> None:
    """Write a difference in make-before-break order, with the operations on leaves that go before policies."""
    for stage, tables in enumerate(STAGES):
        if stage == TREE_STAGE:
            await session.packet_out(packets(schema, ops.before))
        for table in tables:
            await writes.put(table)
    for tables in reversed(STAGES):
        for table in reversed(tables):
            await writes.remove(table)


async def push(
    session: Session, schema: Schema, config: Config, mapped: MappingEntries, changes: Difference, entries: int
) -> Outcome:
    """Write the difference that a change of the mapping makes, without reading.

    ``entries`` is the number of entries before the change. Raises SwitchError and ReconcileError.
    """
    started = time.monotonic()
    check_tables(schema, config, mapped.counts)
    gone, new = (Counter(key.table for key in part) for part in (changes.unexpected, changes.missing))
    writes = _Writes(session, schema, changes, mapped.counts - new + gone)
    order = (CLONE_SESSION, *steering.MAPPED)
    for table in order:
        await writes.put(table)
    for table in reversed(order):
        await writes.remove(table)
    held = entries + writes.inserted - writes.deleted
    return Outcome(held, writes.inserted, writes.modified, writes.deleted, 0, time.monotonic() - started, mapped)


async def push_network(
    session: Session, schema: Schema, written: Written, neighbors: Known, installed: State, mapped: MappingEntries
) -> Outcome:
    """Write the difference that a change of ``neighbors`` makes, without reading.

    ``installed`` is the state after the last change, ``written`` its configuration. Raises SwitchError and ReconcileError.
    """
    started = time.monotonic()
    config, recovered = merge(written.config, neighbors, installed)
    todo = await asyncio.to_thread(_network_changes, schema, config, written.allocation, neighbors, installed)
    counts = Counter(key.table for key in installed)
    writes = _Writes(session, schema, todo.changes, counts)
    check_tables(schema, config, Counter(key.table for key in todo.state))
    for table in NETWORK:
        await writes.put(table)
    for table in reversed(NETWORK):
        await writes.remove(table)
    return Outcome(
        entries=len(todo.state),
        inserted=writes.inserted,
        modified=writes.modified,
        deleted=writes.deleted,
        leaf_ops=0,
        seconds=time.monotonic() - started,
        mapped=mapped,
        state=todo.state,
        recovered=recovered,
        written=Written(written.config, todo.allocation, Counter(key.table for key in todo.state)),
    )


class _NetworkChanges(NamedTuple):
    """The effect of a change of neighbors or learned routes."""

    allocation: Allocation
    changes: Difference
    state: State
    """The whole state after the change."""


def _network_changes(schema: Schema, config: Config, allocation: Allocation, known: Known, installed: State) -> _NetworkChanges:
    """Compare the entries that depend on ``known``. Raises ReconcileError."""
    old = {key: action for key, action in installed.items() if key.table in NETWORK}
    try:
        allocation = replace(allocation, next_hops=allocate_next_hops(config, Installed(old)))
    except AllocationError as error:
        raise ReconcileError(str(error)) from None
    allocation.groups = _groups(schema, config, allocation, known, old)
    new = network(config, allocation, known.learned, old)
    new |= gate.routes(schema, installed, new)
    state = {key: action for key, action in installed.items() if key.table not in NETWORK} | new
    return _NetworkChanges(allocation, difference(new, old), state)


def _groups(schema: Schema, config: Config, allocation: Allocation, known: Known, installed: State) -> dict[NextHops, int]:
    """Return the numbers of groups: an empty result if the program lacks groups, so that every route uses one next hop."""
    if groups.MEMBERS not in schema.tables:
        return {}
    return number_groups(known.learned, host_ids(config, allocation.next_hops), known.groups, installed)


class _Writes:
    """Writes a difference to the switch, table by table."""

    def __init__(self, session: Session, schema: Schema, changes: Difference, held: Mapping[str, int]):
        """``held`` is the number of installed entries, by table."""
        self.inserted = self.modified = self.deleted = 0
        self._session = session
        self._schema = schema
        self._held = held
        self._missing, self._different = _by_table(changes.missing), _by_table(changes.different)
        self._unexpected = _by_table(changes.unexpected)

    async def put(self, table: str) -> None:
        new = self._missing.get(table, {})
        held = self._schema.tables.get(table)
        if new and held is not None and self._held[table] + len(new) > held.size > 0:
            # No room for both: delete the old entries first.
            await self.remove(table)
        # A table always has a default action: it can neither be inserted nor deleted.
        changed = {**self._different.get(table, {}), **{key: action for key, action in new.items() if not key.match}}
        added = {key: action for key, action in new.items() if key.match}
        self.inserted += await self._session.write(self._schema, p4r.Update.INSERT, added.items())
        self.modified += await self._session.write(self._schema, p4r.Update.MODIFY, changed.items())

    async def remove(self, table: str) -> None:
        gone = self._unexpected.pop(table, {})
        self.deleted += await self._session.write(self._schema, p4r.Update.DELETE, ((key, None) for key in gone if key.match))


def _by_table(state: Mapping[Key, Action]) -> dict[str, State]:
    result: dict[str, State] = {}
    for key, action in state.items():
        result.setdefault(key.table, {})[key] = action
    return result


def _check_key(newest: int, installed: State) -> None:
    """Reject a key older than the active one, which would turn back the clock of TCP clients and stall their connections.

    See docs/cookie.md, PAWS.
    """
    active = installed.get(Key(masking.ACTIVE_KEY, ()))
    if active is None or active.name != "set_active_key":
        return
    if (newest - active.params[1]) & 0xFFFF >= 0x8000:
        raise ReconcileError(
            f"the newest key has id {newest}, but the switch seals with a newer key (id {active.params[1]} modulo 65536): "
            f"add a key with an id above {active.params[1]}"
        )
