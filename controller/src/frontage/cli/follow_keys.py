# SPDX-License-Identifier: Apache-2.0
"""``frontage follow-keys``: keeps the key file of a QUIC server current.

It waits for new keys from the controller, replaces the file, makes the server reload it, and acknowledges the keys. Certificates are
reloaded for each connection.
"""

from __future__ import annotations

import logging
import shlex
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from frontage.api.client import Answer
from frontage.config.key_file import OWNER_ONLY, replace

log = logging.getLogger(__name__)

WAIT = 30.0
"""Seconds that a request waits for new keys."""
MIN_BACKOFF, MAX_BACKOFF = 0.5, 15.0
"""Seconds between failed attempts, doubling from the minimum to the maximum."""
_RELOAD_TIMEOUT = 30.0


Send = Callable[[str, str, Any, dict[str, str]], Answer | None]


class FollowError(Exception):
    """A step fails; the message says which one and what to do."""


class KeyFollower:
    """Follows the keys of one server."""

    def __init__(self, name: str, output: Path, reload: str | None, send: Send):
        """``reload`` is a command that makes the server reload the file.

        ``send(method, path, body, headers)`` sends a request, and returns the answer, or None if nothing has changed.
        """
        self._path = f"/servers/{quote(name, safe='')}/keys"
        self._output = output
        self._reload = shlex.split(reload) if reload else None
        self._send = send
        self._version: str | None = None
        """The entity tag of the keys that the server has read."""

    def step(self) -> None:
        """Wait for keys, and install them. Raises FollowError, and RequestError of the client."""
        if self._version is not None:
            # A new leader, or a restarted controller, may not know it yet.
            self._acknowledge()
        headers = {} if self._version is None else {"If-None-Match": self._version}
        answer = self._send("GET", f"{self._path}?wait={WAIT:g}", None, headers)
        if answer is not None:
            self._install(answer.body)
            self._version = answer.etag
            self._acknowledge()

    def _acknowledge(self) -> None:
        self._send("PUT", f"{self._path}/held", {"id": self._newest()}, {})

    def _install(self, text: str) -> None:
        try:
            replace(self._output, text, OWNER_ONLY)
        except OSError as error:
            raise FollowError(f"{self._output}: cannot be written: {error}: make the folder writable") from None
        if self._reload is not None:
            self._run(self._reload)
        log.info("%s has the keys up to %d", self._output, self._newest())

    @staticmethod
    def _run(command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_RELOAD_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FollowError(f"--reload: {shlex.join(command)} failed: {error}: correct the command") from None
        if done.returncode != 0:
            what = (done.stderr or done.stdout).strip() or f"status {done.returncode}"
            raise FollowError(f"--reload: {shlex.join(command)} failed: {what}: start the server, or correct the command")

    def _newest(self) -> int:
        keys = tomllib.loads(self._output.read_text(encoding="utf-8"))["keys"]
        return max(int(key["id"]) for key in keys)


def follow(step: Callable[[], None], failures: tuple[type[Exception], ...]) -> None:
    """Repeat ``step`` until the process ends, and log failures."""
    backoff, last = MIN_BACKOFF, ""
    while True:
        try:
            step()
        except failures as error:
            if str(error) != last:
                log.warning("%s", error)
            last = str(error)
            time.sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF)
        else:
            backoff, last = MIN_BACKOFF, ""
