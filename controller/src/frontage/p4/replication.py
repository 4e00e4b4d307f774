"""Clone sessions of the packet replication engine. A state holds them like a table's entries."""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from frontage.p4.entries import Action, Key, exact

CLONE_SESSION = "clone_session"
"""Stands where tables have their names; a key is the session's number, the action its replicas: port and number of each."""


def session(number: int, replicas: Iterable[tuple[int, int]]) -> tuple[Key, Action]:
    """A session of these replicas (port, number), in any order."""
    return Key(CLONE_SESSION, (number,)), Action("replicas", tuple(part for replica in sorted(replicas) for part in replica))


def replicas_of(action: Action) -> list[tuple[int, int]]:
    """(port, number) of each."""
    return list(zip(action.params[::2], action.params[1::2], strict=True))


def encode(key: Key, action: Action | None) -> p4r.PacketReplicationEngineEntry:
    """The wire form (P4Runtime, section 9.5.2); without an action, of its key alone."""
    (number,) = exact(key.match)
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    if action is not None:
        for port, instance in replicas_of(action):
            entry.clone_session_entry.replicas.add(egress_port=port, instance=instance)
    return entry


def decode(entry: p4r.PacketReplicationEngineEntry) -> tuple[Key, Action]:
    found = entry.clone_session_entry
    replicas = [(int.from_bytes(r.port, "big") or r.egress_port, r.instance) for r in found.replicas]
    return session(found.session_id, replicas)
