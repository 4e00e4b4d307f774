# SPDX-License-Identifier: Apache-2.0
"""The effect of health on the configuration: a failed server is one that drains."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from frontage.config import Config
from frontage.config.health import FailMode


def effective(config: Config, failed: AbstractSet[str]) -> Config:
    """Return ``config`` with the ``failed`` servers, by name, draining.

    A VIP whose servers have all failed keeps them if its fail mode is open. Without a change, the result is ``config`` itself.
    """
    modes = {vip.name: vip.health.fail_mode for vip in config.vips if vip.health is not None}
    marked = {server.name for server in config.servers if server.name in failed and server.vip in modes and server.active}
    healthy = {server.vip for server in config.servers if server.active and server.name not in marked}
    kept_open = {vip for vip, mode in modes.items() if mode is FailMode.OPEN and vip not in healthy}
    servers = tuple(
        server.failed() if server.name in marked and server.vip not in kept_open else server for server in config.servers
    )
    if all(a is b for a, b in zip(servers, config.servers, strict=True)):
        return config
    return config.model_copy(update={"servers": servers})
