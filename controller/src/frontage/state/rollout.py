# SPDX-License-Identifier: Apache-2.0
"""The intermediate configuration of a change of several switches.

Switches change one after the other. During that time, a packet may pass through a switch that has changed or one that has not.
The packets of a server may also pass through a switch that those of its clients do not pass. So each change is rolled out in two
rounds: first, every switch learns what the others may use after the change; then they use it.
"""

from __future__ import annotations

from collections.abc import Sequence

from frontage.config import Config
from frontage.config.vips import Server


def preparation(current: Sequence[Config], wanted: Config) -> Config:
    """Return the configuration for the first round, which is ``wanted`` if one round is enough.

    ``current`` are the configurations of the switches. Servers that a switch does not know yet get no new connections, and servers
    that are to be removed stay without new connections. The key that seals now seals until all switches have its successor.
    """
    updates: dict[str, object] = {}
    servers = _servers(current, wanted)
    if servers != wanted.servers:
        updates["servers"] = servers
    sealing = {config.cookie_keys[-1] for config in current}
    if len(sealing) == 1 and (key := sealing.pop()) in wanted.cookie_keys and key != wanted.cookie_keys[-1]:
        updates["cookie_keys"] = (*(other for other in wanted.cookie_keys if other != key), key)
    return wanted.model_copy(update=updates) if updates else wanted


def _servers(current: Sequence[Config], wanted: Config) -> tuple[Server, ...]:
    vips = {vip.name for vip in wanted.vips}
    known = [{server.identity for server in config.servers} for config in current]
    kept = {server.identity for server in wanted.servers}
    sids = {server.sid for server in wanted.servers}
    servers = [server if all(server.identity in one for one in known) else server.draining() for server in wanted.servers]
    for config in current:
        for server in config.servers:
            if server.identity not in kept and server.sid not in sids and server.vip in vips:
                kept.add(server.identity)
                sids.add(server.sid)
                servers.append(server.draining())
    return tuple(servers)
