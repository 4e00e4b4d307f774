# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs keep their connections while the server's address, and then both addresses, change again and again."""

import hashlib
import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.mobile import page
from frontage_demo.mobile.measure import Gaps, Throughput, gaps_at
from frontage_demo.mobile.testbed import FORWARD_PORT, LOCAL_PORT, SITES, Programs, Testbed, bring_up
from frontage_demo.mobile.topology import CLIENT, MOBILE
from frontage_testbed.nodes import NodeError
from frontage_testbed.processes import serve
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, needs_root

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
NATS = Path(os.environ.get("NATS_SERVER", REPOSITORY / "build" / "nats-server"))
SIZE = 20_000_000
"""Bytes of the file."""
RATE = "2M"
"""Bytes per second that curl reads, so that a download takes 10 s."""
INTERVAL = 1.0
"""Seconds from a resumption to the next move."""
LEAST_MOVES = 4
"""A third of the moves that an idle machine makes during two downloads."""
LIMIT = 120.0


def resumptions(testbed: Testbed) -> float:
    """Return how often the client's proxy has continued a session over a new path."""
    return testbed.metrics(CLIENT)["resumptions_total"]


def download(testbed: Testbed, folder: Path, *moving: str) -> dict[str, Any]:
    """Download the file twice over one connection of curl while hosts move, and return what curl and the proxies report."""
    url = f"http://127.0.0.1:{LOCAL_PORT}/file"
    command = ["curl", "-sS", "--limit-rate", RATE, "-w", "%{num_connects} ", url, "-o", folder / "one", url, "-o", folder / "two"]
    curl = testbed.hosts[CLIENT].spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline, moves = time.monotonic() + LIMIT, 0
    while curl.poll() is None and time.monotonic() < deadline:
        time.sleep(INTERVAL)
        before = resumptions(testbed)
        for host in moving:
            testbed.move(host)
        moves += 1
        while curl.poll() is None and resumptions(testbed) == before and time.monotonic() < deadline:
            time.sleep(0.1)
    output = curl.communicate(timeout=1)[0].decode()
    hashes = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("one", "two")]
    return {"status": curl.returncode, "output": output, "moves": moves, "hashes": hashes, "metrics": testbed.metrics(CLIENT)}


def piped(testbed: Testbed) -> subprocess.CompletedProcess[bytes]:
    """Fetch the file by the standard streams of `connect`. Its standard input stays open until it has exited."""
    command = [testbed.programs.mobile, "connect", *testbed.options(CLIENT, SITES[1:])]
    request = "printf 'GET /file HTTP/1.0\\r\\n\\r\\n'"
    shell = f"({request}; sleep 3) | {' '.join(map(str, command))}"
    return subprocess.run(["mnexec", "-a", str(testbed.hosts[CLIENT].pid), "sh", "-c", shell], capture_output=True, timeout=LIMIT)


@needs_root
@pytest.mark.slow(seconds=40)
def test_unmodified_curl_keeps_its_connection_while_hosts_move(tmp_path: Path) -> None:
    try:
        programs = Programs.of(PROGRAMS, NATS)
    except NodeError as error:
        pytest.skip(str(error))
    content = random.Random(1).randbytes(SIZE)

    def body(box: Sandbox) -> dict[str, Any]:
        with bring_up(programs, box.scratch / "testbed", wires=False) as testbed:
            unserved = piped(testbed)
            files = testbed.folder / "www"
            files.mkdir()
            (files / "file").write_bytes(content)
            command = ["/usr/bin/python3", "-m", "http.server", str(FORWARD_PORT), "--bind", "127.0.0.1", "--directory", files]
            serve(testbed.hosts[MOBILE], "http", [*command, "--protocol", "HTTP/1.1"], FORWARD_PORT, testbed.folder)
            return {
                "server": download(testbed, box.scratch, MOBILE),
                "both": download(testbed, box.scratch, MOBILE, CLIENT),
                "piped": hashlib.sha256(piped(testbed).stdout.partition(b"\r\n\r\n")[2]).hexdigest(),
                "unserved": [unserved.returncode, unserved.stderr.decode()],
            }

    seen = Sandboxed(body, tmp_path).result()
    print(seen)
    assert seen["piped"] == hashlib.sha256(content).hexdigest()
    status, error = seen["unserved"]
    assert status == 1 and "the peer's local connection failed" in error
    resumed = 0.0
    for case in (seen["server"], seen["both"]):
        assert case["status"] == 0, case["output"]
        assert case["output"].split() == ["1", "0"], "curl used one connection for both downloads"
        assert case["hashes"] == [hashlib.sha256(content).hexdigest()] * 2
        # The last move may follow the last byte.
        assert case["metrics"]["resumptions_total"] - resumed >= case["moves"] - 1 >= LEAST_MOVES - 1
        resumed = case["metrics"]["resumptions_total"]
    assert seen["both"]["metrics"]['sessions_ended_total{result="finished"}'] == 2


def test_gap_is_the_longest_pause_from_a_move_to_the_next() -> None:
    arrivals = [0.0, 0.1, 0.2, 0.9, 1.0, 1.1, 1.5, 1.6]
    # The first pause begins before the move and the second one after it.
    assert list(gaps_at(arrivals, [0.25, 1.0])) == pytest.approx([0.7, 0.4])


def test_quantile_is_a_measured_gap() -> None:
    gaps = Gaps((MOBILE,), [float(number) for number in range(100, 0, -1)], 0)
    assert (gaps.quantile(0.99), gaps.quantile(1.0), gaps.quantile(0.001)) == (99, 100, 1)


def test_page_contains_results() -> None:
    gaps = [Gaps(moving, [210.0, 250.0, 230.0], 2048) for moving in ((MOBILE,), (CLIENT,), (MOBILE, CLIENT))]
    text = page.page(page.Result(105.0, [320.0], gaps, Throughput([2e9], [1e9])))
    assert "| both move at once | 230 ms | 250 ms | 2.2 | 3 | 2,048 |" in text
    assert "| through both proxies | 1.00 Gbit/s | 1 |" in text
    assert "| set-up of a connection, address known | 210 ms | 320 ms |" in text
