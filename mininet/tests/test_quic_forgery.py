# SPDX-License-Identifier: Apache-2.0
"""Cookie addresses and connection IDs without a seal of an installed key: as docs/cookie.md says, they practically
never reach a server: not one of a million.

A second test shows that the switch checks each zero bit of a form: the forger knows all of them but four, so that one
packet of 16 passes. If the switch ignored a bit, more would pass.
"""

import math
import random
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from frontage.cookie import CookieKey
from inprocess import Switch

pytestmark = pytest.mark.slow(seconds=25, together=True)

MILLION = 1_000_000
HELPED = 200_000
HIDDEN = 4
"""Zero bits that a helped forger must guess."""
FEW = 20_000
"""Packets for each number of check bits."""
SERVERS = 4096
"""The maximum number of servers in the switch."""
SIDS = 1 << 16
CLIENT, VIP, PREFIX, PORT = "2001:db8:c::2", "2001:db8:f::20", "2001:db8:c00c:1e::", 443
MACS = bytes.fromhex("02000000000102000000000286dd")
REMOVED, PREVIOUS, NEWEST = (CookieKey(id, bytes([id] * 32)) for id in (4, 5, 6))


@dataclass(frozen=True)
class Form:
    """A cookie address or connection ID, as a template of its frame and of the 64 sealed bits."""

    version: int
    zeros: tuple[int, ...]
    """Indexes of the bits that must be zero, of 60."""
    nonce: bool
    """True if bits 20 to 43 must not all be zero."""
    refused: str
    """Drop reason of a forged packet."""
    outcome: str
    """How the switch finds the server."""

    def frame(self, key: CookieKey, word: int) -> bytes:
        """Return a packet with 60 bytes of UDP payload. The switch only updates its checksum."""
        if self.nonce:
            to, cid = socket.inet_pton(socket.AF_INET6, VIP), struct.pack(">BQ", key.epoch << 5 | 11, word) + b"end"
        else:
            to, cid = socket.inet_pton(socket.AF_INET6, PREFIX)[:8] + word.to_bytes(8, "big"), b"\xff" * 12
        head = struct.pack(">IHBB", 6 << 28, 68, 17, 64) + socket.inet_pton(socket.AF_INET6, CLIENT) + to
        return MACS + head + struct.pack(">HHHH", 40_000, PORT, 68, 0xBEEF) + b"\x40" + cid + bytes(47)

    def clear(self, key: CookieKey) -> int:
        """Return the four unsealed bits."""
        return self.version << 2 | key.epoch


ADDRESS = Form(1, tuple(range(44)), False, "cookie-forged", "retrieved-address")
ID = Form(2, tuple(range(20)), True, "quic-no-connection", "retrieved-cid")
FORMS = pytest.mark.parametrize("form", [ADDRESS, ID], ids=["address", "id"])


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Switch:
    """Return a switch with one IPv6 service and the maximum number of servers, between two key rotations."""
    port = {"mac": "02:00:00:00:00:01", "role": "client"}
    inside = {"id": 2, "name": "rack", "mac": "02:00:00:00:00:03", "role": "server", "gateways": ["fd00::1/64"]}
    vip = {
        "name": "films",
        "address": VIP,
        "protocol": "udp",
        "port": PORT,
        "policy": "hash",
        "cookie_prefix": f"{PREFIX}/64",
    }
    servers = [{"name": f"s{i}", "vip": "films", "address": f"fd00:0:1:{i:x}::10", "port": 8443, "sid": i} for i in range(SERVERS)]
    configuration = {
        "device": {
            "address": "127.0.0.1:9559",
            "device_id": 1,
            "cpu_port": 510,
            "pipeline": {"p4info": "x", "json": "x"},
        },
        "ports": [{"id": 1, "name": "internet", **port, "gateways": ["2001:db8:cfff::1/64"]}, inside],
        "routes": [{"prefix": "fd00:0:1::/48", "port": "rack", "mac": "02:00:00:00:00:04"}],
        "vips": [vip],
        "servers": servers,
        "keys": [{"id": key.id, "secret": key.secret.hex()} for key in (PREVIOUS, NEWEST)],
    }
    return Switch(configuration, tmp_path_factory.mktemp("switch"))


def outcome(switch: Switch, words: Callable[[], tuple[CookieKey, int]], form: Form, packets: int) -> dict[str, int]:
    """Send packets, check that exactly those that were not dropped reached a server, and return the counters."""
    before = switch.counts()
    sent = 0
    for _ in range(packets):
        sent += len(switch.pipeline.send(form.frame(*words()), port=1))
    counts = {name: count - before.get(name, 0) for name, count in switch.counts().items()}
    counts = {name: count for name, count in counts.items() if count}
    assert sum(counts.values()) == packets
    assert sent == counts.get(form.outcome, 0)
    assert counts.keys() <= {form.refused, form.outcome, "server-gone"}
    return counts


def at_most(packets: int, share: float) -> int:
    """Return a count that chance exceeds less than once in a million runs, by Chernoff's bound of the binomial."""
    mean, count = packets * share, math.ceil(packets * share)
    while count <= mean or count * math.log(count / mean) - count + mean < math.log(1e6):
        count += 1
    return count


def at_least(packets: int, share: float) -> int:
    """Return the corresponding lower bound."""
    return math.floor(packets * share - math.sqrt(2 * math.log(1e6) * packets * share))


@FORMS
def test_random_bits_reach_no_server(switch: Switch, form: Form) -> None:
    rng = random.Random(f"forged {form.outcome}")

    def words() -> tuple[CookieKey, int]:
        key = NEWEST if rng.getrandbits(1) else PREVIOUS
        return key, form.clear(key) << 60 | rng.getrandbits(60)

    counts = outcome(switch, words, form, MILLION)
    opened = 2.0 ** -len(form.zeros)
    assert counts.get(form.outcome, 0) <= at_most(MILLION, opened * SERVERS / SIDS)
    assert MILLION - counts[form.refused] <= at_most(MILLION, opened)
    print(f"{form.outcome}: of {MILLION} forged, {counts}")


def helped(form: Form, zeros: int, rng: random.Random) -> tuple[CookieKey, int]:
    """Return a word of a forger who knows the key, but must guess this number of the zeros."""
    key = NEWEST if rng.getrandbits(1) else PREVIOUS
    plain = rng.getrandbits(16) << 44
    if form.nonce:
        plain |= rng.randrange(1, 1 << 24) << 20
    for bit in rng.sample(form.zeros, zeros):
        plain |= rng.getrandbits(1) << bit
    return key, key._seal_word(form.clear(key), plain)


@FORMS
def test_switch_checks_every_zero_bit(switch: Switch, form: Form) -> None:
    rng = random.Random(f"helped {form.outcome}")
    counts = outcome(switch, lambda: helped(form, HIDDEN, rng), form, HELPED)
    opened = 2.0**-HIDDEN
    assert at_least(HELPED, opened) <= HELPED - counts[form.refused] <= at_most(HELPED, opened)
    to_server = opened * SERVERS / SIDS
    assert at_least(HELPED, to_server) <= counts.get(form.outcome, 0) <= at_most(HELPED, to_server)
    print(f"{form.outcome}: of {HELPED} with {HIDDEN} zeros to guess, {counts}")


@FORMS
@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 5, 8])
def test_each_check_bit_halves_the_accepted_forgeries(switch: Switch, form: Form, zeros: int) -> None:
    rng = random.Random(f"bits {form.outcome} {zeros}")
    counts = outcome(switch, lambda: helped(form, zeros, rng), form, FEW)
    opened = FEW - counts.get(form.refused, 0)
    assert at_least(FEW, 2.0**-zeros) <= opened <= at_most(FEW, 2.0**-zeros)
    print(f"{form.outcome}: of {FEW} with {zeros} check bits to guess, {opened} unsealed")


@FORMS
@pytest.mark.parametrize("key", [REMOVED, PREVIOUS, NEWEST], ids=["removed", "previous", "newest"])
def test_removed_key_is_rejected(switch: Switch, form: Form, key: CookieKey) -> None:
    """Replay words sealed for every server. The newest key has the removed key's epoch, so it decrypts those to random
    bits.
    """
    nonces = random.Random("replayed")
    sids = iter(range(SERVERS))

    def words() -> tuple[CookieKey, int]:
        nonce = nonces.randrange(1, 1 << 24) << 20 if form.nonce else 0
        return key, key._seal_word(form.clear(key), next(sids) << 44 | nonce)

    counts = outcome(switch, words, form, SERVERS)
    assert counts == {form.refused if key is REMOVED else form.outcome: SERVERS}
