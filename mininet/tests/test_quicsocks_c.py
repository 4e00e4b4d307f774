# SPDX-License-Identifier: Apache-2.0
"""A C program with its own QUIC stack (ngtcp2) and libfrontage_quicsocks_c: it starts through the proxy and migrates."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.quicsocks import files
from frontage_demo.quicsocks.measure import PROXY
from frontage_demo.quicsocks.testbed import Programs, Testbed, bring_up, missing
from frontage_demo.quicsocks.topology import SERVER_ADDRESS
from frontage_testbed.nodes import NodeError
from frontage_testbed.sandbox import Sandbox
from quicsocks_counters import counters, difference, direct_packets
from testbeds import Sandboxed, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=30)]

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
CRATE = REPOSITORY / "host-agents" / "quicsocks-c"
LIBRARIES = {"ngtcp2": "libngtcp2-dev", "ngtcp2_crypto_gnutls": "libngtcp2-crypto-gnutls-dev", "gnutls": "libgnutls28-dev"}
"""Libraries that the example needs, with their Debian packages."""
SIZE = 3_000_000
"""Bytes of the object: enough for several round trips after the handshake."""
LIMIT = 60.0


def compile_example(folder: Path) -> Path:
    """Compile the example of the C library, linked statically with it."""
    program = folder / "quicsocks_get"
    source = CRATE / "examples" / "quicsocks_get.c"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{CRATE / 'include'}"]
    libraries = [PROGRAMS / "libfrontage_quicsocks_c.a", *(f"-l{name}" for name in LIBRARIES), "-lm"]
    subprocess.run(["cc", *flags, source, "-o", program, *libraries], check=True)
    return program


def downloaded(testbed: Testbed, program: Path, *, retry: bool) -> dict[str, Any]:
    """Download the object, and return what the client, the proxy and the router observed."""
    name = f"c{int(retry)}.{files.ZONE_NAME}"
    saved = testbed.folder / f"c-{int(retry)}"
    command = [program, PROXY, testbed.folder / "certificate.pem", name, files.PORTS[retry], "/object"]
    before, forwarded = counters(testbed), direct_packets(testbed)
    shell = f"exec {shlex.join(map(str, command))} 2>&1 >{shlex.quote(str(saved))}"
    done = testbed.client.run(["sh", "-c", shell], timeout=LIMIT)
    return {
        "whole": saved.read_bytes() == (testbed.folder / "www" / "object").read_bytes(),
        "proxy": difference(before, counters(testbed)),
        "forwarded": direct_packets(testbed) - forwarded,
        "log": done.stdout,
    }


def test_c_client_starts_through_the_proxy_and_migrates(tmp_path: Path) -> None:
    if not (PROGRAMS / "libfrontage_quicsocks_c.a").exists():
        pytest.skip("the library is missing: cargo build --release -p frontage-quicsocks-c")
    if not shutil.which("cc") or not Path("/usr/include/ngtcp2/ngtcp2_crypto_gnutls.h").exists():
        pytest.skip(f"missing Debian packages: apt-get install gcc {' '.join(LIBRARIES.values())}")
    try:
        programs = Programs.of(PROGRAMS)
    except NodeError as error:
        pytest.skip(str(error))
    if absent := missing():
        pytest.skip(f"missing Debian packages: apt-get install {' '.join(absent)}")
    program = compile_example(tmp_path)

    def body(box: Sandbox) -> dict[str, Any]:
        with bring_up(programs, box.scratch) as testbed:
            (testbed.folder / "www" / "object").write_bytes(bytes(range(256)) * (SIZE // 256))
            return {str(retry): downloaded(testbed, program, retry=retry) for retry in (False, True)}

    for retry, found in Sandboxed(body, tmp_path).result().items():
        print(retry, found)
        assert found["whole"], found["log"]
        assert found["log"] == f"direct: {SERVER_ADDRESS} port {files.PORTS[retry == 'True']}\n"
        # The client's name server is unreachable, so only the proxy resolved the name.
        assert found["proxy"]["names resolved"] == 1
        assert found["proxy"].get("server_datagrams retry_answered", 0) == (retry == "True")
        # Most of the object's 2,000 packets and their acknowledgments took the direct path.
        assert found["forwarded"] > 1500
        assert found["proxy"]["flows_ended released"] == 1
