# SPDX-License-Identifier: Apache-2.0
"""The format of messages in streams and between record servers: one line of JSON, then a record's document unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from frontage_records.merges import Delta
from frontage_records.record import Consistency, Record


def pack(head: Mapping[str, Any], document: bytes | None = None) -> bytes:
    """Encode a header and a document."""
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + (document or b"")


def unpack(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Decode the result of `pack`. Raises ValueError."""
    line, _, document = data.partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict):
        raise ValueError("the first line must be a JSON object")
    return head, document


def header_of(record: Record) -> dict[str, Any]:
    """Return the header of a record: all but its GUID and its document."""
    return {
        "consistency": record.consistency.value,
        "version": record.version,
        "stamp": record.stamp,
        "deleted": record.document is None,
    }


def record_of(guid: str, head: Mapping[str, Any], document: bytes) -> Record | None:
    """Return the record; None if the header has none. Raises ValueError, KeyError, TypeError for an invalid header."""
    if "version" not in head:
        return None
    kept = None if head["deleted"] else document
    return Record(guid, Consistency(head["consistency"]), int(head["version"]), int(head["stamp"]), kept)


def header_of_delta(delta: Delta) -> dict[str, Any]:
    """Return a delta as a JSON object."""
    return asdict(delta)


def delta_of(head: Mapping[str, Any]) -> Delta:
    """Return the result of `header_of_delta` as a delta. Raises KeyError, TypeError, ValueError."""
    return Delta(int(head["site"]), int(head["generation"]), int(head["number"]), int(head["stamp"]), dict(head["items"]))
