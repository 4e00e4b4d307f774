# SPDX-License-Identifier: Apache-2.0
"""Records whose concurrent updates are merged: counters, sets and maps. A state machine without I/O and clock.

These are delta-state conflict-free replicated data types (Almeida, Shoker and Baquero, 2018). A site that updates a record away
from the record's log collects its updates in a *delta*: all of its updates of one *generation*. The site may send a delta any number of
times, and send a longer one of the same generation before the first has arrived. A state remembers for each site the generation and
the number of the last update that it contains, so `absorb` adds each update once. Deltas of different sites commute.

- ``counter``: the document has an integer for each key, and an update adds to them.
- ``set``: the document has a list of strings for each key. An addition wins over a concurrent removal: a removal affects only the
  additions that its writer has seen (observed-remove set without tombstones; Bieniusa and others, 2012).
- ``map``: of two updates of the same key the one with the later stamp wins, as for whole documents of ``eventual`` records.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from frontage_records.errors import DocumentError

LOG = 0
"""The writer id of updates that are made at the record's log itself. Sites have ids from 1."""
MAX_AMOUNT = 2**53 - 1
"""The largest amount that one update may add to a counter: JSON represents larger integers inexactly (RFC 8259, section 6)."""

State: TypeAlias = dict[str, Any]
"""``items`` and ``seen``, as JSON values. ``seen`` has a list for each site: the generation and the number of the last update; of a
counter, also the sums of that generation."""


class Merge(StrEnum):
    """How concurrent updates of a record are merged."""

    COUNTER = "counter"
    SET = "set"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Delta:
    """The updates of one site in one generation."""

    site: int
    generation: int
    """Increases with each new delta, which a site begins when the previous one has arrived."""
    number: int = 0
    """Number of updates."""
    stamp: int = 0
    """Stamp of the last update."""
    items: Mapping[str, Any] = field(default_factory=dict)
    """Counter: the sum for each key. Set: ``[number of the addition or 0, dots that it replaces]`` for each key and element. Map:
    ``[stamp, value]`` for each key, or ``[stamp]`` for a removed one. A state adds the site to the entries of a map."""


def check_changes(merge: Merge, changes: object) -> dict[str, Any]:
    """Return the changes of an update if they are valid. Raises DocumentError."""
    if not isinstance(changes, dict) or not changes:
        raise DocumentError(f"the changes of a {merge} must be a JSON object with at least one key")
    for key, change in changes.items():
        if merge is Merge.COUNTER and (type(change) is not int or abs(change) > MAX_AMOUNT):
            raise DocumentError(
                f'{key}: the change of a counter must be an integer of at most 2^53 - 1: for example {{"{key}": 1}}'
            )
        if merge is Merge.SET:
            _check_elements(key, change)
    return changes


def _check_elements(key: str, change: object) -> None:
    hint = f'for example {{"{key}": {{"add": ["a"], "remove": ["b"]}}}}'
    if not isinstance(change, dict) or not change or not change.keys() <= {"add", "remove"}:
        raise DocumentError(f"{key}: the change of a set must contain `add` or `remove`: {hint}")
    if not all(isinstance(found, list) and all(isinstance(one, str) for one in found) for found in change.values()):
        raise DocumentError(f"{key}: `add` and `remove` must be lists of strings: {hint}")
    if both := set(change.get("add", ())) & set(change.get("remove", ())):
        raise DocumentError(f"{key}: {min(both)!r} is both added and removed: choose one")


def empty() -> State:
    """Return the state before the first update."""
    return {"items": {}, "seen": {}}


def encode(state: State) -> bytes:
    """Encode a state. Equal states have equal encodings."""
    return json.dumps(state, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def decode(data: bytes) -> State:
    """Decode the result of `encode`."""
    state: State = json.loads(data)
    return state


def value(merge: Merge, state: State) -> dict[str, Any]:
    """Return the document that clients see, without keys of empty sets."""
    items: dict[str, Any] = state["items"]
    if merge is Merge.COUNTER:
        return dict(items)
    if merge is Merge.SET:
        return {key: sorted(elements) for key, elements in items.items()}
    return {key: found[1] for key, found in items.items() if len(found) > 2}


def of_value(merge: Merge, document: Mapping[str, Any]) -> State:
    """Return a state with this document, for programs that only know the document."""
    if merge is Merge.COUNTER:
        return empty() | {"items": dict(document)}
    if merge is Merge.SET:
        return empty() | {"items": {key: {element: [[LOG, 0, 0]] for element in found} for key, found in document.items()}}
    return empty() | {"items": {key: [0, found, LOG] for key, found in document.items()}}


def seen(state: State, site: int) -> tuple[int, int]:
    """Return the generation and the number of the last update from ``site``; zeros without one."""
    found = state["seen"].get(str(site), (0, 0))
    return found[0], found[1]


def unseen(state: State, delta: Delta) -> int:
    """Return the number of updates of ``delta`` that the state does not contain."""
    generation, number = seen(state, delta.site)
    if generation == delta.generation:
        return max(0, delta.number - number)
    return delta.number if generation < delta.generation else 0


def extend(merge: Merge, state: State, delta: Delta, changes: Mapping[str, Any], stamp: int) -> Delta:
    """Return the delta with one more update. ``state``: the state that its writer sees, including the delta."""
    items, number = dict(delta.items), delta.number + 1
    for key, change in changes.items():
        if merge is Merge.COUNTER:
            items[key] = items.get(key, 0) + change
        elif merge is Merge.MAP:
            items[key] = [stamp] if change is None else [stamp, change]
        else:
            present, found = state["items"].get(key, {}), dict(items.get(key, {}))
            for element in change.get("add", ()):
                found[element] = [number, _replaced(delta, present.get(element, ()), found.get(element))]
            for element in change.get("remove", ()):
                if element in present:
                    found[element] = [0, _replaced(delta, present[element], found.get(element))]
            items[key] = found
    return Delta(delta.site, delta.generation, number, stamp, items)


def _replaced(delta: Delta, present: list[list[int]], before: list[Any] | None) -> list[list[int]]:
    """Return the dots that an update of an element replaces, except those of the delta itself, which it always replaces."""
    dots = [*present, *(before[1] if before is not None else ())]
    return [list(dot) for dot in sorted({tuple(dot) for dot in dots}) if dot[:2] != (delta.site, delta.generation)]


def absorb(merge: Merge, state: State, delta: Delta) -> State:
    """Return the state with the updates of ``delta`` that it does not contain yet."""
    if not unseen(state, delta):
        return state
    state = copy.deepcopy(state)
    generation, number = seen(state, delta.site)
    before = number if generation == delta.generation else 0
    mark: list[Any] = [delta.generation, delta.number]
    if merge is Merge.COUNTER:
        sums = state["seen"][str(delta.site)][2] if before else {}
        for key, amount in delta.items.items():
            state["items"][key] = state["items"].get(key, 0) + amount - sums.get(key, 0)
        mark.append(dict(delta.items))
    elif merge is Merge.MAP:
        for key, found in delta.items.items():
            _keep_later(state["items"], key, [*found, delta.site])
    else:
        for key, elements in delta.items.items():
            _absorb_elements(state["items"], key, elements, delta, before)
    state["seen"][str(delta.site)] = mark
    return state


def _keep_later(items: dict[str, Any], key: str, found: list[Any]) -> None:
    if key not in items or _map_order(found) > _map_order(items[key]):
        items[key] = found


def _map_order(found: list[Any]) -> tuple[int, bool, str, int]:
    """Sort key of a map's entries. At equal stamps, a removal is later, as for whole records."""
    removed = len(found) == 2
    return found[0], removed, "" if removed else json.dumps(found[1], sort_keys=True), found[-1]


def _absorb_elements(items: dict[str, Any], key: str, elements: Mapping[str, Any], delta: Delta, before: int) -> None:
    """``before``: the number of the delta's updates that the state contains already."""
    present: dict[str, Any] = items.setdefault(key, {})
    for element, (number, replaced) in elements.items():
        own = [delta.site, delta.generation, number]
        dots = present.get(element, [])
        # An addition that the state once contained and no longer contains has been removed.
        kept = [own] if number > before or (number and own in dots) else []
        kept += [dot for dot in dots if dot not in replaced and dot[:2] != own[:2]]
        if kept:
            present[element] = sorted(kept)
        else:
            present.pop(element, None)
    if not present:
        del items[key]
