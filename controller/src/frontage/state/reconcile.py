"""Makes the switch hold what the configuration asks for: reads back, and writes only the difference.

The order is make-before-break (`desired.STAGES`): nothing leads to an entry that is not there yet, and what nothing leads to
any more goes last. So a change moves no established connection, and a reconciliation that is cut off can be repeated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from finsy.proto import p4r

from frontage.config import Config
from frontage.limits import WORKER_SESSION
from frontage.p4.entries import Action, Difference, Key, State, difference, exact
from frontage.p4.p4info import Schema
from frontage.p4.replication import CLONE_SESSION
from frontage.p4.session import Session
from frontage.state import worker
from frontage.state.allocation import Allocation, Installed, allocate
from frontage.state.blocks import masking, steering
from frontage.state.desired import STAGES, TABLES, TREE_STAGE, desired
from frontage.state.steering import EndUserMapping, MappingEntries, MappingError
from frontage.state.tree import leaf_ops, packets
from frontage.state.tree_slots import AllocationError


class ReconcileError(Exception):
    """What is wanted cannot be installed; what is installed has been left as it was."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One reading of the switch, against one configuration."""

    installed: State
    numbers: Installed
    allocation: Allocation
    wanted: State
    difference: Difference
    mapped: MappingEntries | None
    """The mapping's part of what is wanted, ready for changes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one reconciliation did."""

    entries: int
    inserted: int
    modified: int
    deleted: int
    leaf_ops: int
    seconds: float
    mapped: MappingEntries
    """The mapping's part of it, ready for changes."""

    @property
    def writes(self) -> int:
        return self.inserted + self.modified + self.deleted


async def plan(session: Session, schema: Schema, config: Config, mapping: EndUserMapping | None = None) -> Plan:
    """Read what is installed and compute what is to be done; writes nothing. Without a mapping, what the switch has of one is not
    looked at. Raises ReconcileError."""
    unknown = () if mapping is not None else steering.MAPPED
    installed = await session.read_tables(schema, [schema.table(name) for name in TABLES if name not in unknown])
    sessions = await session.read_clone_sessions()
    if mapping is None:
        sessions = {key: action for key, action in sessions.items() if exact(key.match)[0] == WORKER_SESSION}
    numbers = Installed(installed)
    try:
        allocation = allocate(config, numbers)
    except AllocationError as error:
        raise ReconcileError(str(error)) from None
    wanted = desired(config, allocation) | worker.sessions(config)
    mapped = None
    if mapping is not None:
        try:
            mapped = MappingEntries(config, mapping, sessions)
        except MappingError as error:
            raise ReconcileError(str(error)) from None
        wanted |= mapped.state
    _check_sizes(schema, Counter(key.table for key in wanted))
    _check_key(config, installed)
    installed |= sessions
    return Plan(installed, numbers, allocation, wanted, difference(wanted, installed), mapped)


async def reconcile(session: Session, schema: Schema, config: Config, mapping: EndUserMapping, *, resync: bool) -> Outcome:
    """Install ``config``. ``resync`` also tells the tournament trees all that cannot be read back: do so on every new
    connection. Raises ReconcileError, SwitchError."""
    started = time.monotonic()
    todo = await plan(session, schema, config, mapping)
    ops = leaf_ops(config, todo.allocation, todo.numbers, resync=resync)
    changes = todo.difference
    writes = _Writes(session, schema, changes, Counter(key.table for key in todo.installed))

    # Sessions lead nowhere in the tables, and entries may lead to them.
    await writes.put(CLONE_SESSION)
    for stage, tables in enumerate(STAGES):
        if stage == TREE_STAGE:
            await session.packet_out(packets(schema, ops.before))
        for table in tables:
            await writes.put(table)
    for tables in reversed(STAGES):
        for table in reversed(tables):
            await writes.remove(table)
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
    )


async def push(session: Session, schema: Schema, mapped: MappingEntries, changes: Difference, entries: int) -> Outcome:
    """Write what a change of the mapping made different, and read nothing; ``entries`` were wanted before. Raises SwitchError,
    ReconcileError."""
    started = time.monotonic()
    _check_sizes(schema, mapped.counts)
    gone, new = (Counter(key.table for key in part) for part in (changes.unexpected, changes.missing))
    writes = _Writes(session, schema, changes, mapped.counts - new + gone)
    order = (CLONE_SESSION, *steering.MAPPED)
    for table in order:
        await writes.put(table)
    for table in reversed(order):
        await writes.remove(table)
    held = entries + writes.inserted - writes.deleted
    return Outcome(held, writes.inserted, writes.modified, writes.deleted, 0, time.monotonic() - started, mapped)


class _Writes:
    """A difference on its way into the switch, table by table: what is new comes before what nothing leads to any more goes."""

    def __init__(self, session: Session, schema: Schema, changes: Difference, held: Mapping[str, int]):
        """``held``: entries that the switch has, by table."""
        self.inserted = self.modified = self.deleted = 0
        self._session = session
        self._schema = schema
        self._held = held
        self._missing, self._different = _by_table(changes.missing), _by_table(changes.different)
        self._unexpected = _by_table(changes.unexpected)

    async def put(self, table: str) -> None:
        new = self._missing.get(table, {})
        if new and table != CLONE_SESSION and self._held[table] + len(new) > self._schema.table(table).size > 0:
            # No room for both: what goes has to make room for what comes.
            await self.remove(table)
        # A table's default action is always there: it can neither be inserted nor deleted.
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


def _check_sizes(schema: Schema, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if name == CLONE_SESSION:
            continue
        table = schema.table(name)
        if count > table.size > 0 and table.fields:
            raise ReconcileError(
                f"the configuration needs {count} entries in {table.full_name}, which has room for {table.size}; "
                "remove something, or compile the P4 program with larger sizes"
            )


def _check_key(config: Config, installed: State) -> None:
    """An older key would turn the clients' clock back (docs/cookie.md, PAWS), and stall their connections."""
    active = installed.get(Key(masking.ACTIVE_KEY, ()))
    if active is None or active.name != "set_active_key":
        return
    newest = config.cookie_keys[-1].id
    if (newest - active.params[1]) & 0xFFFF >= 0x8000:
        raise ReconcileError(
            f"the newest key has id {newest}, but the switch seals with a newer one (id {active.params[1]} modulo 65536); "
            f"key ids only grow: give a key with an id above {active.params[1]}"
        )
