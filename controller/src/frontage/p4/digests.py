# SPDX-License-Identifier: Apache-2.0
"""Digests: messages of the P4 program to the controller (P4Runtime, section 6.4.7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

MAX_MESSAGES = 65536
"""Messages kept until they are taken. Further lists are dropped; the switch resends them, as they are not acknowledged."""
MAX_SIGNALLED_MESSAGES = 4096
"""The same for digests whose arrival is signalled. Lists beyond that are dropped, but acknowledged: a flood must not make the
switch hold back later messages, which may be equal to dropped ones."""
_LIST_SIZE = 1000
_MAX_DELAY_NS = 10_000_000
"""Time for which a switch may hold a message back to send it with others."""
_ACK_TIMEOUT_NS = 600 * 10**9
"""Time after which the switch resends messages without an acknowledgment."""


@dataclass(slots=True)
class DigestMessages:
    """Received messages of one digest, and the lists that contained them."""

    messages: list[tuple[int, ...]] = field(default_factory=list)
    """The fields of each message."""
    lists: list[tuple[int, int]] = field(default_factory=list)
    """(digest id, list id)."""

    def add(self, found: p4r.DigestList, *, is_signalled: bool = False) -> None:
        """Add the messages of a list, or drop them if there are too many."""
        is_full = len(self.messages) + len(found.data) > (MAX_SIGNALLED_MESSAGES if is_signalled else MAX_MESSAGES)
        if is_signalled or not is_full:
            self.lists.append((found.digest_id, found.list_id))
        if is_full:
            return
        for data in found.data:
            fields = (member.bitstring for member in data.struct.members)
            self.messages.append(tuple(int.from_bytes(field, "big") for field in fields))


def entry(digest_id: int) -> p4r.DigestEntry:
    """Return the entry that enables a digest."""
    config = p4r.DigestEntry.Config(max_timeout_ns=_MAX_DELAY_NS, max_list_size=_LIST_SIZE, ack_timeout_ns=_ACK_TIMEOUT_NS)
    return p4r.DigestEntry(digest_id=digest_id, config=config)
