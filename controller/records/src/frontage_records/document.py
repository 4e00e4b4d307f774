"""GUIDs and documents as they come from outside, checked; a document has one encoding, by which equal ones are the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from frontage_records.errors import DocumentError, GuidError, SizeError

MAX_GUID = 128
_GUID = re.compile(rf"[A-Za-z0-9._~-]{{1,{MAX_GUID}}}")

Value = Mapping[str, Any]


def check_guid(guid: str) -> str:
    """``guid`` itself. Raises GuidError."""
    if _GUID.fullmatch(guid) is None or guid in (".", ".."):
        # RFC 3986, section 2.3: what a URL's path takes unescaped; and dots alone are path segments with a meaning (3.3).
        raise GuidError(
            f"{guid[:MAX_GUID]!r} is no GUID; give 1 to {MAX_GUID} letters, digits, '-', '.', '_' or '~', and not dots alone"
        )
    return guid


def encode(value: Value, max_bytes: int) -> bytes:
    """JSON in UTF-8, keys in order, no white space. Raises DocumentError, SizeError."""
    if not isinstance(value, Mapping):
        raise DocumentError("a record is a JSON object; put the value under a key")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        document = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        # A lone surrogate is a ValueError too.
        raise DocumentError(f"no JSON document: {error}; see RFC 8259") from None
    _check_size(len(document), max_bytes)
    return document


def parse(body: bytes, max_bytes: int) -> dict[str, Any]:
    """A document from outside. Raises DocumentError, SizeError."""
    _check_size(len(body), max_bytes)
    try:
        value = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"no JSON document: {error}; see RFC 8259") from None
    if not isinstance(value, dict):
        raise DocumentError("a record is a JSON object; put the value under a key")
    return value


def decode(document: bytes) -> dict[str, Any]:
    """What `encode` made."""
    value: dict[str, Any] = json.loads(document)
    return value


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise SizeError(f"{size} bytes are more than a record's {max_bytes}; split it, or raise records.max_bytes")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two of the same name counts, RFC 8259 (section 4) leaves open, and languages differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is in an object twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
