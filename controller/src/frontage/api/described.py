# SPDX-License-Identifier: Apache-2.0
"""The objects of a configuration, as requests read them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontage.config import Config
from frontage.config.devices import DeviceState
from frontage.service.status import describe_config

Objects = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Described:
    """The objects of one configuration, as JSON values."""

    vips: Objects
    servers: Objects
    devices: Objects
    keys: Objects


def describe(config: Config) -> Described:
    """Return the objects of a configuration."""
    found = describe_config(config)
    return Described(found["vips"], found["servers"], _devices(config), found["keys"])


class Descriptions:
    """Describes configurations, and caches the last one, because a large one takes a tenth of a second."""

    def __init__(self) -> None:
        self._last: tuple[Config, Described] | None = None
        self._lock = threading.Lock()

    def of(self, config: Config) -> Described:
        """Return the objects of a configuration. Concurrent threads wait for the first one."""
        with self._lock:
            if self._last is None or self._last[0] is not config:
                self._last = config, describe(config)
            return self._last[1]


def _devices(config: Config) -> Objects:
    draining = config.draining_switches
    return [
        {
            "name": own.device.name,
            "address": own.device.address,
            "device_id": own.device.device_id,
            "state": str(DeviceState.DRAINING if own.device.name in draining else DeviceState.ACTIVE),
            "zone": own.device.zone,
        }
        for own in config.switches
    ]
