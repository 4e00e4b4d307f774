# SPDX-License-Identifier: Apache-2.0
"""The live view of a running controller: samples, packet traces, and sites."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from frontage.config import Config
from frontage.p4.errors import UnreachableError
from frontage.p4.packet_trace import capture
from frontage.service.agents import Agents
from frontage.service.delegation import endpoints
from frontage.service.fleet import Fleet
from frontage.service.probe import Segment, frame
from frontage.service.samples import Samples, describe_overview, describe_servers
from frontage.service.sites import describe_sites


class Live:
    """The live view of a fleet."""

    def __init__(self, fleet: Fleet, config: Callable[[], Config], health: Callable[[], Mapping[str, str]]):
        """``config`` returns the file's configuration with discovered servers, and ``health`` the health of servers by name."""
        self._fleet = fleet
        self._config = config
        self._health = health
        self._samples = Samples(fleet)
        self._agents = Agents()

    async def sample(self) -> dict[str, Any]:
        """Return the totals of each VIP, and the state of the switches."""
        return describe_overview(await self._samples.current(), self._fleet, self._config(), self._health())

    async def sample_servers(self, vip: str) -> dict[str, Any]:
        """Return the servers of a VIP."""
        # The agents are read while the switches are, and their readings are not waited for.
        self._agents.refresh(endpoints(self._config(), vip))
        sample = await self._samples.current()
        return describe_servers(sample, self._config(), vip, self._health(), self._agents.reading)

    async def capture(
        self, device: str, fields: Mapping[str, int], seconds: float, segment: Segment | None
    ) -> list[dict[str, Any]]:
        """Return the trace of one packet through a switch: the first one with these header fields, or a segment to inject.

        Raises ProbeError and SwitchError.
        """
        controller = self._fleet.controllers[device]
        session = controller.session
        if session is None:
            raise UnreachableError(f"{device}: {controller.health.error or 'not connected'}")
        injected = None if segment is None else frame(controller.config, segment)
        return await capture(session.channel, session.device_id, fields, seconds, injected)

    def sites(self, out: Collection[int]) -> dict[str, Any]:
        """Return the sites and the end-user mapping. ``out`` are the ids of the sites whose dispatchers do not answer."""
        return describe_sites(self._config(), self._fleet.mapping, out)
