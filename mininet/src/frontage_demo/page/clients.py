"""Who loads the page: browsers that are here, and noq's client, which has QUIC's multipath extension."""

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
"""Pixels of the browser's window."""
SCREEN = "screen.webp"
"""Where Chromium leaves what was in it."""
PATIENCE = 120.0
"""Seconds for a page: a browser that has just been installed is slow to start."""


class Client(Protocol):
    """A client, and how it loads a page."""

    @property
    def name(self) -> str:
        """For tables."""

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """Load the first of the pages `urls` with all the others, on a host, with what it keeps in `folder`. `urls`
        are SHA-256 by path.

        Raises NodeError if there is nothing to tell.
        """


@dataclass(frozen=True)
class Chromium:
    """Without multipath."""

    program: Path
    name: str = "Chromium"

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """As `Client` says. What was on the screen is in the folder's SCREEN."""
        command = browsers.chromium(self.program, folder / "profile", site)
        command += [f"--screenshot={folder / SCREEN}", f"--window-size={WINDOW}", "--hide-scrollbars", "--dump-dom"]
        page = next(iter(urls))
        done = host.run([*command, f"https://{site.name}:{site.port}{page}"], timeout=PATIENCE)
        found = SEEN.search(done.stdout)
        if found is None or not found[1]:
            raise NodeError(f"Chromium has no page: {done.stdout[:300]} {done.stderr[-300:]}")
        return _timed(json.loads(html.unescape(found[1])), urls)


@dataclass(frozen=True)
class Firefox:
    """Without multipath."""

    program: Path
    name: str = "Firefox"

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """As `Client` says."""
        profile, saved = folder / "profile", folder / "seen.json"
        command = browsers.firefox(self.program, profile, site)
        page = next(iter(urls))
        with (folder / "firefox.log").open("wb") as log:
            address = f"https://{site.name}:{site.port}{page}#save"
            environment = os.environ | {"HOME": str(profile)}
            process = host.spawn([*command, address], stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + PATIENCE
        # Until it has all, what it has is in a file of another name.
        while not (saved.exists() and saved.stat().st_size):
            if process.poll() is not None or time.monotonic() > deadline:
                end(process)
                raise NodeError(f"Firefox has no page; its log is {folder / 'firefox.log'}")
            time.sleep(0.05)
        end(process)
        return _timed(json.loads(saved.read_text()), urls)


@dataclass(frozen=True)
class Noq:
    """`frontage-h3-client`: unmodified noq, with a path for each real server beside the first."""

    program: Path
    paths: int
    name: str = "noq, multipath"

    def load(self, host: Namespace, folder: Path, site: Site, urls: Mapping[str, str]) -> list[Fetched]:
        """As `Client` says."""
        command: list[str | Path] = [self.program, "page", "--insecure", "--paths", str(self.paths)]
        origin = f"https://[{site.host}]:{site.port}"
        done = host.run([*command, *(origin + path for path in urls)], timeout=PATIENCE)
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
"""By name: the program, which is also Debian's package, and what runs it."""


def here(h3_client: Path, real_servers: int) -> list[Client]:
    """The clients that this machine has; the last one is this project's."""
    found = [(shutil.which(program), make) for program, make in BROWSERS.values()]
    browsers_here = [make(Path(program)) for program, make in found if program]
    return [*browsers_here, Noq(h3_client, 1 + real_servers)]


def _timed(seen: list[dict[str, Any]], urls: Mapping[str, str]) -> list[Fetched]:
    """What a browser's Resource Timing says, in milliseconds. A browser shows no picture whose CRC is wrong."""
    entries = {entry["path"]: entry for entry in seen}
    if missing := urls.keys() - entries.keys():
        raise NodeError(f"the browser has not asked for {', '.join(sorted(missing))}")
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
