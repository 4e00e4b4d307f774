"""One download on a host of the world, what is done to that host meanwhile, and what its network saw."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path

from frontage_demo.addresses import COOKIE_PREFIX, QUIC_PORT, ClientAddresses
from frontage_demo.capture import Capture, Datagram
from frontage_demo.nodes import Namespace

REBINDING = """table inet rebinding-{old} {{
    chain out {{ type filter hook postrouting priority 0; udp sport {old} udp dport {service} udp sport set {new}; }}
    chain in {{ type filter hook prerouting priority -300; udp sport {service} udp dport {new} udp dport set {old}; }}
}}
"""
"""What a NAT does that gives a connection another port. What is on its way to the one before still comes through: a client that
has sent all its acknowledgments has no reason to send anything, so that nobody could tell its server of the port.
"""

BLOCK = f"""table ip6 block {{
    chain forward {{ type filter hook forward priority 0; ip6 daddr {COOKIE_PREFIX} drop; }}
}}
"""


@dataclass(frozen=True)
class Done:
    """What came of a download."""

    status: int | None
    """The client's exit status; None if it did not end in time."""
    right: bool
    """Whether the object arrived whole."""
    log: str
    """The end of what the client said."""
    seen: list[Datagram]

    @property
    def whole(self) -> bool:
        """Whether the client is content, and the object right."""
        return self.status == 0 and self.right


class Download:
    """A client at work, and a capture of what its host sends to the service and is sent by it."""

    def __init__(self, command: list[str], host: Namespace, folder: Path, limit: float) -> None:
        self._host = host
        self._folder = folder
        self._capture = Capture(host, folder)
        self._before = self._received()
        with (folder / "client.log").open("wb") as log:
            self._process = host.spawn(command, stdout=log, stderr=log)
        self._deadline = time.monotonic() + limit

    def _received(self) -> int:
        return int(self._host.run(["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).stdout)

    def wait_for(self, count: int) -> bool:
        """Wait until so many bytes have reached the host; whether the client is still at work then."""
        while self._received() - self._before < count:
            if self._process.poll() is not None or time.monotonic() > self._deadline:
                return False
            time.sleep(0.01)
        return self._process.poll() is None

    def rebind(self) -> None:
        """Have the network know the client by other ports."""
        for port in sorted({datagram.local[1] for datagram in self._capture.datagrams()}):
            rules = REBINDING.format(service=QUIC_PORT, old=port, new=port ^ 1)
            self._host.run(["nft", "-f", "-"], input=rules)

    def readdress(self, client: ClientAddresses) -> None:
        """Have the host prefer another address of its network, and lose the one that it had after as many bytes again."""
        old = ip_interface(f"{client.address6}/64")
        self._host.run(["ip", "addr", "add", f"{old.ip + 1}/64", "dev", "eth0", "nodad"])
        self._host.run(["ip", "addr", "change", str(old), "dev", "eth0", "preferred_lft", "0"])
        self.wait_for(2 * (self._received() - self._before))
        self._host.run(["ip", "addr", "del", str(old), "dev", "eth0"])

    def finish(self, saved: Path, original: Path) -> Done:
        """Wait for the end, at most until its limit."""
        while self._process.poll() is None and time.monotonic() < self._deadline:
            time.sleep(0.05)
        status = self._process.poll()
        if status is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # `spawn` has given it a group of its own
            self._process.wait()
        self._capture.end()
        right = saved.exists() and saved.read_bytes() == original.read_bytes()
        log = (self._folder / "client.log").read_text(errors="replace")
        return Done(status, right, log[-2000:], self._capture.datagrams())


@contextmanager
def unreachable_cookies(router: Namespace) -> Iterator[None]:
    """Have a router let nothing through to cookie addresses."""
    router.run(["nft", "-f", "-"], input=BLOCK)
    yield
    router.run(["nft", "flush", "ruleset"])


def restore(host: Namespace, client: ClientAddresses) -> None:
    """Undo what was done to a host."""
    host.run(["nft", "flush", "ruleset"])
    if client.address6 not in host.run(["ip", "-6", "addr", "show", "dev", "eth0"]).stdout:
        host.run(["ip", "addr", "add", f"{client.address6}/64", "dev", "eth0", "nodad"])
        host.run(["ip", "addr", "del", f"{ip_interface(client.address6).ip + 1}/64", "dev", "eth0"])
