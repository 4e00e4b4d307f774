# SPDX-License-Identifier: Apache-2.0
"""The clients that load the page: installed browsers, and a noq client with QUIC's multipath extension."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from frontage_testbed.load import browsers
from frontage_testbed.load.browsers import Site
from frontage_testbed.nodes import Namespace, NodeError
from frontage_testbed.processes import end

from .loads import Fetched

SEEN = re.compile(r'id="seen">(.*?)</script>', re.DOTALL)
WINDOW = "1000,456"
"""Width and height of the browser's window in pixels."""
SCREEN = "screen.webp"
"""File in which Chromium saves a screenshot."""
LOAD_TIMEOUT = 120.0
"""Seconds for loading a page; a newly installed browser starts slowly."""


class Client(Protocol):
    """A client that loads a page."""

    @property
    def name(self) -> str:
        """Name for tables."""

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """Load a page with its objects on a host, and return what was fetched.

        `urls` maps paths to SHA-256 digests; the first path is the page itself. The client keeps its files in `folder`.
        Raises NodeError if the client reports no result.
        """


@dataclass(frozen=True)
class Chromium:
    """Chromium, without multipath."""

    program: Path
    name: str = "Chromium"
    prefix: tuple[str | Path, ...] = ()
    """Command that runs the browser's."""

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """Load the page as `Client` describes, and save a screenshot as SCREEN in the folder."""
        command = [*self.prefix, *browsers.chromium(self.program, folder / "profile", site)]
        command += [f"--screenshot={folder / SCREEN}", f"--window-size={WINDOW}", "--hide-scrollbars", "--dump-dom"]
        page = next(iter(urls))
        done = host.run([*command, f"https://{site.name}:{site.port}{page}"], timeout=LOAD_TIMEOUT)
        report = SEEN.search(done.stdout)
        if report is None or not report[1]:
            raise NodeError(f"Chromium reported no page: {done.stdout[:300]} {done.stderr[-300:]}")
        return _timed(json.loads(html.unescape(report[1])), urls)


@dataclass(frozen=True)
class Firefox:
    """Firefox, without multipath."""

    program: Path
    name: str = "Firefox"

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """Load the page as `Client` describes."""
        profile, saved = folder / "profile", folder / "seen.json"
        command = browsers.firefox(self.program, profile, site)
        page = next(iter(urls))
        with (folder / "firefox.log").open("wb") as log:
            address = f"https://{site.name}:{site.port}{page}#save"
            environment = os.environ | {"HOME": str(profile)}
            process = host.spawn([*command, address], stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + LOAD_TIMEOUT
        # Firefox downloads into a file of another name, which it renames at the end.
        while not (saved.exists() and saved.stat().st_size):
            if process.poll() is not None or time.monotonic() > deadline:
                end(process)
                raise NodeError(f"Firefox reported no page; its log is {folder / 'firefox.log'}")
            time.sleep(0.05)
        end(process)
        return _timed(json.loads(saved.read_text()), urls)


@dataclass(frozen=True)
class Noq:
    """`frontage-h3-client`: unmodified noq, with one path for the balancer and one for each real server."""

    program: Path
    paths: int
    name: str = "noq, multipath"

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """Load the page as `Client` describes."""
        command: list[str | Path] = [self.program, "page", "--insecure", "--paths", str(self.paths)]
        origin = f"https://[{site.host}]:{site.port}"
        done = host.run([*command, *(origin + path for path in urls)], timeout=LOAD_TIMEOUT)
        lines = {line["url"].removeprefix(origin): line for line in map(json.loads, done.stdout.splitlines())}
        return [
            Fetched(
                path,
                line["seconds"]["asked"],
                line["seconds"]["first_byte"],
                line["seconds"]["total"],
                line["bytes"],
                line["sha256"] == urls[path],
                "h3",
            )
            for path, line in ((path, lines[path]) for path in urls)
        ]


BROWSERS: Mapping[str, tuple[str, Callable[[Path], Client]]] = {
    "Chromium": ("chromium", Chromium),
    "Firefox": ("firefox-esr", Firefox),
}
"""By name: the program, which is also the Debian package's name, and the client's class."""


def installed(h3_client: Path, real_servers: int) -> list[Client]:
    """Return the installed browsers, and this project's client as the last one."""
    programs = [(shutil.which(program), make) for program, make in BROWSERS.values()]
    browsers_here = [make(Path(program)) for program, make in programs if program]
    return [*browsers_here, Noq(h3_client, 1 + real_servers)]


def _timed(seen: list[dict[str, Any]], urls: Mapping[str, str]) -> list[Fetched]:
    """Convert a browser's Resource Timing (ms). A browser shows a picture only if its CRC is right."""
    entries = {entry["path"]: entry for entry in seen}
    if missing := urls.keys() - entries.keys():
        raise NodeError(f"the browser did not request {', '.join(sorted(missing))}")
    page = next(iter(urls))
    return [
        Fetched(
            path,
            entry["asked"] / 1e3,
            entry["first"] / 1e3,
            entry["end"] / 1e3,
            entry["bytes"],
            entry["shown"] or path == page,
            entry["protocol"],
        )
        for path, entry in ((path, entries[path]) for path in urls)
    ]
