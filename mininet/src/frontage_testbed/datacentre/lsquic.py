# SPDX-License-Identifier: Apache-2.0
"""A testbed whose QUIC servers are `frontage-lsquic`."""

from __future__ import annotations

from pathlib import Path

from .addresses import COOKIE_PREFIX, QUIC_PORT, QUIC_SERVER_PORT, ServerAddresses
from .configuration import LOOK_AHEAD
from .edge import EdgeSwitch
from .quic import QuicTestbed
from .quicagents import METRICS
from .settings import Settings


class LsquicTestbed(QuicTestbed):
    """A testbed that answers HTTP/3 requests with `frontage-lsquic`, inside its context."""

    active_flows = "frontage_lsquic_active_flows"

    def __init__(
        self, settings: Settings, scratch: Path, edge: EdgeSwitch, server: Path, client: Path, *, pace: int | None = None
    ) -> None:
        """`pace` limits each response to this number of bytes per second."""
        super().__init__(settings, scratch, edge, server, client)
        self._pace = pace

    def _start_balancer(self, server: ServerAddresses) -> None:
        self._route(server)
        self._processes.append(self._launch(server, self._command(server)))

    def _command(self, server: ServerAddresses) -> list[str | Path]:
        folder = self.key_file.parent
        options: dict[str, str | Path | int] = {
            "certificate": folder / "certificate.pem",
            "private-key": folder / "key.pem",
            "directory": self.scratch / "objects",
            "metrics": "{}:{}".format(*METRICS),
            "access-log": folder / f"{server.name}.json",
            "keys": self.key_file,
            "sid": server.sid6,
            "sid-v4": server.sid4,
            "server-prefix": server.quic_prefix.removesuffix("/64"),
            "cookie-prefix": COOKIE_PREFIX.removesuffix("/64"),
            "port": QUIC_PORT,
            "bandwidth": self.settings.server_rate,
            "look-ahead": LOOK_AHEAD,
        }
        if self._pace is not None:
            options["pace"] = self._pace
        listen = [f"--listen={host}:{QUIC_SERVER_PORT}" for host in ("[::]", "0.0.0.0")]
        return [self._server, *listen, *(f"--{name}={value}" for name, value in options.items())]
