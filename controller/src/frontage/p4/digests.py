"""Digests: what the P4 program tells the controller by itself (P4Runtime, section 6.4.7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

from frontage.p4.p4info import Schema

MOST = 65536
"""Messages that are kept until they are taken; lists beyond are dropped, and come again since they are not acknowledged."""
_LIST_SIZE = 1000
_GATHER_NS = 100_000_000
"""For which a switch may hold a message back to send it with others."""
_ACK_TIMEOUT_NS = 600 * 10**9
"""After which it tells what was not acknowledged again."""


@dataclass(slots=True)
class Learned:
    """Messages, and the lists that they came in."""

    messages: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """By name of the digest, with its fields."""
    lists: list[tuple[int, int]] = field(default_factory=list)
    """(digest's id, list's id)."""

    def add(self, schema: Schema, found: p4r.DigestList) -> None:
        name = schema.digests_by_id.get(found.digest_id)
        if name is None or len(self.messages) + len(found.data) > MOST:
            return
        self.lists.append((found.digest_id, found.list_id))
        for data in found.data:
            fields = (member.bitstring for member in data.struct.members)
            self.messages.append((name, tuple(int.from_bytes(field, "big") for field in fields)))


def entry(digest_id: int) -> p4r.DigestEntry:
    """What turns the digest on."""
    config = p4r.DigestEntry.Config(max_timeout_ns=_GATHER_NS, max_list_size=_LIST_SIZE, ack_timeout_ns=_ACK_TIMEOUT_NS)
    return p4r.DigestEntry(digest_id=digest_id, config=config)
