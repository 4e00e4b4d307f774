# SPDX-License-Identifier: Apache-2.0
"""Random table entries, action profiles, multicast groups and clone sessions for a program."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random

from finsy.proto import p4i, p4r

import wire
from bmv2_json import CompiledProgram
from packets import PORT_BITS, PORTS, Values
from wire import Field, MatchType

MOST = 24
"""Maximum number of entries per table."""
MEMBERS = 6
GROUPS = 3
GROUP_BITS = 16


class Entries:
    def __init__(
        self,
        program: CompiledProgram,
        info: p4i.P4Info,
        values: Values,
        empty: Collection[str] = (),
        fixed_defaults: Collection[str] = (),
        removed: Collection[str] = (),
    ):
        """Tables in ``empty`` get no entries, those in ``fixed_defaults`` keep the program's default action, and to those in
        ``removed`` nothing is written.
        """
        self.program = program
        self.info = info
        self.values = values
        self.empty = empty
        self.fixed_defaults = fixed_defaults
        self.removed = removed
        self.random: Random = values.random
        self.actions = {action.preamble.id: action for action in info.actions}

    def updates(self) -> Iterator[p4r.Update]:
        """Return the updates, dependencies first, and record their values in ``values``."""
        for number in range(1, GROUPS + 1):
            ports = self.random.sample(PORTS, self.random.randrange(1, 4))
            yield wire.insert(wire.multicast_group(number, [(port, instance) for instance, port in enumerate(ports, 1)]))
        for number in sorted(self.program.clone_sessions())[:16]:
            yield wire.insert(wire.clone_session(number, [self.random.choice(PORTS)]))
        members: dict[int, list[int]] = {}
        groups: dict[int, list[int]] = {}
        present = self.program.tables().difference(self.removed)
        tables = [table for table in self.info.tables if table.preamble.name in present]
        for profile in self.info.action_profiles:
            if any(table.preamble.id in profile.table_ids for table in tables):
                yield from self.profile(profile, members, groups)
        for table in tables:
            if not table.is_const_table and table.preamble.name not in self.empty:
                yield from self.table(table, members, groups)

    def profile(
        self, profile: p4i.ActionProfile, members: dict[int, list[int]], groups: dict[int, list[int]]
    ) -> Iterator[p4r.Update]:
        table = next(table for table in self.info.tables if table.preamble.id in profile.table_ids)
        choices = self.choices(table, p4i.ActionRef.DEFAULT_ONLY)
        number = profile.preamble.id
        members[number] = list(range(1, min(MEMBERS, profile.size or MEMBERS) + 1))
        for member in members[number]:
            entity = p4r.Entity()
            entity.action_profile_member.action_profile_id = number
            entity.action_profile_member.member_id = member
            entity.action_profile_member.action.CopyFrom(self.call(self.random.choice(choices)))
            yield wire.insert(entity)
        groups[number] = list(range(1, GROUPS + 1)) if profile.with_selector else []
        for group in groups[number]:
            entity = p4r.Entity()
            entity.action_profile_group.action_profile_id = number
            entity.action_profile_group.group_id = group
            # P4Runtime limits a group to the profile's max_group_size, if set, and demands max_size then.
            entity.action_profile_group.max_size = profile.max_group_size
            most = min(len(members[number]), profile.max_group_size or MEMBERS)
            for member in self.random.sample(members[number], self.random.randrange(1, most + 1)):
                entity.action_profile_group.members.add(member_id=member, weight=1)
            yield wire.insert(entity)

    def table(self, table: p4i.Table, members: dict[int, list[int]], groups: dict[int, list[int]]) -> Iterator[p4r.Update]:
        choices = self.choices(table, p4i.ActionRef.DEFAULT_ONLY)
        defaults = self.choices(table, p4i.ActionRef.TABLE_ONLY)
        profile = table.implementation_id
        is_fixed = table.const_default_action_id or table.preamble.name in self.fixed_defaults
        if defaults and not is_fixed and not profile and self.random.random() < 0.5:
            call = p4r.TableAction(action=self.call(self.random.choice(defaults)))
            entry = p4r.TableEntry(table_id=table.preamble.id, action=call, is_default_action=True)
            yield p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=entry))
        if not choices or not table.match_fields:
            return
        refs = self.program.key_fields(table.preamble.name)
        known: set[bytes] = set()
        # Priorities are unique, because the order of equal ones is undefined.
        for priority in self.random.sample(range(1, 1000), min(MOST, table.size or MOST)):
            key: dict[int, Field | None] = {}
            for info, ref in zip(table.match_fields, refs, strict=True):
                key[info.id] = self.field(info, ref)
            call = p4r.TableAction()
            if groups.get(profile) and self.random.random() < 0.7:
                call.action_profile_group_id = self.random.choice(groups[profile])
            elif profile:
                call.action_profile_member_id = self.random.choice(members[profile])
            else:
                call.action.CopyFrom(self.call(self.random.choice(choices)))
            entry = wire.entry(table, key, call, priority)
            if (match := b"".join(part.SerializeToString() for part in entry.match)) in known:
                continue
            known.add(match)
            self.learn(entry)
            yield wire.insert(p4r.Entity(table_entry=entry))

    def learn(self, entry: p4r.TableEntry) -> None:
        """Record the values of an entry in ``values``."""
        table = next(table for table in self.info.tables if table.preamble.id == entry.table_id)
        refs = dict(zip((info.id for info in table.match_fields), self.program.key_fields(table.preamble.name), strict=True))
        widths = {info.id: info.bitwidth for info in table.match_fields}
        for match in entry.match:
            # Exact, LPM, ternary, range, optional: the first part of each, and the end of a range.
            kind = getattr(match, match.WhichOneof("field_match_type") or "")
            for value in (kind.low, kind.high) if match.HasField("range") else (kind.value,):
                self.values.learn(refs[match.field_id], widths[match.field_id], int.from_bytes(value, "big"))
        if entry.action.HasField("action"):
            action = self.actions[entry.action.action.action_id]
            for info, param in zip(action.params, entry.action.action.params, strict=True):
                self.values.learn(None, info.bitwidth, int.from_bytes(param.value, "big"))

    def field(self, info: p4i.MatchField, ref: tuple[str, str] | None) -> Field | None:
        width, ones = info.bitwidth, (1 << info.bitwidth) - 1
        value = self.values.any(width, ref)
        if info.match_type == MatchType.EXACT:
            return Field(value)
        if self.random.random() < 0.1:
            return None
        if info.match_type == MatchType.LPM:
            return Field(value, self.random.choice((width, self.random.randrange(width + 1))))
        if info.match_type == MatchType.TERNARY:
            return Field(
                value, self.random.choice((ones, self.random.getrandbits(width), ones ^ (1 << self.random.randrange(width))))
            )
        if info.match_type == MatchType.RANGE:
            other = self.random.choice((value, self.values.any(width, ref)))
            low, high = min(value, other), max(value, other)
            # BMv2 takes 0 to 255 for "any value", in wider fields too, and so on for more bytes.
            is_any_in_bmv2 = high in {(1 << bits) - 1 for bits in range(8, width, 8)}
            return Field(max(low, 1) if is_any_in_bmv2 else low, high)
        return Field(value)

    def choices(self, table: p4i.Table, but: p4i.ActionRef.Scope.ValueType) -> list[p4i.Action]:
        return [self.actions[ref.id] for ref in table.action_refs if ref.scope != but]

    def call(self, action: p4i.Action) -> p4r.Action:
        return wire.action(action, [self.param(param.bitwidth) for param in action.params])

    def param(self, width: int) -> int:
        if width == PORT_BITS:
            return self.random.choice(PORTS)
        if width == GROUP_BITS and self.random.random() < 0.5:
            return self.random.randrange(GROUPS + 1)
        return self.values.any(width)
