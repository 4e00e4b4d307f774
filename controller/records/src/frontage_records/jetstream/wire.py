"""What record servers write to streams and send to each other: one line of JSON, then a record's document as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frontage_records.record import Consistency, Record


def pack(head: Mapping[str, Any], document: bytes | None = None) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + (document or b"")


def unpack(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What `pack` made. Raises ValueError."""
    line, _, document = data.partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict):
        raise ValueError("its first line is no JSON object")
    return head, document


def head_of(record: Record) -> dict[str, Any]:
    """All of it but its GUID and its document."""
    return {
        "consistency": record.consistency.value,
        "version": record.version,
        "stamp": record.stamp,
        "deleted": record.document is None,
    }


def record_of(guid: str, head: Mapping[str, Any], document: bytes) -> Record | None:
    """None if there is none in it. Raises ValueError, KeyError, TypeError for what `head_of` has not made."""
    if "version" not in head:
        return None
    kept = None if head["deleted"] else document
    return Record(guid, Consistency(head["consistency"]), int(head["version"]), int(head["stamp"]), kept)
