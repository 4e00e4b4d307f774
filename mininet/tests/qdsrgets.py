# SPDX-License-Identifier: Apache-2.0
"""Downloads in a testbed with real servers, alone or while a real server is disturbed."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from quicrounds import DOWNLOAD_TIMEOUT, FAST, SLOW, limit, wait_until

FIRST = 1_000
"""The size of an object requested first, while the paths are established; the balancer may send it."""
LONG = 5_000_000
UNDER_WAY = 50
"""Packets after which a real server must be sending more than a short object."""
TRIES = 10


class ResettingTestbed(QdsrTestbed):
    """A testbed whose balancer resets the streams of lost real servers instead of resuming them."""

    handoff_fields = "resume = false\n"


class Get:
    """Objects that a client downloads on one connection, one after the other.

    With the command "page", it requests all others at once after the first one.
    """

    def __init__(self, testbed: QdsrTestbed, client: int, sizes: tuple[int, ...], *options: str, command: str = "get") -> None:
        self._testbed = testbed
        self._sizes = sizes
        name = f"get-{client}-{len(list(testbed.scratch.glob('get-*')))}"
        self._folder = testbed.scratch / name
        self._folder.mkdir()
        self._log = self._folder / "client.log"
        urls = [f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{size}" for size in sizes]
        output = f"--output={self._folder}"
        words = [testbed.h3_client, command, *urls, "--insecure", "--paths", "3", output, *options]
        with self._log.open("wb") as log:
            self._process: subprocess.Popen[bytes] = testbed.clients[client].spawn(words, stdout=log, stderr=log)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def ended(self) -> int:
        """Number of objects whose result the client has reported."""
        return len(self._lines())

    def kill(self) -> None:
        """Kill the client."""
        self._process.kill()
        self._process.wait()

    def finish(self) -> list[dict[str, Any]]:
        """Return the client's reports with the field `right`: whether the bytes are the object's."""
        self._process.wait(DOWNLOAD_TIMEOUT)
        lines = self._lines()
        assert len(lines) == len(self._sizes), self._log.read_text()
        for line in lines:
            name = line["url"].rpartition("/")[2]
            original = self._testbed.scratch / "objects" / name
            saved = self._folder / name
            line["right"] = saved.exists() and saved.read_bytes() == original.read_bytes()
        return lines

    def _lines(self) -> list[dict[str, Any]]:
        whole = self._log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in whole if line.startswith("{")]


def meanwhile(testbed: QdsrTestbed, act: Callable[[str, list[Get]], object], *options: str) -> list[list[dict[str, Any]]]:
    """Disturb downloads: each client downloads a long object from another real server, and then a short one.

    Calls `act` with the real server of the first client once both are in progress.
    """
    limit(testbed, SLOW)
    first, get = _delegated(testbed, 0, set(), *options)
    second, other = _delegated(testbed, 1, {first}, *options)
    assert first != second, "the balancer selects the less loaded real server"
    gets = [get, other]
    act(first, gets)
    assert other.runs, "the downloads ended before the disturbance did"
    limit(testbed, FAST)
    return [get.finish()[1:] for get in gets]


def _delegated(testbed: QdsrTestbed, client: int, busy: set[str], *options: str) -> tuple[str, Get]:
    """Return a download of a long object and its real server, which is not in `busy`.

    The balancer answers requests itself while the paths are established. Until it learns that an object has arrived, it
    counts the request as load of its real server. In both cases this tries another connection.
    """
    for _ in range(TRIES):
        get, sender = _try(testbed, client, *options)
        if sender is not None and sender not in busy:
            return sender, get
        get.kill()
    raise AssertionError(f"in {TRIES} tries, only {busy} got a long object")


def _try(testbed: QdsrTestbed, client: int, *options: str) -> tuple[Get, str | None]:
    packets, before, kept, answers = (
        testbed.packets_by_real_server(),
        testbed.open_requests(),
        testbed.kept_requests(),
        len(testbed.log()),
    )
    get = Get(testbed, client, (FIRST, LONG, FIRST), *options)
    first = wait_until(lambda: [line for line in testbed.log(answers) if line["path"] == f"/{FIRST}"], "the first object arrives")
    if "server" not in first[0]:
        kept += 1

    def delegated() -> list[str]:
        return [name for name, count in testbed.open_requests().items() if count > before[name]]

    wait_until(lambda: delegated() or testbed.kept_requests() > kept, "the long object is requested")
    sender = next(iter(delegated()), None)
    if sender is not None:
        wait_until(lambda: testbed.packets_by_real_server()[sender] - packets[sender] > UNDER_WAY, "the real server sends")
    return get, sender
