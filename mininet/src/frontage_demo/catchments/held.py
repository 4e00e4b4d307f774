# SPDX-License-Identifier: Apache-2.0
"""Connections of unmodified clients that stay open during the events of a run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frontage_demo.artemis.hostsfile import Binding, binding, prepared
from frontage_demo.artemis.names import ZONE
from frontage_testbed.load.download import Download
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.wan.addresses import PORT

from .testbed import HELD_OBJECT, HELD_RATE, CatchmentTestbed

LIMIT = 200.0
UNDER_WAY = 50_000
"""Bytes after which a download is past its handshake and its migration."""
AIOQUIC = REPOSITORY / "build" / "quic-clients" / "bin" / "python"
AIOQUIC_SCRIPT = REPOSITORY / "host-agents" / "cclb7-quic" / "tests" / "clients" / "get_aioquic.py"
NGTCP2 = "gtlsclient"


def programs() -> list[str]:
    """Return the names of the installed clients."""
    installed = {"ngtcp2": shutil.which(NGTCP2) is not None, "aioquic": AIOQUIC.exists()}
    return [name for name, is_there in installed.items() if is_there]


@dataclass(frozen=True)
class Held:
    """A connection that is open."""

    client: str
    program: str
    host: int
    download: Download


def _command(program: str, folder: Path) -> list[str | Path]:
    url = f"https://{ZONE}:{PORT}{HELD_OBJECT}"
    if program == "ngtcp2":
        return [NGTCP2, "--quiet", "--exit-on-all-streams-close", f"--download={folder}", ZONE, str(PORT), url]
    return [AIOQUIC, AIOQUIC_SCRIPT, folder / HELD_OBJECT.removeprefix("/"), url]


def open_connections(testbed: CatchmentTestbed, clients: Sequence[str]) -> list[Held]:
    """Begin a slow download with each program in the network of each client."""
    original = testbed.directory / "objects" / HELD_OBJECT.removeprefix("/")
    held = []
    for client in clients:
        for host, program in enumerate(programs(), 2):
            testbed.limit(client, host, HELD_RATE)
            folder = testbed.directory / f"held-{testbed.host(client, host).name}"
            download = prepared(testbed, testbed.host(client, host), _command(program, folder), folder, original, LIMIT)
            download.begin()
            held.append(Held(client, program, host, download))
    for one in held:
        one.download.wait_for(UNDER_WAY)
    return held


def close(testbed: CatchmentTestbed, held: Sequence[Held]) -> list[tuple[Held, Binding]]:
    """Let the downloads end quickly, and return what their captures show."""
    for one in held:
        testbed.limit(one.client, one.host, None)
    found = []
    for one in held:
        done = one.download.finish()
        time.sleep(0.1)  # the capture may be behind the client
        found.append((one, binding(testbed, done)))
    return found
