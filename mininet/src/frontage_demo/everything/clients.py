# SPDX-License-Identifier: Apache-2.0
"""Clients that open the service by its name: an Artemis client, and Chromium, which reads the HTTPS record."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage_demo.artemis import names
from frontage_demo.artemis.names import ZONE
from frontage_demo.page import clients as page
from frontage_demo.page.loads import Fetched
from frontage_testbed import chromium
from frontage_testbed.load import browsers
from frontage_testbed.nodes import NodeError
from frontage_testbed.wan.addresses import INSTANCE, PORT

from .testbed import EverythingTestbed

VISIT_TIMEOUT = 60.0


@dataclass(frozen=True)
class Visit:
    """A page with its objects over one connection, as the client saw it."""

    objects: tuple[Mapping[str, Any], ...]
    """A report for each object (host-agents/h3-client, `page`), the page first."""

    @property
    def first_address(self) -> str:
        """The address of the first packet."""
        return _address(self.objects[0]["remote"][0])

    @property
    def last_address(self) -> str:
        """The server's address at the end; empty if no connection was opened."""
        known = [endpoint for report in self.objects for endpoint in report["remote"]]
        return _address(known[-1]) if known else ""


class PageVisit:
    """A visit in progress by `frontage-h3-client`."""

    def __init__(
        self,
        testbed: EverythingTestbed,
        client: str,
        name: str,
        paths: Sequence[str],
        *options: str,
        prefix: Sequence[str | Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix` runs the client's command, and `env` is added to its environment."""
        self._count = len(paths)
        command = [*prefix, testbed.programs.page_client, "page", *(f"https://{name}{path}" for path in paths)]
        self._process = testbed.client(client).spawn(
            [*command, "--insecure", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | (env or {})
        )

    @property
    def runs(self) -> bool:
        """True until the client has ended."""
        return self._process.poll() is None

    def finish(self) -> Visit:
        """Wait for the end, and return the client's reports. Raises NodeError if a report is missing."""
        output, errors = self._process.communicate(timeout=VISIT_TIMEOUT)
        reports = [json.loads(line) for line in output.decode().splitlines()]
        if len(reports) != self._count:
            raise NodeError(f"{self._process.args!r}: {output.decode()}{errors.decode()}")
        return Visit(tuple(reports))


def by_artemis(testbed: EverythingTestbed, client: str, paths: Sequence[str]) -> PageVisit:
    """Begin a visit by a client whose library hashes the name into the service address."""
    env = {"ARTEMIS": f"{INSTANCE} = {ZONE}", "LD_PRELOAD": str(testbed.programs.preload)}
    return PageVisit(testbed, client, ZONE, paths, "--follow", env=env)


def by_dns(testbed: EverythingTestbed, client: str, paths: Sequence[str], label: str) -> PageVisit:
    """Begin a visit by a client that resolves a name of the service for its region."""
    resolver = _resolver(testbed, client, testbed.directory / f"resolv-{client}.conf")
    follow = ["--follow"] if testbed.parts.balancing else []
    return PageVisit(testbed, client, names.name(client, label), paths, *follow, prefix=browsers.with_resolver(resolver))


def visit_by_chromium(testbed: EverythingTestbed, client: str, folder: Path, urls: Mapping[str, str]) -> list[Fetched]:
    """Load a page in a new Chromium, which learns from the resolver that the service has HTTP/3, and return its objects.

    `urls` maps paths to SHA-256 digests, the page first. The browser keeps its files in `folder`.
    """
    folder.mkdir()
    resolver = _resolver(testbed, client, folder / "resolv.conf")
    site = browsers.Site(ZONE, ZONE, PORT, testbed.directory / "certificate.pem", learns_quic=True)
    browser = page.Chromium(Path(chromium.PROGRAM), prefix=browsers.with_resolver(resolver))
    return browser.load(testbed.client(client), folder, site, urls)


def _resolver(testbed: EverythingTestbed, client: str, file: Path) -> Path:
    """Write a resolv.conf with the client's resolver, and return its path."""
    file.write_text(f"nameserver {testbed.resolver(client)}\n")
    return file


def _address(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")
