"""``worker.p4``: the clone session by which packets bring news of queues back to ingress. A state holds it like a table's entry."""

from __future__ import annotations

from finsy.proto import p4r

from frontage.config import Config
from frontage.limits import WORKER_SESSION
from frontage.state import Action, Key, State, exact

CLONE_SESSION = "clone_session"
"""Stands where tables have their names; a key is the session's number, the action its one replica's port."""


def sessions(config: Config) -> State:
    """One, where a port's scheduler needs news. It leads to the CPU port, which has no queue, and from which workers turn back."""
    if not any(port.ranks for port in config.ports):
        return {}
    return {Key(CLONE_SESSION, (WORKER_SESSION,)): Action("replica", (config.device.cpu_port,))}


def encode(key: Key, action: Action | None) -> p4r.PacketReplicationEngineEntry:
    """The wire form (P4Runtime, section 9.5.2); without an action, of its key alone."""
    (session,) = exact(key.match)
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = session
    if action is not None:
        for port in action.params:
            entry.clone_session_entry.replicas.add(egress_port=port, instance=1)
    return entry


def decode(entry: p4r.PacketReplicationEngineEntry) -> tuple[Key, Action]:
    session = entry.clone_session_entry
    ports = tuple(int.from_bytes(replica.port, "big") or replica.egress_port for replica in session.replicas)
    return Key(CLONE_SESSION, (session.session_id,)), Action("replica", ports)
