# SPDX-License-Identifier: Apache-2.0
"""The age of the cookie keys, from the journal."""

from __future__ import annotations

from typing import Any

from frontage.changes.journal import ChangeJournal
from frontage.config import Config


def key_ages(config: Config, journal: ChangeJournal) -> list[dict[str, Any]]:
    """Return the keys, with the time of the rotation that added each.

    A key that was in the first configuration has the time of the journal's first entry, and is at least that old.
    """
    entries = journal.entries()
    times = [entry.time for entry in entries[:1]]
    times += [entry.time for entry in entries if entry.verb == "rotate-key" and entry.result is not None]
    newest = config.cookie_keys[-1].id
    keys = []
    for age, key in enumerate(reversed(config.cookie_keys)):
        since = times[-1 - age] if age < len(times) else None
        keys.append({"id": key.id, "epoch": key.epoch, "seals": key.id == newest, "since": since})
    return keys[::-1]
