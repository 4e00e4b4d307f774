# SPDX-License-Identifier: Apache-2.0
"""Table entries in P4Runtime's form, from a P4Info (P4Runtime specification, sections 8.4 and 9.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from frontage.p4.p4info import to_bytes

MatchType = p4i.MatchField.MatchType


@dataclass(frozen=True)
class Field:
    """The match of a key field: ``a`` alone, or ``a`` with mask or prefix length ``b``, or the range from ``a`` to ``b``."""

    a: int
    b: int | None = None


def needs_priority(table: p4i.Table) -> bool:
    return any(f.match_type in (MatchType.TERNARY, MatchType.RANGE, MatchType.OPTIONAL) for f in table.match_fields)


def match(info: p4i.MatchField, field: Field | None) -> p4r.FieldMatch | None:
    """Build a match; None means "anything", which P4Runtime omits."""
    if field is None:
        return None
    ones = (1 << info.bitwidth) - 1
    message = p4r.FieldMatch(field_id=info.id)
    if info.match_type == MatchType.EXACT:
        message.exact.value = to_bytes(field.a & ones)
    elif info.match_type == MatchType.OPTIONAL:
        message.optional.value = to_bytes(field.a & ones)
    elif info.match_type == MatchType.LPM:
        length = info.bitwidth if field.b is None else min(field.b, info.bitwidth)
        if length == 0:
            return None
        message.lpm.value = to_bytes(field.a & ones & ~(ones >> length))
        message.lpm.prefix_len = length
    elif info.match_type == MatchType.TERNARY:
        mask = ones if field.b is None else field.b & ones
        if mask == 0:
            return None
        message.ternary.value = to_bytes(field.a & mask)
        message.ternary.mask = to_bytes(mask)
    else:
        low, high = field.a & ones, ones if field.b is None else field.b & ones
        if (low, high) == (0, ones):
            return None
        message.range.low, message.range.high = to_bytes(low), to_bytes(high)
    return message


def action(info: p4i.Action, params: Sequence[int]) -> p4r.Action:
    message = p4r.Action(action_id=info.preamble.id)
    for param, value in zip(info.params, params, strict=True):
        message.params.add(param_id=param.id, value=to_bytes(value & ((1 << param.bitwidth) - 1)))
    return message


def entry(table: p4i.Table, key: Mapping[int, Field | None], call: p4r.TableAction, priority: int = 0) -> p4r.TableEntry:
    matches = [found for info in table.match_fields if (found := match(info, key.get(info.id))) is not None]
    return p4r.TableEntry(table_id=table.preamble.id, match=matches, action=call, priority=priority if needs_priority(table) else 0)


def clone_session(number: int, ports: Sequence[int]) -> p4r.Entity:
    entity = p4r.Entity()
    session = entity.packet_replication_engine_entry.clone_session_entry
    session.session_id = number
    for port in ports:
        session.replicas.add(egress_port=port, instance=1)
    return entity


def multicast_group(number: int, replicas: Sequence[tuple[int, int]]) -> p4r.Entity:
    """Build replicas from pairs of port and instance."""
    entity = p4r.Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = number
    for port, instance in replicas:
        group.replicas.add(egress_port=port, instance=instance)
    return entity


def insert(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)
