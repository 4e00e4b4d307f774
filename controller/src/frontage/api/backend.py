# SPDX-License-Identifier: Apache-2.0
"""The backend of the API: the running controller (`frontage.service.daemon`), or the file alone (`offline`)."""

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
        """The way to the leader of several controllers; None for a single one."""
        ...

    @property
    def key_holders(self) -> KeyHolders | None:
        """The servers that fetch keys; None if no controller is running."""
        ...

    @property
    def config(self) -> Config:
        """The configuration of the file, as it was last valid, with discovered servers. Raises ConfigError."""
        ...

    async def status(self) -> dict[str, Any]:
        """Return the status of the fleet. Raises SwitchError and ReconcileError."""
        ...

    def routes(self, address: IPAddress) -> list[dict[str, Any]]:
        """Return where each switch sends packets to an address. Raises UnavailableError."""
        ...

    async def preview(self, config: Config) -> Mapping[str, Difference]:
        """Return what ``config`` would write, by name of the switch, without those that cannot be read.

        Raises SwitchError and ReconcileError.
        """
        ...

    async def sample(self) -> dict[str, Any]:
        """Return the sums of VIPs, and the state of switches. Raises UnavailableError."""
        ...

    async def sample_servers(self, vip: str) -> dict[str, Any]:
        """Return a sample of the servers of a VIP. Raises UnavailableError."""
        ...

    async def capture(
        self, device: str, fields: Mapping[str, int], seconds: float, segment: Segment | None
    ) -> list[dict[str, Any]]:
        """Return the way of one packet through a switch. Raises ProbeError, SwitchError and UnavailableError."""
        ...

    async def sites(self) -> dict[str, Any]:
        """Return the sites, the end-user mapping, and the placement of services. Raises UnavailableError."""
        ...

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the objects whose changes are events, by kind and name."""
        ...
