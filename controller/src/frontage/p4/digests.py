# SPDX-License-Identifier: Apache-2.0
"""Digests: messages of the P4 program to the controller (P4Runtime, section 6.4.7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

from frontage.p4.p4info import Schema

MAX_MESSAGES = 65536
"""Messages kept until they are taken. Further lists are dropped; the switch resends them, as they are not acknowledged."""
_LIST_SIZE = 1000
_MAX_DELAY_NS = 100_000_000
"""Time for which a switch may hold a message back to send it with others."""
_ACK_TIMEOUT_NS = 600 * 10**9
"""Time after which the switch resends messages without an acknowledgment."""


@dataclass(slots=True)
class DigestMessages:
    """Received messages, and the lists that contained them."""

    messages: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """(name of the digest, its fields)."""
    lists: list[tuple[int, int]] = field(default_factory=list)
    """(digest id, list id)."""

    def add(self, schema: Schema, found: p4r.DigestList) -> None:
        """Add the messages of a list."""
        name = schema.digests_by_id.get(found.digest_id)
        if name is None or len(self.messages) + len(found.data) > MAX_MESSAGES:
            return
        self.lists.append((found.digest_id, found.list_id))
        for data in found.data:
            fields = (member.bitstring for member in data.struct.members)
            self.messages.append((name, tuple(int.from_bytes(field, "big") for field in fields)))


def entry(digest_id: int) -> p4r.DigestEntry:
    """Return the entry that enables a digest."""
    config = p4r.DigestEntry.Config(max_timeout_ns=_MAX_DELAY_NS, max_list_size=_LIST_SIZE, ack_timeout_ns=_ACK_TIMEOUT_NS)
    return p4r.DigestEntry(digest_id=digest_id, config=config)
