# SPDX-License-Identifier: Apache-2.0
"""The backend of the API: the running controller (`frontage.service.daemon`), or only the configuration file (`offline`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from frontage.api.forward import Forwarder
from frontage.config import Config
from frontage.fields import IPAddress
from frontage.p4.entries import Difference
from frontage.service.changes import Changes
from frontage.service.key_holders import KeyHolders
from frontage.service.probe import Segment


class Backend(Protocol):
    """The state behind the API."""

    changes: Changes

    @property
    def forwarder(self) -> Forwarder | None:
        """Forwards requests to the leader of several controllers; None for a single controller."""
        ...

    @property
    def key_holders(self) -> KeyHolders | None:
        """The servers that fetch keys; None if no controller is running."""
        ...

    @property
    def config(self) -> Config:
        """The last valid configuration of the file, with discovered servers. Raises ConfigError."""
        ...

    async def status(self) -> dict[str, Any]:
        """Return the status of the fleet. Raises SwitchError and ReconcileError."""
        ...

    def routes(self, address: IPAddress) -> list[dict[str, Any]]:
        """Return where each switch sends packets to an address. Raises UnavailableError."""
        ...

    async def preview(self, config: Config) -> Mapping[str, Difference]:
        """Return the writes that ``config`` would cause, by name of the switch. Unreadable switches are left out.

        Raises SwitchError and ReconcileError.
        """
        ...

    async def sample(self) -> dict[str, Any]:
        """Return the totals of each VIP, and the state of the switches. Raises UnavailableError."""
        ...

    async def sample_servers(self, vip: str) -> dict[str, Any]:
        """Return a sample of the servers of a VIP. Raises UnavailableError."""
        ...

    async def capture(
        self, device: str, fields: Mapping[str, int], seconds: float, segment: Segment | None
    ) -> list[dict[str, Any]]:
        """Return the trace of one packet through a switch. Raises ProbeError, SwitchError and UnavailableError."""
        ...

    async def sites(self) -> dict[str, Any]:
        """Return the sites, the end-user mapping, and the placement of services. Raises UnavailableError."""
        ...

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the objects whose changes are events, by kind and name."""
        ...
