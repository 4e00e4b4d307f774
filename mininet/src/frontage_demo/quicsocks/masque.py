# SPDX-License-Identifier: Apache-2.0
"""MASQUE (CONNECT-UDP, RFC 9298) beside the provider's resolver, to compare with QuicSocks: masque-go's proxy, and a client."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from frontage_testbed.nodes import Namespace, NodeError
from frontage_testbed.programs import REPOSITORY

from . import files
from .topology import ISP_ADDRESS

FOLDER = REPOSITORY / "build" / "masque"
PORT = 4433
TEMPLATE = f"https://[{ISP_ADDRESS}]:{PORT}/masque?h={{target_host}}&p={{target_port}}"


@dataclass(frozen=True)
class Masque:
    """Paths of the proxy and of the client that measures."""

    proxy: Path
    load: Path

    @classmethod
    def of(cls, folder: Path) -> Masque:
        """Find the programs in `folder`. Raises NodeError if one is missing."""
        for name in ("proxy", "load"):
            if not (folder / name).is_file():
                raise NodeError(f"{folder / name}: file not found: run `make build/masque/proxy`")
        return cls(folder / "proxy", folder / "load")

    def serve(self, folder: Path) -> list[str | Path]:
        """Return the command of the proxy. It resolves names with the system's resolver, here the provider's."""
        (folder / "resolv.conf").write_text("nameserver ::1\n")
        command = [self.proxy, "-t", TEMPLATE, "-b", f"[::]:{PORT}", "-c", "certificate.pem", "-k", "key.pem"]
        shell = f"mount --bind resolv.conf /etc/resolv.conf && exec {shlex.join(map(str, command))}"
        return ["unshare", "--mount", "sh", "-c", shell]

    def run(self, host: Namespace, folder: Path, names: str, retry: bool, handshakes: int, *, cold: bool) -> str:
        """Open connections to servers of these names, one after the other. Return the client's report in JSON."""
        command: list[str | Path] = [self.load, "-template", TEMPLATE, "-ca", folder / "certificate.pem"]
        command += ["-names", f"{names}.{files.ZONE_NAME}", "-port", str(files.PORTS[retry])]
        command += ["-handshakes", str(handshakes), *(["-cold"] if cold else [])]
        return host.run(command).stdout
