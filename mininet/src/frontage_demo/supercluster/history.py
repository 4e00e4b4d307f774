# SPDX-License-Identifier: Apache-2.0
"""Histories of the clients' operations, and the check that an order explains them.

The store assigns versions, so the order that it claims is known. A history is linearizable if real time allows each
operation's version (operations that ended before it began have no later ones) and each version has one document.
This needs no search such as Wing and Gong's, which controller/records/tests/records_history uses for short histories. Times
are of one monotonic clock, because all processes are on one machine.
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
    """An operation that was done, or may have been."""

    site: int
    """Site of the client."""
    guid: str
    consistency: str
    kind: str
    """``put``, ``read``, or ``seen`` by a subscriber."""
    value: str | None
    """The document written or found; None if there was no record."""
    begin: int
    """Nanoseconds."""
    end: int = NEVER
    """NEVER if the outcome is unknown."""
    version: int | None = None

    def line(self) -> str:
        """Return the operation as a line of JSON."""
        return json.dumps({field: getattr(self, field) for field in _FIELDS}, separators=(",", ":"))


_FIELDS = [field.name for field in fields(Operation)]


def load(files: Iterable[Path]) -> list[Operation]:
    """Read operations that `Operation.line` wrote."""
    return [Operation(**json.loads(line)) for file in files for line in file.read_text().splitlines()]


def violations(operations: Sequence[Operation], final: Mapping[tuple[int, str], Operation]) -> list[str]:
    """Return the violations of consistency; empty if some order explains everything.

    `final` has a read of each record by each site, after all other operations.
    """
    by_guid: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_guid[operation.guid].append(operation)
    found = []
    for guid, history in by_guid.items():
        last = [read for (_, name), read in final.items() if name == guid]
        check = _eventual if history[0].consistency == "eventual" else _ordered
        found += [f"{guid} ({history[0].consistency}): {what}" for what in check(history, last)]
    return found


def _ordered(operations: Sequence[Operation], final: Sequence[Operation]) -> Iterator[str]:
    puts = [operation for operation in operations if operation.kind == "put"]
    reads = [operation for operation in operations if operation.kind != "put" and operation.value is not None]
    written = {put.value: put for put in puts}
    version_of: dict[int, Operation] = {}
    for put in puts:
        if put.version is None:
            continue
        if put.version in version_of:
            yield f"version {put.version} belongs to {version_of[put.version].value} and to {put.value}: a write is lost"
        version_of[put.version] = put
    for read in [*reads, *final]:
        assert read.version is not None
        source = written.get(read.value)
        if source is None:
            yield f"site {read.site} found {read.value}, which was never written or was reported as not done"
        elif source.version is None and read.version not in version_of:
            version_of[read.version] = source
        elif version_of.get(read.version) is not source:
            yield f"site {read.site} found {read.value} as version {read.version}, which belongs to another write"
        elif source.begin > read.end:
            yield f"site {read.site} found {read.value} before it was written"
    unknown = sum(put.version is None for put in puts)
    for read in final:
        assert read.version is not None
        newest = max((put.version for put in puts if put.version is not None), default=0)
        if read.version < newest:
            yield f"site {read.site} ends with version {read.version}, {newest} was acknowledged: writes are lost"
        if read.version > sum(put.version is not None for put in puts) + unknown:
            yield f"the final version is {read.version} after {len(puts)} writes: one was done twice"
    linear = operations[0].consistency == "total"
    bound = [item for item in version_of.items() if item[1].version is None]
    placed = [(put.begin, put.end, version, True) for version, put in version_of.items() if put.version is not None]
    placed += [(put.begin, NEVER, version, True) for version, put in bound]
    placed += [(read.begin, read.end, read.version or 0, False) for read in reads if linear and read.kind == "read"]
    yield from _real_time(placed)


def _real_time(placed: Sequence[tuple[int, int, int, bool]]) -> Iterator[str]:
    """Check (begin, end, version, whether it is a put): an operation that ended before another began must have an earlier
    version, or the same one if the later operation is a read.
    """
    ended = sorted(placed, key=lambda entry: entry[1])
    newest, at = 0, 0
    for begin, _, version, put in sorted(placed):
        while at < len(ended) and ended[at][1] < begin:
            newest = max(newest, ended[at][2])
            at += 1
        if version < newest + put:
            yield f"version {version} was given to a {'put' if put else 'read'} that began after version {newest} was known"


def _eventual(operations: Sequence[Operation], final: Sequence[Operation]) -> Iterator[str]:
    """Check that sites agree on the acknowledged write with the latest timestamp, or on one that may have been done."""
    written = {put.value: put for put in operations if put.kind == "put"}
    acknowledged = max((put.version for put in written.values() if put.version is not None), default=0)
    if len({(read.version, read.value) for read in final}) > 1:
        yield f"sites do not agree: {sorted((read.site, read.version, read.value) for read in final)}"
    for read in [*final, *(read for read in operations if read.kind != "put" and read.value is not None)]:
        if read.value not in written:
            yield f"site {read.site} found {read.value}, which was never written or was reported as not done"
    for read in final:
        assert read.version is not None
        if read.version < acknowledged:
            yield f"site {read.site} ends with timestamp {read.version}, {acknowledged} was acknowledged: a write is lost"
