# SPDX-License-Identifier: Apache-2.0
"""The cookie, with the test vectors that all implementations share."""

import hashlib
import json
import struct
from functools import cache, reduce
from ipaddress import ip_address
from operator import xor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontage.cookie import IP6_SIGNAL, TCP_LOAD, TCP_RPT, CookieKey, Ip6Cookie, Quantiser, plain_cid, tweak

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "docs" / "cookie-vectors.json").read_text(encoding="utf-8")
)


@cache
def key_of(secret: str, key_id: int) -> CookieKey:
    return CookieKey(key_id, bytes.fromhex(secret))


def connection(vector: dict[str, Any]) -> bytes:
    return tweak(ip_address(vector["client"]), ip_address(vector["vip"]), vector["client_port"], vector["vip_port"])


def test_quantisation() -> None:
    for vector in VECTORS["quantisation"]:
        quantiser = Quantiser(vector["w"], vector["m"])
        assert quantiser.encode(vector["value"]) == vector["code"], vector
        assert quantiser.decode(vector["code"]) == vector["decoded"], vector


@pytest.mark.parametrize(("quantiser", "low_by"), [(TCP_LOAD, 1 / 5), (TCP_RPT, 1 / 5), (IP6_SIGNAL, 1 / 9)])
def test_quantisation_is_monotone_and_low_by_less_than_documented(quantiser: Quantiser, low_by: float) -> None:
    decoded = [quantiser.decode(code) for code in range(quantiser.max_code + 1)]
    assert decoded == sorted(set(decoded))
    for code, value in enumerate(decoded):
        assert quantiser.encode(value) == code
        if code < quantiser.max_code:
            last = decoded[code + 1] - 1
            assert quantiser.encode(last) == code
            assert last - value < low_by * last + 1e-9 or last == value


def test_tcp_tables() -> None:
    for vector in VECTORS["tcp_tables"]:
        tables = key_of(vector["secret"], 0).tcp_tables
        assert [table[:8].hex() for table in tables] == vector["heads"]
        assert [reduce(xor, table) for table in tables] == vector["xors"]


def test_tcp_static() -> None:
    for vector in VECTORS["tcp_static"]:
        key = key_of(vector["secret"], vector["key_id"])
        t = connection(vector)
        assert int.from_bytes(t, "big") == vector["tweak"]
        assert key.seal_tcp(vector["sid"], t) == vector["code"], vector
        assert key.open_tcp(vector["code"], t) == vector["sid"], vector


def test_tcp_invalid() -> None:
    for vector in VECTORS["tcp_invalid"]:
        key = key_of(vector["secret"], vector["key_id"])
        assert key.open_tcp(vector["code"], connection(vector)) is None, vector


def test_forged_tcp_codes_pass_with_a_probability_of_one_in_eight() -> None:
    """The three check bits: exactly one in 2^3 of all codes opens, for each connection."""
    key = CookieKey(7, bytes(range(32)))
    for connection in (b"\0\0\0\0", b"\1\2\3\4"):
        opened = [sid for code in range(1 << 16) if (sid := key.open_tcp(code, connection)) is not None]
        assert len(opened) == (1 << 15) >> 3
        assert sorted(opened) == list(range(1 << 12))


def test_ip6_tables() -> None:
    for vector in VECTORS["ipv6_tables"]:
        rows = [row for table in key_of(vector["secret"], 0).ip6_tables for row in table]
        assert [row[0] for row in rows] == vector["heads"]
        assert reduce(xor, (word for row in rows for word in row)) == vector["xor"]


def test_ip6() -> None:
    for vector in VECTORS["ipv6"]:
        cookie = Ip6Cookie(
            sid=vector["sid"],
            rpt=IP6_SIGNAL.encode(vector["rpt_us"] // 8),
            n_af=IP6_SIGNAL.encode(vector["n_af"]),
            n_ff=IP6_SIGNAL.encode(vector["n_ff"]),
            expects_static=bool(vector["x"]),
            dynamic=vector["dynamic"],
        )
        key = key_of(vector["secret"], vector["key_id"])
        assert cookie.plain() == int(vector["plain"], 16) & (1 << 60) - 1, vector
        assert key.seal_ip6(cookie) == int(vector["interface_id"], 16), vector
        assert key.open_ip6(int(vector["interface_id"], 16)) == cookie, vector


def test_ip6_invalid() -> None:
    for vector in VECTORS["ipv6_invalid"]:
        key = key_of(vector["secret"], vector["key_id"])
        assert key.open_ip6(int(vector["interface_id"], 16)) is None, vector


def test_connection_ids() -> None:
    for vector in VECTORS["cid"]:
        key = key_of(vector["secret"], vector["key_id"])
        cid = bytes.fromhex(vector["id"])
        nonce = bytes.fromhex(vector["nonce"])
        if vector["form"] == "plain":
            assert plain_cid(vector["sid"], nonce) == cid, vector
        else:
            assert key.seal_cid(vector["sid"], int.from_bytes(nonce, "big"), bytes.fromhex(vector["random"])) == cid, vector
        assert key.open_cid(cid) == vector["sid"], vector


def test_invalid_connection_ids() -> None:
    for vector in VECTORS["cid_invalid"]:
        assert key_of(vector["secret"], vector["key_id"]).open_cid(bytes.fromhex(vector["id"])) is None, vector


def test_connection_id_without_nonce_is_rejected() -> None:
    with pytest.raises(ValueError, match="nonce 0 is not between 1 and"):
        CookieKey(1, bytes(16)).seal_cid(7, 0, bytes(3))


@given(st.binary(min_size=16, max_size=32), st.integers(1, 1 << 32), st.integers(0, 4095), st.binary(min_size=4, max_size=4))
def test_tcp_round_trip(secret: bytes, key_id: int, sid: int, t: bytes) -> None:
    key = CookieKey(key_id, secret)
    code = key.seal_tcp(sid, t)
    assert code >> 15 == key.epoch
    assert key.open_tcp(code, t) == sid
    assert CookieKey(key_id + 1, secret).open_tcp(code, t) is None


def test_tcp_seal_is_a_permutation() -> None:
    key = CookieKey(1, hashlib.sha256(b"permutation").digest())
    t = struct.pack(">I", 0xDEADBEEF)
    assert len({key.seal_tcp(sid, t) for sid in range(4096)}) == 4096
    opened = [key.open_tcp(1 << 15 | code, t) for code in range(1 << 15)]
    assert sorted(sid for sid in opened if sid is not None) == list(range(4096))


@pytest.mark.parametrize("size", [0, 15, 33])
def test_secret_of_invalid_size_is_rejected(size: int) -> None:
    with pytest.raises(ValueError, match="16 to 32 bytes"):
        CookieKey(1, bytes(size))


def test_secret_is_not_printed() -> None:
    assert "00" not in repr(CookieKey(1, bytes(16)))
