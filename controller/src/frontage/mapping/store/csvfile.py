# SPDX-License-Identifier: Apache-2.0
"""Import and export of the store's tables as CSV. The header line tells which table a file holds."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from frontage.limits import MAX_REDUNDANCY, MAX_SITE
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.compute.values import Sample
from frontage.mapping.services import Service
from frontage.mapping.settings import Policy
from frontage.mapping.store.kind import Kind
from frontage.mapping.store.store import Store
from frontage.naming import canonical_name

COLUMNS = {
    Kind.MEASUREMENTS: ("prefix", "site", "rtt_us", "source"),
    Kind.DEPLOYMENTS: ("name", "site"),
    Kind.SERVICES: ("name", "redundancy", "policy", "alpn"),
}
_BATCH = 100_000


class CsvError(Exception):
    """An error in a file, as ``file:line: column: what is wrong: the fix``."""


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    cells: dict[str, str]

    def get(self, column: str, read: Callable[[str], Any], fix: str) -> Any:
        try:
            return read(self.cells[column].strip())
        except ValueError as error:
            raise CsvError(f"{self.where}: {column}: invalid value {self.cells[column]!r} ({error}): {fix}") from None


def load(store: Store, file: Path, now: float) -> tuple[Kind, int]:
    """Add the rows of a file to the store at Unix time ``now``. Returns their kind and their number.

    Raises CsvError if any row is invalid, and then adds nothing.
    """
    kind, rows = _read(file)
    if kind is Kind.MEASUREMENTS:
        samples = [_sample(row) for row in rows]
        for i in range(0, len(samples), _BATCH):
            store.add_samples(samples[i : i + _BATCH], now)
        return kind, len(samples)
    if kind is Kind.DEPLOYMENTS:
        pairs = [(_name(row), _site(row)) for row in rows]
        store.deploy(pairs)
        return kind, len(pairs)
    services = [_service(row) for row in rows]
    store.register(services)
    return kind, len(services)


def save(store: Store, kind: Kind, out: TextIO) -> None:
    """Write one table as CSV."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS[kind])
    if kind is Kind.MEASUREMENTS:
        for (prefix, site), rtt in sorted(store.measurements().cells.items()):
            writer.writerow((prefix, site, f"{rtt:.0f}", "passive"))
    elif kind is Kind.DEPLOYMENTS:
        writer.writerows((name, site) for name, sites in sorted(store.deployments().items()) for site in sorted(sites))
    else:
        writer.writerows((s.name, s.redundancy, s.policy, " ".join(s.alpn)) for s in store.services().values())


def _read(file: Path) -> tuple[Kind, list[_Row]]:
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines)
            header = tuple(cell.strip() for cell in next(reader, []))
            kind = next((kind for kind, columns in COLUMNS.items() if header == columns), None)
            if kind is None:
                known = ", or ".join(",".join(columns) for columns in COLUMNS.values())
                raise CsvError(f"{file}:1: unknown header {','.join(header)!r}: use {known}")
            return kind, list(_rows(file, reader, header))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CsvError(f"{file}: cannot be read: {error}: give a readable CSV file in UTF-8") from None


def _rows(file: Path, reader: Any, header: tuple[str, ...]) -> Iterator[_Row]:
    for cells in reader:
        where = f"{file}:{reader.line_num}"
        if not cells:
            continue
        if len(cells) != len(header):
            raise CsvError(f"{where}: {len(cells)} columns: give {len(header)} ({','.join(header)})")
        yield _Row(where, dict(zip(header, cells, strict=True)))


def _rtt(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError("must be above 0")
    return value


def _within(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not low <= int(text) <= high:
            raise ValueError(f"must be from {low} to {high}")
        return int(text)

    return read


def _source(text: str) -> str:
    if text not in ("active", "passive"):
        raise ValueError("must be active or passive")
    return text


def _label(text: str) -> str:
    name = canonical_name(text)
    if len(name) > 255 or any(c.isspace() for c in name):
        raise ValueError("invalid name")
    return name


def _sample(row: _Row) -> Sample:
    return Sample(
        row.get("prefix", parse, "give a prefix without host bits, for example 2001:db8:c1::/48"),
        _site(row),
        row.get("rtt_us", _rtt, "give the RTT in microseconds, for example 12345"),
        source=row.get("source", _source, "give active or passive"),
    )


def _site(row: _Row) -> int:
    site: int = row.get("site", _within(1, MAX_SITE), f"give a site id, 1 to {MAX_SITE}")
    return site


def _name(row: _Row) -> str:
    name: str = row.get("name", _label, "give a service name, for example films.example")
    return name


def _service(row: _Row) -> Service:
    return Service(
        _name(row),
        0,
        row.get("redundancy", _within(1, MAX_REDUNDANCY), f"give 1 to {MAX_REDUNDANCY}"),
        row.get("policy", lambda text: Policy(text).value, "give one of " + ", ".join(Policy)),
        row.get("alpn", lambda text: tuple(text.split()) or ("h3",), "give application protocols, separated by spaces"),
    )
