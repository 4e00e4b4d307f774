# SPDX-License-Identifier: Apache-2.0
"""The verbs of operators. Each is an edit of the configuration file; the command line and the HTTP API share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frontage.config import edit
from frontage.config.devices import DeviceState
from frontage.config.vips import Policy, ServerState


@dataclass(frozen=True, slots=True)
class Change:
    """A change that an operator wants."""

    verb: str
    """The name of the verb in the journal, such as ``drain``."""
    arguments: Mapping[str, Any]
    """The arguments in the journal: JSON values, without secrets."""
    done: str
    """The result in words, such as `server web2 is draining`."""
    edit: edit.Edit = field(repr=False, compare=False)
    """The edit of the file. May raise EditError."""
    replaces: bool = False
    """True if the edit ignores the content of the file, which may therefore be invalid."""


def _given(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def add_server(
    name: str, vip: str, address: str, port: int, *, sid: int | None = None, weight: int | None = None, zone: str | None = None
) -> Change:
    """Add a server to a VIP."""
    return Change(
        "add-server",
        _given(name=name, vip=vip, address=address, port=port, sid=sid, weight=weight, zone=zone),
        f"server {name} added to {vip}",
        lambda text: edit.add_server(text, name=name, vip=vip, address=address, port=port, sid=sid, weight=weight, zone=zone),
    )


def set_server(name: str, *, state: ServerState | None = None, weight: int | None = None) -> Change:
    """Drain a server or make it active again, change its weight, or both."""
    parts = [*([f"is {state}"] if state else []), *([f"has weight {weight}"] if weight is not None else [])]
    verb = "set-weight" if state is None else "drain" if state is ServerState.DRAINING else "activate"

    def apply(text: str) -> str:
        if state is not None:
            text = edit.set_server_state(text, name, state)
        return text if weight is None else edit.set_server_weight(text, name, weight)

    return Change(verb, _given(name=name, weight=weight), f"server {name} {' and '.join(parts)}", apply)


def remove_server(name: str) -> Change:
    """Remove a server, which breaks its connections."""
    return Change("remove-server", {"name": name}, f"server {name} removed", lambda text: edit.remove_server(text, name))


def set_device_state(name: str, state: DeviceState) -> Change:
    """Withdraw the routes through a switch, or announce them again."""
    verb = "drain-switch" if state is DeviceState.DRAINING else "activate-switch"
    return Change(verb, {"name": name}, f"switch {name} is {state}", lambda text: edit.set_device_state(text, name, state))


def set_policy(vip: str, policy: Policy | None = None, alpha: float | None = None) -> Change:
    """Change the policy of a VIP, its alpha, or both."""
    parts = [
        *([f"policy of {vip} is {policy}"] if policy else []),
        *([f"alpha of {vip} is {alpha:g}"] if alpha is not None else []),
    ]
    return Change(
        "set-policy",
        _given(vip=vip, policy=policy and str(policy), alpha=alpha),
        ", ".join(parts),
        lambda text: edit.set_policy(text, vip, policy, alpha),
    )


def rotate_key(folder: Path) -> Change:
    """Seal cookies with a new key. ``folder`` is that of the configuration file."""
    return Change("rotate-key", {}, "a new key is active", lambda text: edit.rotate_key(text, folder))


def replace(text: str, source: str) -> Change:
    """Replace the whole configuration by ``text``. ``source`` identifies it in the journal."""
    return Change("apply", {"source": source}, f"configuration replaced by {source}", lambda _text: text, replaces=True)


def undo(number: int, text: str) -> Change:
    """Restore ``text``, the configuration before change ``number`` of the journal, with the current keys.

    An older key would turn back the clock of the clients (docs/cookie.md, PAWS).
    """
    return Change(
        "undo",
        {"number": number},
        f"configuration before change {number} restored",
        lambda current: edit.with_keys_of(text, current),
    )
