"""HTTP/3 clients, most of which others wrote, and what they see of their connections."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from frontage_demo.addresses import QUIC_PORT, QUIC_VIP6
from frontage_demo.capture import Capture
from frontage_demo.deployment import REPOSITORY
from frontage_demo.nodes import Namespace

PYTHON = REPOSITORY / "build" / "quic-clients" / "bin" / "python"
SCRIPTS = REPOSITORY / "host-agents" / "cclb7-quic" / "tests" / "clients"
OURS = Path(os.environ.get("FRONTAGE_H3_CLIENT") or REPOSITORY / "target" / "release" / "frontage-h3-client")


@dataclass(frozen=True)
class Client:
    """A client, and whether it follows the preferred address (RFC 9000, section 9.6)."""

    name: str
    follows: bool
    vip: str = QUIC_VIP6
    options: tuple[str, ...] = ()
    """Of its command line."""

    @property
    def missing(self) -> str | None:
        """What to do where it is not installed."""
        if self.name == "gtlsclient":
            return None if shutil.which(self.name) else "apt-get install ngtcp2-client"
        if self.name == "frontage-h3-client":
            return None if OURS.exists() else "cargo build --release -p frontage-h3-client"
        return None if PYTHON.exists() else "make build/stamps/quic-clients"

    def command(self, size: int, folder: Path) -> list[str | Path]:
        """Download the object of this size to `folder/SIZE`."""
        host = f"[{self.vip}]" if ":" in self.vip else self.vip
        url = f"https://{host}:{QUIC_PORT}/{size}"
        if self.name == "gtlsclient":
            options = ["--quiet", "--exit-on-all-streams-close", f"--download={folder}", *self.options]
            return ["gtlsclient", *options, self.vip, str(QUIC_PORT), url]
        if self.name == "frontage-h3-client":
            return [OURS, "get", url, "--insecure", f"--output={folder}", *self.options]
        return [PYTHON, SCRIPTS / f"get_{self.name}.py", folder / str(size), url]


class Download:
    """A client's download on a host of its own, and a capture of what reaches that host from now on."""

    def __init__(self, client: Client, host: Namespace, size: int, folder: Path) -> None:
        self.client = client
        self._host = host
        self._size = size
        self._folder = folder
        folder.mkdir(parents=True)
        self._capture = Capture(host, folder)
        self._before = self.received()

    def begin(self) -> None:
        """Start the client."""
        with (self._folder / "client.log").open("wb") as log:
            self._process = self._host.spawn(self.client.command(self._size, self._folder), stdout=log, stderr=log)

    def received(self) -> int:
        """Bytes that have reached the host."""
        return int(self._host.run(["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).stdout)

    def has_received(self, count: int) -> bool:
        """Whether so many bytes have reached the host since the capture."""
        return self.received() - self._before >= count

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def finish(self, objects: Path) -> dict[str, object]:
        """Wait for the end; what came of it."""
        status = self._process.wait()
        self._capture.end()
        sources = defaultdict(set)
        for datagram in self._capture.datagrams():
            if not datagram.up:
                sources[datagram.local[1]].add(datagram.remote)
        saved = self._folder / str(self._size)
        return {
            "client": self.client.name,
            "vip": self.client.vip,
            "status": status,
            "right": saved.exists() and saved.read_bytes() == (objects / str(self._size)).read_bytes(),
            "log": (self._folder / "client.log").read_text()[-2000:],
            # Of each port of the client's, that is, of each connection.
            "sources": {port: sorted(addresses) for port, addresses in sources.items()},
        }
