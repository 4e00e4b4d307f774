# SPDX-License-Identifier: Apache-2.0
"""Clone sessions of the packet replication engine, which a state holds like table entries."""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from frontage.p4.entries import Action, Key, exact

CLONE_SESSION = "clone_session"
"""The table name of clone sessions. The key is the session id; the action's parameters are the number of bytes to which the
session truncates packets, or zero, and the port and the instance of each replica."""


def session(number: int, replicas: Iterable[tuple[int, int]], truncate_to: int = 0) -> tuple[Key, Action]:
    """Return a session with these replicas (port, instance), given in any order, which sends at most ``truncate_to`` bytes."""
    parts = (part for replica in sorted(replicas) for part in replica)
    return Key(CLONE_SESSION, (number,)), Action("replicas", (truncate_to, *parts))


def truncation_of(action: Action) -> int:
    """Return the number of bytes to which a session truncates packets; zero: it does not."""
    return action.params[0]


def replicas_of(action: Action) -> list[tuple[int, int]]:
    """Return the replicas (port, instance) of a session."""
    return list(zip(action.params[1::2], action.params[2::2], strict=True))


def encode(key: Key, action: Action | None) -> p4r.PacketReplicationEngineEntry:
    """Return the wire format (P4Runtime, section 9.5.2), or that of the key alone without an action."""
    (number,) = exact(key.match)
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    if action is not None:
        entry.clone_session_entry.packet_length_bytes = truncation_of(action)
        for port, instance in replicas_of(action):
            entry.clone_session_entry.replicas.add(egress_port=port, instance=instance)
    return entry


def decode(entry: p4r.PacketReplicationEngineEntry) -> tuple[Key, Action]:
    """Return a session from its wire format."""
    found = entry.clone_session_entry
    replicas = [(int.from_bytes(r.port, "big") or r.egress_port, r.instance) for r in found.replicas]
    return session(found.session_id, replicas, found.packet_length_bytes)
