# SPDX-License-Identifier: Apache-2.0
"""HTTP/3 clients, most of which are third-party programs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.programs import REPOSITORY

PYTHON = REPOSITORY / "build" / "quic-clients" / "bin" / "python"
SCRIPTS = REPOSITORY / "host-agents" / "cclb7-quic" / "tests" / "clients"


@dataclass(frozen=True)
class Client:
    """A client, and whether it follows the preferred address (RFC 9000, section 9.6)."""

    name: str
    follows: bool
    vip: str = QUIC_VIP6
    options: tuple[str, ...] = ()
    """Additional command line options."""

    @property
    def missing(self) -> str | None:
        """How to install the client, if it is missing."""
        if self.name == "gtlsclient":
            return None if shutil.which(self.name) else "apt-get install ngtcp2-client"
        if self.name == "frontage-h3-client":
            return None  # every testbed requires it
        return None if PYTHON.exists() else "make build/stamps/quic-clients"

    def command(self, size: int, folder: Path, ours: Path, path: str = "") -> list[str | Path]:
        """Return the command that downloads the object of this size at `path` to `folder/SIZE`; `ours` is frontage-h3-client."""
        host = f"[{self.vip}]" if ":" in self.vip else self.vip
        url = f"https://{host}:{QUIC_PORT}{path}/{size}"
        if self.name == "gtlsclient":
            options = ["--quiet", "--exit-on-all-streams-close", f"--download={folder}", *self.options]
            return ["gtlsclient", *options, self.vip, str(QUIC_PORT), url]
        if self.name == "frontage-h3-client":
            return [ours, "get", url, "--insecure", f"--output={folder}", *self.options]
        return [PYTHON, SCRIPTS / f"get_{self.name}.py", folder / str(size), url]
