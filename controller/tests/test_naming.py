# SPDX-License-Identifier: Apache-2.0
"""Service addresses, with the test vectors that all implementations share."""

import json
from pathlib import Path
from typing import Any

import pytest

from frontage.naming import ServicePrefix, canonical_name

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "host-agents" / "naming" / "vectors.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['prefix']}+{vector['sid_bits']}-{vector['name'][:20]}")
def test_address_equals_test_vector(vector: dict[str, Any]) -> None:
    prefix = ServicePrefix.parse(f"{vector['prefix']}+{vector['sid_bits']}")
    assert str(prefix.service_address(vector["name"])) == vector["address"]


@pytest.mark.parametrize("text", ["2001:db8:a::/48+16", "198.51.100.0/24+0"])
def test_prefix_is_printed_as_parsed(text: str) -> None:
    assert str(ServicePrefix.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2001:db8:a::/48", "invalid service prefix"),
        ("2001:db8:a::/48+-1", "invalid service prefix"),
        ("2001:db8:a::/48+81", "more than 128 bits: use an N_sid of at most 80"),
        ("198.51.100.0/24+9", "more than 32 bits: use an N_sid of at most 8"),
        ("2001:db8:a::1/48+16", "has host bits set"),
        ("198.51.100.0/33+0", "invalid service prefix"),
    ],
)
def test_invalid_prefix_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"write it as|N_sid of at most") as caught:
        ServicePrefix.parse(text)
    assert text in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["", ".", "a\nb", "a\x7f", "a\x85"])
def test_invalid_name_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="invalid name"):
        canonical_name(text)
