"""A testbed with real servers that has each page twice: `/direct`, of which they send their pictures themselves, and
`/proxied`, of which the balancer fetches the same pictures from the same servers. Nothing else is different.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.quic import LOG_DELAY
from frontage_testbed.nodes import NodeError

from .clients import SCREEN
from .pictures import Object, write

FORMS = ("direct", "proxied")
"""How the page's pictures come: first part of their paths."""

FILES = '[[route]]\npath = "/{form}"\ndirectory = "../objects"\n'
DIRECT = '[[route]]\npath = "/direct/{name}"\nreal_servers = {{ policy = "round-robin", names = ["{name}"] }}\n'
PROXIED = '[[route]]\npath = "/proxied/{name}"\norigin = "{origin}"\n'


class PageTestbed(QdsrTestbed):
    """A context manager: inside it, the VIP has the page in both forms."""

    own_routes = "\n".join(FILES.format(form=form) for form in FORMS)

    def _balancer_routes(self) -> str:
        routes = [self.own_routes]
        for server in self.real_servers:
            routes += [DIRECT.format(name=server.name), PROXIED.format(name=server.name, origin=self.origin(server))]
        return "\n".join(routes)

    def offer(self, pictures: Sequence[Object]) -> None:
        """Have the servers serve the page."""
        write(self.scratch / "objects", pictures)

    def senders(self, skip: int, paths: set[str]) -> dict[str, str]:
        """Who sent what was asked for, by its path: the server's name, as the balancer's log says in what follows its
        first `skip` lines.

        Raises NodeError if the log has not all `paths` in time.
        """
        deadline = time.monotonic() + LOG_DELAY
        while True:
            sent = {line["path"]: line.get("server", self.balancer.name) for line in self.log(skip)}
            if paths <= sent.keys():
                return sent
            if time.monotonic() > deadline:
                raise NodeError(f"the balancer's log lacks {', '.join(sorted(paths - sent.keys()))}")
            time.sleep(0.05)

    def screen(self) -> bytes | None:
        """The page as a browser showed it, as WebP, if one has."""
        shown = sorted(self.scratch.glob(f"load-*/{SCREEN}"))
        return shown[0].read_bytes() if shown else None

    def wire(self) -> dict[str, int]:
        """Bytes of packets that the switch has passed to clients from each server: the balancer first."""
        status = self.status()
        down = {part: sum(s["down"]["bytes"] for s in status[part]) for part in ("servers", "real_servers")}
        # The real servers' are in the balancer's name.
        sent = {self.balancer.name: down["servers"] - down["real_servers"]}
        for server in self.real_servers:
            sent[server.name] = sum(s["down"]["bytes"] for s in status["real_servers"] if s["port"] == server.name)
        return sent
