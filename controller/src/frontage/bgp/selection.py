# SPDX-License-Identifier: Apache-2.0
"""The selection of the best paths to a prefix (RFC 4271, section 9.1.2.2)."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.bgp.update import Path
from frontage.fields import IPAddress


def best(paths: Iterable[Path], limit: int) -> tuple[IPAddress, ...]:
    """Return the next hops of the best paths, in ascending order, at most ``limit``.

    Paths are equally good if they agree in local preference, length of the AS path and origin, and none of the same neighboring AS
    has a lower MED. They may differ in their AS numbers.
    """
    known = list(paths)
    if not known:
        return ()
    if len(known) > 1:
        rank = min(map(_rank, known))
        known = [path for path in known if _rank(path) == rank]
        lowest: dict[int | None, int] = {}
        for path in known:
            lowest[_first(path)] = min(path.med, lowest.get(_first(path), path.med))
        known = [path for path in known if path.med == lowest[_first(path)]]
    return tuple(sorted({path.next_hop for path in known}, key=int)[:limit])


def _rank(path: Path) -> tuple[int, int, int]:
    return -path.local_pref, path.length, path.origin


def _first(path: Path) -> int | None:
    return path.as_path[0] if path.as_path else None
