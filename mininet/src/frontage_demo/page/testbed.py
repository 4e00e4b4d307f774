# SPDX-License-Identifier: Apache-2.0
"""A testbed with real servers that serves the page in two forms.

Below `/direct` the real servers send their pictures themselves. Below `/proxied` the balancer fetches the same pictures
from the same servers. Everything else is equal.
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
"""Forms of the page: the first component of the paths."""

FILES = '[[route]]\npath = "/{form}"\ndirectory = "../objects"\n'
DIRECT = '[[route]]\npath = "/direct/{name}"\nreal_servers = {{ policy = "round-robin", names = ["{name}"] }}\n'
PROXIED = '[[route]]\npath = "/proxied/{name}"\norigin = "{origin}"\n'


class PageTestbed(QdsrTestbed):
    """A testbed whose VIP serves the page in both forms, inside its context."""

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
        """Return the sender of each path, from the balancer's log without its first `skip` lines.

        Raises NodeError if `paths` are not all in the log in time.
        """
        deadline = time.monotonic() + LOG_DELAY
        while True:
            sent = {line["path"]: line.get("server", self.balancer.name) for line in self.log(skip)}
            if paths <= sent.keys():
                return sent
            if time.monotonic() > deadline:
                raise NodeError(f"the balancer's log has no entry for {', '.join(sorted(paths - sent.keys()))}")
            time.sleep(0.05)

    def screen(self) -> bytes | None:
        """Return a browser's screenshot of the page as WebP, if there is one."""
        shown = sorted(self.scratch.glob(f"load-*/{SCREEN}"))
        return shown[0].read_bytes() if shown else None

    def wire(self) -> dict[str, int]:
        """Return the bytes of packets that the switch passed from each server to clients; the balancer is first."""
        status = self.status()
        down = {part: sum(s["down"]["bytes"] for s in status[part]) for part in ("servers", "real_servers")}
        # The switch counts packets of real servers under the balancer, too.
        sent = {self.balancer.name: down["servers"] - down["real_servers"]}
        for server in self.real_servers:
            sent[server.name] = sum(s["down"]["bytes"] for s in status["real_servers"] if s["port"] == server.name)
        return sent
