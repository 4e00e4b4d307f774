"""Cookie addresses and connection ids that no installed key sealed: as many reach a server as docs/cookie.md says,
which is none of a million.

That the switch looks at each zero that a form demands is seen where a forger is helped: all are given to him but four,
so that one packet of 16 opens. Were one not looked at, more would.
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

pytestmark = pytest.mark.slow

MILLION = 1_000_000
HELPED = 200_000
HIDDEN = 4
"""Zeros that a helped forger must guess."""
SERVERS = 4096
"""As many as the switch holds."""
SIDS = 1 << 16
CLIENT, VIP, PREFIX, PORT = "2001:db8:c::2", "2001:db8:f::20", "2001:db8:c00c:1e::", 443
MACS = bytes.fromhex("02000000000102000000000286dd")
REMOVED, PREVIOUS, NEWEST = (CookieKey(id, bytes([id] * 32)) for id in (4, 5, 6))


@dataclass(frozen=True)
class Form:
    """One of the two things that a client echoes, as a template of its frame and the 64 bits that are sealed in it."""

    version: int
    zeros: tuple[int, ...]
    """Those of the 60 bits that must be zero."""
    nonce: bool
    """Whether bits 20 to 43 must not all be zero."""
    refused: str
    """Why a forged one is dropped."""
    outcome: str
    """How a server is found by one."""

    def frame(self, key: CookieKey, word: int) -> bytes:
        """A packet of 60 bytes behind UDP. Its checksum is not checked on the way, only changed along."""
        if self.nonce:
            to, cid = socket.inet_pton(socket.AF_INET6, VIP), struct.pack(">BQ", key.epoch << 5 | 11, word) + b"end"
        else:
            to, cid = socket.inet_pton(socket.AF_INET6, PREFIX)[:8] + word.to_bytes(8, "big"), b"\xff" * 12
        head = struct.pack(">IHBB", 6 << 28, 68, 17, 64) + socket.inet_pton(socket.AF_INET6, CLIENT) + to
        return MACS + head + struct.pack(">HHHH", 40_000, PORT, 68, 0xBEEF) + b"\x40" + cid + bytes(47)

    def clear(self, key: CookieKey) -> int:
        """The four bits that anyone can see."""
        return self.version << 2 | key.epoch


ADDRESS = Form(1, tuple(range(44)), False, "cookie-forged", "retrieved-address")
ID = Form(2, tuple(range(20)), True, "quic-no-connection", "retrieved-cid")
FORMS = pytest.mark.parametrize("form", [ADDRESS, ID], ids=["address", "id"])


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Switch:
    """Of one IPv6 service with as many servers as there may be, between two rotations."""
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
    """What became of so many; and every packet that was not dropped went to a server, and no other did."""
    before = switch.counts()
    sent = 0
    for _ in range(packets):
        sent += len(switch.pipeline.send(form.frame(*words()), port=1))
    found = {name: count - before.get(name, 0) for name, count in switch.counts().items()}
    found = {name: count for name, count in found.items() if count}
    assert sum(found.values()) == packets
    assert sent == found.get(form.outcome, 0)
    assert found.keys() <= {form.refused, form.outcome, "server-gone"}
    return found


def at_most(packets: int, share: float) -> int:
    """As many as chance gives more than once in a million runs, by Chernoff's bound of the binomial."""
    mean, count = packets * share, math.ceil(packets * share)
    while count <= mean or count * math.log(count / mean) - count + mean < math.log(1e6):
        count += 1
    return count


def at_least(packets: int, share: float) -> int:
    """The same from below."""
    return math.floor(packets * share - math.sqrt(2 * math.log(1e6) * packets * share))


@FORMS
def test_random_bits_reach_no_server(switch: Switch, form: Form) -> None:
    rng = random.Random(f"forged {form.outcome}")

    def words() -> tuple[CookieKey, int]:
        key = NEWEST if rng.getrandbits(1) else PREVIOUS
        return key, form.clear(key) << 60 | rng.getrandbits(60)

    found = outcome(switch, words, form, MILLION)
    opened = 2.0 ** -len(form.zeros)
    assert found.get(form.outcome, 0) <= at_most(MILLION, opened * SERVERS / SIDS)
    assert MILLION - found[form.refused] <= at_most(MILLION, opened)
    print(f"{form.outcome}: of {MILLION} forged, {found}")


@FORMS
def test_each_zero_counts(switch: Switch, form: Form) -> None:
    rng = random.Random(f"helped {form.outcome}")

    def words() -> tuple[CookieKey, int]:
        key = NEWEST if rng.getrandbits(1) else PREVIOUS
        plain = rng.getrandbits(16) << 44
        if form.nonce:
            plain |= rng.randrange(1, 1 << 24) << 20
        for bit in rng.sample(form.zeros, HIDDEN):
            plain |= rng.getrandbits(1) << bit
        return key, key._seal_word(form.clear(key), plain)

    found = outcome(switch, words, form, HELPED)
    opened = 2.0**-HIDDEN
    assert at_least(HELPED, opened) <= HELPED - found[form.refused] <= at_most(HELPED, opened)
    here = opened * SERVERS / SIDS
    assert at_least(HELPED, here) <= found.get(form.outcome, 0) <= at_most(HELPED, here)
    print(f"{form.outcome}: of {HELPED} with {HIDDEN} zeros to guess, {found}")


@FORMS
@pytest.mark.parametrize("key", [REMOVED, PREVIOUS, NEWEST], ids=["removed", "previous", "newest"])
def test_what_a_removed_key_sealed_is_forged(switch: Switch, form: Form, key: CookieKey) -> None:
    """Sealed for every server, and replayed. The newest key has the removed one's epoch: it opens them as it does
    random bits.
    """
    nonces = random.Random("replayed")
    sids = iter(range(SERVERS))

    def words() -> tuple[CookieKey, int]:
        nonce = nonces.randrange(1, 1 << 24) << 20 if form.nonce else 0
        return key, key._seal_word(form.clear(key), next(sids) << 44 | nonce)

    found = outcome(switch, words, form, SERVERS)
    assert found == {form.refused if key is REMOVED else form.outcome: SERVERS}
