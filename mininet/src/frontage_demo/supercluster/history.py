"""What clients did and saw, and whether some order explains it.

Versions are given by the store, so the order that it claims is known and need not be searched for: a history is
linearizable if each operation's version is one that real time allows (operations that ended before it began have no
later ones) and each version has one document. That needs no search such as Wing and Gong's, which
controller/records/tests/records_history has for short histories. Times are of one monotonic clock: all processes are on one
machine.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Operation:
    """One that was done, or may have been."""

    site: int
    """Of who did it."""
    guid: str
    consistency: str
    kind: str
    """``put``, ``read``, or ``seen`` by a subscriber."""
    value: str | None
    """What was written or found; None: there was no record."""
    begin: int
    """Nanoseconds."""
    end: int = NEVER
    """NEVER: it is not known whether it was done."""
    version: int | None = None

    def line(self) -> str:
        """As JSON."""
        return json.dumps({field: getattr(self, field) for field in _FIELDS}, separators=(",", ":"))


_FIELDS = [field.name for field in fields(Operation)]


def load(files: Iterable[Path]) -> list[Operation]:
    """What `Operation.line` wrote."""
    return [Operation(**json.loads(line)) for file in files for line in file.read_text().splitlines()]


def violations(operations: Sequence[Operation], final: Mapping[tuple[int, str], Operation]) -> list[str]:
    """What no order explains; empty if all is well. `final`: a read of each record by each site, after all others."""
    by_guid: dict[str, list[Operation]] = defaultdict(list)
    for one in operations:
        by_guid[one.guid].append(one)
    found = []
    for guid, some in by_guid.items():
        last = [read for (_, name), read in final.items() if name == guid]
        check = _eventual if some[0].consistency == "eventual" else _ordered
        found += [f"{guid} ({some[0].consistency}): {what}" for what in check(some, last)]
    return found


def _ordered(operations: Sequence[Operation], final: Sequence[Operation]) -> Iterator[str]:
    puts = [one for one in operations if one.kind == "put"]
    reads = [one for one in operations if one.kind != "put" and one.value is not None]
    written = {one.value: one for one in puts}
    version_of: dict[int, Operation] = {}
    for put in puts:
        if put.version is None:
            continue
        if put.version in version_of:
            yield f"version {put.version} is of {version_of[put.version].value} and of {put.value}: a write is lost"
        version_of[put.version] = put
    for read in [*reads, *final]:
        assert read.version is not None
        source = written.get(read.value)
        if source is None:
            yield f"site {read.site} found {read.value}, which nobody wrote, or was told that it was not done"
        elif source.version is None and read.version not in version_of:
            version_of[read.version] = source
        elif version_of.get(read.version) is not source:
            yield f"site {read.site} found {read.value} as version {read.version}, which it is not"
        elif source.begin > read.end:
            yield f"site {read.site} found {read.value} before it was written"
    unknown = sum(put.version is None for put in puts)
    for read in final:
        assert read.version is not None
        newest = max((put.version for put in puts if put.version is not None), default=0)
        if read.version < newest:
            yield f"site {read.site} has version {read.version} in the end, {newest} was acknowledged: writes are lost"
        if read.version > sum(put.version is not None for put in puts) + unknown:
            yield f"version {read.version} in the end of {len(puts)} writes: one was done twice"
    linear = operations[0].consistency == "total"
    bound = [one for one in version_of.items() if one[1].version is None]
    placed = [(put.begin, put.end, version, True) for version, put in version_of.items() if put.version is not None]
    placed += [(put.begin, NEVER, version, True) for version, put in bound]
    placed += [(one.begin, one.end, one.version or 0, False) for one in reads if linear and one.kind == "read"]
    yield from _real_time(placed)


def _real_time(placed: Sequence[tuple[int, int, int, bool]]) -> Iterator[str]:
    """Of begin, end, version, and whether it is a put: what had ended before one began must have an earlier version; if
    that is a read, the same will do.
    """
    ended = sorted(placed, key=lambda one: one[1])
    newest, at = 0, 0
    for begin, _, version, put in sorted(placed):
        while at < len(ended) and ended[at][1] < begin:
            newest = max(newest, ended[at][2])
            at += 1
        if version < newest + put:
            yield f"version {version} came to a {'put' if put else 'read'} that began after version {newest} was known"


def _eventual(operations: Sequence[Operation], final: Sequence[Operation]) -> Iterator[str]:
    """Sites agree, on the acknowledged write with the latest stamp or on one that may have been done."""
    written = {one.value: one for one in operations if one.kind == "put"}
    acknowledged = max((one.version for one in written.values() if one.version is not None), default=0)
    if len({(one.version, one.value) for one in final}) > 1:
        yield f"sites do not agree: {sorted((one.site, one.version, one.value) for one in final)}"
    for read in [*final, *(one for one in operations if one.kind != "put" and one.value is not None)]:
        if read.value not in written:
            yield f"site {read.site} found {read.value}, which nobody wrote, or was told that it was not done"
    for read in final:
        assert read.version is not None
        if read.version < acknowledged:
            yield f"site {read.site} ends with stamp {read.version}, {acknowledged} was acknowledged: a write is lost"
