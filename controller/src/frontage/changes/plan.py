# SPDX-License-Identifier: Apache-2.0
"""The difference between two configurations, in operators' terms, and the connections that it affects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from frontage.config import Config
from frontage.cookie import CookieKey
from frontage.fields import Model


class Effect(StrEnum):
    """The connections that a change affects, in increasing order of severity."""

    NONE = "none"
    NEW = "new"
    """Only connections that begin after the change."""
    SOME = "some"
    """Some established connections may get another server or path; `why` says which."""
    BREAKS = "breaks"
    """Established connections break."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that changes. Values are text as in the file; None where the field is not set."""

    name: str
    """The path within the object, such as ``health.interval``."""
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """An object that is added, changed or removed."""

    action: str
    """`add`, `change` or `remove`."""
    kind: str
    """The kind of object, such as `server`."""
    name: str
    fields: tuple[Field, ...]
    """The fields that change; empty for added and removed objects."""
    effect: Effect
    why: str
    """The affected connections, and the reason; empty if no connection is affected."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A list of the configuration, whose items have a name."""

    kind: str
    attribute: str
    name: Callable[[Any], str]
    judge: Callable[[str, frozenset[str]], tuple[Effect, str]]
    """Returns the effect of an action on an item, and the reason. The second argument contains the changed top-level fields."""


def steps(before: Config, after: Config) -> list[Step]:
    """Return the steps from ``before`` to ``after``, in the order of the file's sections."""
    found = [step for section in _SECTIONS for step in _compare(section, before, after)]
    return found + list(_single_sections(before, after))


def without_servers(config: Config) -> list[str]:
    """Return the names of the VIPs that have no active server."""
    return [name for name, count in config.active_servers.items() if not count]


def worst(found: Sequence[Step]) -> Effect:
    """Return the largest effect of the steps."""
    order = list(Effect)
    return max((step.effect for step in found), key=order.index, default=Effect.NONE)


def _compare(section: _Section, before: Config, after: Config) -> Iterator[Step]:
    old = {section.name(item): item for item in getattr(before, section.attribute)}
    new = {section.name(item): item for item in getattr(after, section.attribute)}
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield Step("remove", section.kind, name, (), *section.judge("remove", frozenset()))
        elif name not in old:
            yield Step("add", section.kind, name, (), *section.judge("add", frozenset()))
        elif old[name] != new[name]:
            fields = tuple(_fields(old[name], new[name]))
            yield Step("change", section.kind, name, fields, *section.judge("change", _top_level(fields)))


def _top_level(fields: Sequence[Field]) -> frozenset[str]:
    return frozenset(field.name.partition(".")[0] for field in fields)


def _single_sections(before: Config, after: Config) -> Iterator[Step]:
    """Yield the changes of sections that are one object, such as `bgp`, or one value."""
    for name in _SINGLE:
        if name == "device" and (before.devices or after.devices):
            continue  # the first of `devices`
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        effect, why = _SINGLE[name]
        if isinstance(old, Model) and isinstance(new, Model):
            yield Step("change", "section", name, tuple(_fields(old, new)), effect, why)
        elif old is None or new is None:
            yield Step("add" if old is None else "remove", "section", name, (), effect, why)
        else:
            yield Step("change", "section", name, (Field(name, str(old), str(new)),), effect, why)


def _fields(before: Any, after: Any, prefix: str = "") -> Iterator[Field]:
    """Yield the fields that differ. Those of nested objects have paths with dots."""
    if isinstance(after, CookieKey):
        yield Field("secret", "(secret)", "(secret)")
        return
    for name, info in type(after).model_fields.items():
        old, new = getattr(before, name, None), getattr(after, name)
        if old == new:
            continue
        if isinstance(old, Model) and type(old) is type(new):
            yield from _fields(old, new, f"{prefix}{name}.")
        elif info.repr:
            yield Field(prefix + name, _text(old), _text(new))
        else:
            yield Field(prefix + name, "(secret)", "(secret)")


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple | list | frozenset):
        if any(isinstance(item, Model) for item in value):
            return f"{len(value)} items"
        return ", ".join(str(item) for item in value)
    if isinstance(value, Model):
        given = ((name, _text(getattr(value, name))) for name in type(value).model_fields)
        return ", ".join(f"{name} {text}" for name, text in given if text is not None)
    return str(value)


def _judge_vip(action: str, fields: frozenset[str]) -> tuple[Effect, str]:
    if action == "add":
        return Effect.NEW, ""
    moved = fields & {"address", "protocol", "port", "cookie_prefix"}
    if action == "remove" or moved:
        return Effect.BREAKS, "all of the VIP"
    if fields & {"policy", "alpha", "slow_start", "spill_over", "discovery", "syn_defence"}:
        return Effect.NEW, "assigned differently"
    if "max_servers" in fields:
        return Effect.SOME, "those without a cookie, if the size of the VIP's hash table changes"
    if "limits" in fields:
        return Effect.SOME, "those of clients above the limits"
    if "health" in fields:
        return Effect.NEW, "servers that fail the new check get no new connections"
    return Effect.SOME, "those that use the changed fields"


def _judge_server(action: str, fields: frozenset[str]) -> tuple[Effect, str]:
    if action == "add":
        return Effect.NEW, "the server gets some of them"
    if action == "remove":
        return Effect.BREAKS, "those of the server: drain it first, and wait until it has no connections"
    if fields & {"vip", "address", "port", "sid", "encapsulation"}:
        return Effect.BREAKS, "those of the server"
    if fields == {"metrics"}:
        return Effect.NONE, ""
    return Effect.NEW, "the server's share changes"


def _judge_device(action: str, fields: frozenset[str]) -> tuple[Effect, str]:
    if action == "add":
        return Effect.NONE, ""
    if action == "remove" or fields & {"address", "device_id"}:
        return Effect.SOME, "the controller no longer controls the switch"
    if "pipeline" in fields:
        return Effect.SOME, "those with packets that arrive while the switch loads its program"
    return Effect.NONE if fields <= {"state", "election_id"} else Effect.SOME, ""


def _judge_site(action: str, fields: frozenset[str]) -> tuple[Effect, str]:
    if action == "add" or fields == {"location"}:
        return Effect.NONE, ""
    return Effect.SOME, "those that are being set up through the site"


def _noticed_unless_added(why: str) -> Callable[[str, frozenset[str]], tuple[Effect, str]]:
    """Return a judge of objects whose addition affects no connections."""
    return lambda action, _fields: (Effect.NONE, "") if action == "add" else (Effect.SOME, why)


_judge_key = _noticed_unless_added("those that have been idle since before the next key: their cookies are no longer valid")
_judge_network = _noticed_unless_added("those whose packets take this path")
_judge_real_server = _noticed_unless_added("those with responses from the real server")


def _named(item: Any) -> str:
    return str(item.name)


_SECTIONS: Sequence[_Section] = (
    _Section("switch", "devices", _named, _judge_device),
    _Section("port", "ports", _named, _judge_network),
    _Section("route", "routes", lambda route: str(route.prefix), _judge_network),
    _Section("neighbor", "neighbors", lambda neighbor: str(neighbor.address), _judge_network),
    _Section("VIP", "vips", _named, _judge_vip),
    _Section("server", "servers", _named, _judge_server),
    _Section("real server", "real_servers", _named, _judge_real_server),
    _Section("site", "sites", lambda site: str(site.id), _judge_site),
    _Section("dispatcher", "dispatchers", _named, _judge_site),
    _Section("key", "cookie_keys", lambda key: str(key.id), _judge_key),
)

_SINGLE: Mapping[str, tuple[Effect, str]] = {
    "device": (Effect.SOME, "those with packets that arrive while the switch changes"),
    "site": (Effect.SOME, "those whose packets arrive through tunnels"),
    "mapping": (Effect.NEW, "first flights go to the sites of the new mapping"),
    "bgp": (Effect.SOME, "those whose routes change"),
    "metrics": (Effect.NONE, ""),
    "fallback": (Effect.SOME, "those without a cookie that are idle for longer"),
    "handshake": (Effect.SOME, "those whose handshake takes longer"),
    "health": (Effect.NEW, "servers that fail their checks get no new connections"),
    "end_users": (Effect.NEW, "first flights go to the sites of the new mapping"),
    "placement": (Effect.NEW, "services may move to other sites"),
    "records": (Effect.NONE, ""),
    "api": (Effect.NONE, ""),
    "samples": (Effect.NONE, ""),
    "control_socket": (Effect.NONE, ""),
}
