# SPDX-License-Identifier: Apache-2.0
"""The cookie keys of servers. Servers fetch keys themselves (`frontage follow-keys`), with their certificates.

A server seals cookies with the newest key that it has. It therefore gets a set of keys only when all switches have exactly this
set, because a switch drops packets that were sealed with a key it does not have. `KeyHolders` remembers which keys servers have
acknowledged, so that a rotation shows which servers are late.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric

from frontage.config import Config
from frontage.config.key_file import format_keys
from frontage.cookie import CookieKey
from frontage.service.controller import Controller

REAL_SERVER_LEAD = 10.0
"""Maximum time in seconds that a load balancer waits for its real servers, which must know the keys of its connections."""
POLL_INTERVAL = 0.25
"""Seconds between checks of the switches while a server waits for keys."""

Keys = tuple[CookieKey, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """The keys that all switches have."""

    keys: Keys

    @property
    def text(self) -> str:
        """The key file for servers."""
        return format_keys(self.keys)

    @property
    def version(self) -> str:
        """A value that identifies the keys and does not reveal them: they have at least 128 random bits."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    @property
    def newest(self) -> int:
        return self.keys[-1].id


class NotPublishedError(Exception):
    """It is unknown whether all switches have the same keys; the message lists the switches."""


def key_servers(config: Config) -> frozenset[str]:
    """Return the names of the servers that can have cookie keys."""
    return frozenset({server.name for server in config.servers} | {real_server.name for real_server in config.real_servers})


class KeyHolders:
    """The keys that all switches have, and the servers that have them."""

    def __init__(
        self,
        controllers: Callable[[], Mapping[str, Controller]],
        expected: Callable[[], Collection[str]],
        real_servers_of: Callable[[str], Collection[str]],
    ):
        """``expected`` returns the names of the servers that fetch keys, and ``real_servers_of`` the real servers of a server."""
        self._controllers = controllers
        self._expected = expected
        self._installed: dict[str, Keys] = {}
        """The last known keys of each switch."""
        self._published: Published | None = None
        self._previous: Published | None = None
        self._changed = float("-inf")
        """The time of the last publication."""
        self._real_servers_of = real_servers_of
        self._held: dict[str, int] = {}
        """The newest key of each server."""

    def published(self) -> Published:
        """Return the keys for servers: the last ones that all switches had in common. Raises NotPublishedError."""
        controllers = self._controllers()
        for name, controller in controllers.items():
            if (keys := controller.installed_keys) is not None:
                self._installed[name] = keys
        self._installed = {name: keys for name, keys in self._installed.items() if name in controllers}
        found = set(self._installed.values())
        if len(self._installed) == len(controllers) and len(found) == 1:
            published = Published(found.pop())
            if published != self._published:
                self._previous, self._published, self._changed = self._published, published, time.monotonic()
        if self._published is None:
            missing = ", ".join(controllers.keys() - self._installed.keys()) or "some switches have other keys"
            raise NotPublishedError(f"the keys of all switches are not known yet: {missing}: see `frontage status`")
        return self._published

    def published_to(self, server: str) -> Published:
        """Return the keys for a server. Its real servers get new keys first. Raises NotPublishedError."""
        found = self.published()
        late = set(self.late(found.newest)) & set(self._real_servers_of(server))
        if late and self._previous is not None and time.monotonic() - self._changed < REAL_SERVER_LEAD:
            return self._previous
        return found

    async def wait(self, server: str, version: str | None, seconds: float) -> Published:
        """Return the keys for a server once their version is not ``version``, or after ``seconds``. Raises NotPublishedError."""
        deadline = asyncio.get_running_loop().time() + seconds
        while (found := self.published_to(server)).version == version and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_INTERVAL)
        return found

    def acknowledge(self, server: str, newest: int) -> None:
        """Record that a server seals with the key ``newest``."""
        self._held[server] = newest

    @property
    def held(self) -> dict[str, int]:
        """The newest key that each server has acknowledged."""
        return dict(self._held)

    def adopt(self, held: Mapping[str, int]) -> None:
        """Adopt the acknowledgements that another controller has received."""
        self._held |= {name: max(key, self._held.get(name, 0)) for name, key in held.items()}

    def holders(self) -> dict[str, int | None]:
        """Return the newest key of each server that fetches keys; None if it has not acknowledged any."""
        return {name: self._held.get(name) for name in sorted(self._expected())}

    def late(self, newest: int) -> list[str]:
        """Return the servers that do not have the key ``newest`` yet."""
        return [name for name, held in self.holders().items() if held is None or held < newest]

    async def wait_for_all(self, newest: int, seconds: float) -> list[str]:
        """Wait until all servers have the key ``newest``. Return those that are late after ``seconds``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while (late := self.late(newest)) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_INTERVAL)
        return late

    def metrics(self) -> list[Metric]:
        """Return the newest key of each server."""
        gauge = GaugeMetricFamily(
            "frontage_server_key_id", "The newest cookie key that the server has acknowledged", labels=["server"]
        )
        for name, held in self.holders().items():
            gauge.add_metric([name], held or 0)
        return [gauge]
