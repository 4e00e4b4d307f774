# SPDX-License-Identifier: Apache-2.0
"""Checks of GUIDs and documents from outside. A document has one encoding, so equal documents are equal bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from frontage_records.errors import DocumentError, GuidError, SizeError

MAX_GUID = 128
"""Characters of the longest GUID."""
_GUID = re.compile(rf"[A-Za-z0-9._~-]{{1,{MAX_GUID}}}")

Value = Mapping[str, Any]


def check_guid(guid: str) -> str:
    """Return ``guid`` if it is valid. Raises GuidError."""
    if _GUID.fullmatch(guid) is None or guid in (".", ".."):
        # RFC 3986: characters that a URL path takes unescaped (section 2.3). "." and ".." are special path segments (3.3).
        raise GuidError(
            f"invalid GUID {guid[:MAX_GUID]!r}: give 1 to {MAX_GUID} letters, digits, '-', '.', '_' or '~', and not dots only"
        )
    return guid


def encode(value: Value, max_bytes: int) -> bytes:
    """Encode a document as JSON in UTF-8, with sorted keys and without white space. Raises DocumentError, SizeError."""
    if not isinstance(value, Mapping):
        raise DocumentError("a record must be a JSON object: put the value under a key")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        document = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        # A lone surrogate raises ValueError too.
        raise DocumentError(f"invalid JSON document: {error}: see RFC 8259") from None
    _check_size(len(document), max_bytes)
    return document


def parse(body: bytes, max_bytes: int) -> dict[str, Any]:
    """Parse a document from outside. Raises DocumentError, SizeError."""
    _check_size(len(body), max_bytes)
    try:
        value = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"invalid JSON document: {error}: see RFC 8259") from None
    if not isinstance(value, dict):
        raise DocumentError("a record must be a JSON object: put the value under a key")
    return value


def decode(document: bytes) -> dict[str, Any]:
    """Decode the result of `encode`."""
    value: dict[str, Any] = json.loads(document)
    return value


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise SizeError(f"the document has {size} bytes, but at most {max_bytes} are allowed: split it, or raise records.max_bytes")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate names: RFC 8259, section 4, leaves open which one counts, and languages differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"invalid JSON number {constant}")
