# SPDX-License-Identifier: Apache-2.0
"""Recovery of health from the switch, so that a new primary controller does not use servers that have failed."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.p4info import Schema
from frontage.p4.session import Session
from frontage.state.allocation import Installed, vip_key
from frontage.state.blocks import choice
from frontage.state.blocks import vip as vip_block

_TABLES = (choice.MEMBER, vip_block.VIP4, vip_block.VIP6)


async def read_inactive(session: Session, schema: Schema, config: Config) -> set[str]:
    """Return the servers that are active in ``config`` but not in the switch. Raises SwitchError."""
    return inactive(Installed(await session.read_tables(schema, schema.present(_TABLES))), config)


def inactive(installed: Installed, config: Config) -> set[str]:
    """Return the servers that are active in ``config``, and installed, but not active there."""
    ids = {vip.name: installed.vips.get(vip_key(vip)) for vip in config.vips}
    result = set()
    for server in config.servers:
        vip_id = ids[server.vip]
        key = (vip_id, server.sid) if vip_id is not None else None
        if server.active and key in installed.slots and key not in installed.active:
            result.add(server.name)
    return result
