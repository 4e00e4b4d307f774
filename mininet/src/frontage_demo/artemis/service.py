# SPDX-License-Identifier: Apache-2.0
"""The interface of testbeds with sites for clients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from frontage_testbed.nodes import Namespace
from frontage_testbed.wan.addresses import SiteAddresses

from .site import Programs


class ServiceTestbed(Protocol):
    """A testbed whose sites serve the service address."""

    @property
    def programs(self) -> Programs:
        """The programs, among them the client."""

    @property
    def directory(self) -> Path:
        """The directory with the folder `objects`."""

    @property
    def service_address(self) -> str:
        """The service address of the zone."""

    @property
    def sites(self) -> Sequence[SiteAddresses]:
        """All sites."""

    def client(self, name: str) -> Namespace:
        """Return a client's host."""
