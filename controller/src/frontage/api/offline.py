# SPDX-License-Identifier: Apache-2.0
"""The configuration file while no controller runs: changes only edit it, and the status comes from the switches themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frontage.api.forward import Forwarder
from frontage.api.problems import UnavailableError
from frontage.config import Config, load
from frontage.fields import IPAddress
from frontage.p4.credentials import credentials_of
from frontage.p4.entries import Difference
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import Pipeline, PipelineError
from frontage.p4.session import Session
from frontage.service.changes import Changes
from frontage.service.controller import CONNECT_TIMEOUT
from frontage.service.key_holders import KeyHolders
from frontage.service.probe import Segment
from frontage.service.status import describe_config, merge, read_status
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import plan


class Offline:
    """The backend while no controller runs."""

    def __init__(self, file: Path):
        self.changes = Changes(file, self._install)
        self.forwarder: Forwarder | None = None
        self.key_holders: KeyHolders | None = None

    @property
    def config(self) -> Config:
        """The configuration. Raises ConfigError."""
        return load(self.changes.file)

    async def status(self) -> dict[str, Any]:
        """Return the status, except for the controllers' own state."""
        config = self.config
        switches = config.switches
        found = await asyncio.gather(*(_read_switch(own) for own in switches))
        status = merge(config, {own.device.name: status for own, status in zip(switches, found, strict=True)})
        status["controller"]["config_error"] = None
        return status

    def routes(self, _address: IPAddress) -> list[dict[str, Any]]:
        """Raise UnavailableError: only the controller knows learned routes."""
        raise self._unavailable()

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(f"no controller is running: run `frontage up {self.changes.file}`")

    async def sample(self) -> dict[str, Any]:
        """Raise UnavailableError: only a controller reads switches continuously."""
        raise self._unavailable()

    async def sample_servers(self, _vip: str) -> dict[str, Any]:
        """Raise UnavailableError."""
        raise self._unavailable()

    async def capture(
        self, _device: str, _fields: Mapping[str, int], _seconds: float, _segment: Segment | None
    ) -> list[dict[str, Any]]:
        """Raise UnavailableError."""
        raise self._unavailable()

    async def sites(self) -> dict[str, Any]:
        """Raise UnavailableError: the controller computes the mapping."""
        raise self._unavailable()

    async def _install(self) -> list[str] | None:
        return None

    async def preview(self, config: Config) -> Mapping[str, Difference]:
        """Return the writes that ``config`` would cause, for the reachable switches that run its program. Raises ReconcileError."""
        result = {}
        for own in config.switches:
            try:
                pipeline = Pipeline.load(own.device.pipeline.p4info, own.device.pipeline.json_file)
                async with Session(own.device.address, own.device.device_id, credentials_of(own.device)) as session:
                    await session.connect(CONNECT_TIMEOUT)
                    if await session.installed_pipeline() == pipeline.cookie:
                        result[own.device.name] = (await plan(session, pipeline.schema, own)).difference
            except (SwitchError, PipelineError):
                continue
        return result

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return nothing: events need a running controller."""
        return {}


async def _read_switch(config: Config) -> dict[str, Any]:
    error = None
    status = describe_config(config)
    device = config.device
    try:
        pipeline = Pipeline.load(device.pipeline.p4info, device.pipeline.json_file)
        async with Session(device.address, device.device_id, credentials_of(device)) as session:
            await session.connect(CONNECT_TIMEOUT)
            cookie = await session.installed_pipeline()
            if cookie == pipeline.cookie:
                status = await read_status(session, pipeline.schema, config)
            else:
                error = "the switch has no pipeline" if cookie is None else "the switch runs another program"
    except (SwitchError, PipelineError, ReconcileError) as problem:
        error = str(problem)
    return status | {"controller": {"phase": "not running", "role": None, "error": error}}
