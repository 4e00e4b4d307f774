"""Downloads in a testbed with real servers, one at a time or while something is done to a real server."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from quicrounds import FAST, PATIENCE, SLOW, limit, until

FIRST = 1_000
"""An object that is asked for before others, while a connection's paths settle: the balancer may send it."""
LONG = 5_000_000
UNDER_WAY = 50
"""Packets after which a real server sends more than a short object."""
TRIES = 10


class Get:
    """Objects that a client asks for on one connection, one after the other; or, if the `command` is "page", all at a
    time once it has the first.
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
        """Objects of which the client has said what came of them."""
        return len(self._lines())

    def kill(self) -> None:
        """End the client."""
        self._process.kill()
        self._process.wait()

    def finish(self) -> list[dict[str, Any]]:
        """What the client says of each, and whether its bytes are the object's."""
        self._process.wait(PATIENCE)
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
    """A long object for each client, of which each real server sends one, and a short one after it. Once both are under
    way, `act` on the real server that sends to the first client.
    """
    limit(testbed, SLOW)
    first, get = _handed_over(testbed, 0, set(), *options)
    second, other = _handed_over(testbed, 1, {first}, *options)
    assert first != second, "the one with less to do gets it"
    gets = [get, other]
    act(first, gets)
    assert other.runs, "the downloads ended before the disturbance did"
    limit(testbed, FAST)
    return [get.finish()[1:] for get in gets]


def _handed_over(testbed: QdsrTestbed, client: int, busy: set[str], *options: str) -> tuple[str, Get]:
    """A long object, and the real server that sends it, which is none of the `busy`. While the paths of a connection
    settle, the balancer keeps what it is asked for, and while it has not heard that an object has come, its real server
    has as much to do as another that is busy; then another connection is tried.
    """
    for _ in range(TRIES):
        get, sender = _try(testbed, client, *options)
        if sender is not None and sender not in busy:
            return sender, get
        get.kill()
    raise AssertionError(f"in {TRIES} tries, no real server but {busy} got a long object")


def _try(testbed: QdsrTestbed, client: int, *options: str) -> tuple[Get, str | None]:
    packets, before, kept, answers = (
        testbed.packets_by_real_server(),
        testbed.open_requests(),
        testbed.kept_requests(),
        len(testbed.log()),
    )
    get = Get(testbed, client, (FIRST, LONG, FIRST), *options)
    first = until(lambda: [line for line in testbed.log(answers) if line["path"] == f"/{FIRST}"], "the first object comes")
    if "server" not in first[0]:
        kept += 1

    def asked() -> list[str]:
        return [name for name, count in testbed.open_requests().items() if count > before[name]]

    until(lambda: asked() or testbed.kept_requests() > kept, "somebody is asked for the long object")
    sender = next(iter(asked()), None)
    if sender is not None:
        until(lambda: testbed.packets_by_real_server()[sender] - packets[sender] > UNDER_WAY, "it sends")
    return get, sender
