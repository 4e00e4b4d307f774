# SPDX-License-Identifier: Apache-2.0
"""Unmodified QUIC clients with QuicSocks in `LD_PRELOAD`: they ask no DNS, start through the proxy, and leave it."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.quicsocks import files
from frontage_demo.quicsocks.measure import PROXY
from frontage_demo.quicsocks.testbed import Programs, Testbed, bring_up, missing
from frontage_testbed.nodes import NodeError
from frontage_testbed.sandbox import Sandbox
from quicsocks_counters import counters, difference, direct_packets
from testbeds import Sandboxed, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=30)]

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
LIBRARY = PROGRAMS / "libquicsocks_preload.so"
PYTHON = REPOSITORY / "build" / "quic-clients" / "bin" / "python"
SIZE = 3_000_000
"""Bytes of the object: enough for several round trips after the handshake."""
LIMIT = 60.0


def ngtcp2(name: str, port: int, folder: Path) -> list[str | Path]:
    url = f"https://{name}:{port}/object"
    return ["gtlsclient", "--quiet", "--exit-on-all-streams-close", f"--download={folder}", name, str(port), url]


def aioquic(name: str, port: int, folder: Path) -> list[str | Path]:
    program = REPOSITORY / "host-agents" / "cclb7-quic" / "tests" / "clients" / "get_aioquic.py"
    return [PYTHON, program, folder / "object", f"https://{name}:{port}/object"]


CLIENTS = {"ngtcp2": ngtcp2, "aioquic": aioquic}
NEEDED = {"ngtcp2": "gtlsclient", "aioquic": str(PYTHON)}


def downloaded(testbed: Testbed, client: str, *, retry: bool) -> dict[str, Any]:
    """Download the object, and return what the client, the proxy and the router observed."""
    folder = testbed.folder / f"{client}-{int(retry)}"
    folder.mkdir()
    name = f"{client}{int(retry)}.{files.ZONE_NAME}"
    before, forwarded = counters(testbed), direct_packets(testbed)
    command = CLIENTS[client](name, files.PORTS[retry], folder)
    done = testbed.client.run(["env", f"LD_PRELOAD={LIBRARY}", f"QUICSOCKS={PROXY}", *command], timeout=LIMIT)
    after = counters(testbed)
    saved = folder / "object"
    return {
        "whole": saved.exists() and saved.read_bytes() == (testbed.folder / "www" / "object").read_bytes(),
        "proxy": difference(before, after),
        "forwarded": direct_packets(testbed) - forwarded,
        "log": done.stdout[-2000:],
    }


def test_unmodified_clients_start_through_the_proxy_and_leave_it(tmp_path: Path) -> None:
    if not LIBRARY.exists():
        pytest.skip("the library is missing: cargo build --release -p frontage-quicsocks-preload")
    try:
        programs = Programs.of(PROGRAMS)
    except NodeError as error:
        pytest.skip(str(error))
    if absent := missing():
        pytest.skip(f"missing Debian packages: apt-get install {' '.join(absent)}")
    clients = [name for name, program in NEEDED.items() if shutil.which(program)]
    assert clients, "neither gtlsclient nor aioquic is installed: apt-get install ngtcp2-client"

    def body(box: Sandbox) -> dict[str, Any]:
        with bring_up(programs, box.scratch) as testbed:
            (testbed.folder / "www" / "object").write_bytes(bytes(range(256)) * (SIZE // 256))
            return {
                f"{client} {'with' if retry else 'without'} Retry": downloaded(testbed, client, retry=retry)
                for client in clients
                for retry in (False, True)
                # aioquic changes its ClientHello after a Retry, which RFC 9000, section 17.2.5.3, forbids. So the
                # proxy's answer does not fit.
                if not (retry and client == "aioquic")
            }

    seen = Sandboxed(body, tmp_path).result()
    for case, found in seen.items():
        print(case, found)
    for case, found in seen.items():
        assert found["whole"], found["log"]
        # The client's name server is unreachable, so only the proxy resolved the name.
        assert found["proxy"]["names resolved"] == 1
        assert found["proxy"].get("server_datagrams retry_answered", 0) == case.endswith("with Retry")
        # Most of the object's 2,000 packets and their acknowledgments took the direct path.
        assert found["forwarded"] > 1500
        assert found["proxy"]["flows_ended released"] == 1
