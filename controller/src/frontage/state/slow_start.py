# SPDX-License-Identifier: Apache-2.0
"""Slow start: the share of a server that becomes active grows in steps. Nothing here reads a clock: time is an argument, in seconds.

A server starts slowly if it recovers, is added, or no longer drains. Without another server of its VIP at its full weight, no
server could take the rest of its share, so it starts at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from frontage.config import Config
from frontage.config.vips import START_SHARES, Server

_Identity = tuple[object, ...]


class SlowStart:
    """The servers of one configuration after another that have become active lately."""

    def __init__(self, config: Config):
        """The active servers of ``config`` do not start slowly."""
        self._active = {server.identity for server in config.servers if server.active}
        self._began: dict[_Identity, float] = {}
        self._shares: dict[_Identity, tuple[Server, int]] = {}
        self._due: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether the share of a server grows now, so that `follow` returns another configuration."""
        return self._due is not None and now >= self._due

    def follow(self, config: Config, now: float) -> Config:
        """Return ``config`` with the shares that its servers have now; ``config`` itself if all have their full share."""
        windows = {vip.name: vip.slow_start for vip in config.vips if vip.slow_start}
        active = {server.identity: server for server in config.servers if server.active}
        began = {key: self._began.get(key, now) for key in active if key in self._began or key not in self._active}
        began = {key: at for key, at in began.items() if now < at + windows.get(active[key].vip, 0)}
        complete = {server.vip for key, server in active.items() if key not in began}
        self._began = {key: at for key, at in began.items() if active[key].vip in complete}
        self._active = set(active)
        self._shares, dues = {}, []
        for key, at in self._began.items():
            step = windows[active[key].vip] / len(START_SHARES)
            number = min(int((now - at) / step), len(START_SHARES) - 1)
            self._shares[key] = active[key], START_SHARES[number]
            dues.append(at + step * (number + 1))
        self._due = min(dues, default=None)
        if not self._shares:
            return config
        shares = {server.sid: share for server, share in self._shares.values()}
        servers = (server.with_share(shares[server.sid]) if server.sid in shares else server for server in config.servers)
        return config.model_copy(update={"servers": tuple(servers)})

    def metrics(self) -> Iterable[Metric]:
        """Yield the shares of servers in slow start."""
        shares = GaugeMetricFamily(
            "frontage_slow_start_share", "Part of its weight that counts for a server in slow start", labels=["vip", "server"]
        )
        for server, share in list(self._shares.values()):
            shares.add_metric([server.vip, server.name], share / 100)
        yield shares
