# SPDX-License-Identifier: Apache-2.0
"""Samples in a whole data centre: goflow2 gets the packets that the draws choose, and each dropped packet with its reason."""

import json
import math
import os
import shutil
import socket
import struct
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontage_testbed.datacentre.addresses import ClientAddresses
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from test_limits import ATTEMPTS, BURST, connect
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=30)]

SETTINGS = Settings(servers=2, clients=2, policies=("cclb4",))
BUILT = Path(__file__).parents[2] / "build" / "goflow2"
BINARY = os.environ.get("GOFLOW2") or (str(BUILT) if BUILT.exists() else shutil.which("goflow2"))
ONE_IN = 4
LIMIT = 60.0
"""Seconds that the test waits for anything."""
FUNCTION = 1038
"""The format of the record that names what the switch did."""

REFUSED = "limit-client-connections vip=web"
"""Function of samples of connections over the limit."""


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def set_up(testbed: Testbed) -> None:
    """Limit one client, and send samples to a collector."""
    document = yaml.safe_load(testbed.edge.config.read_text())
    limited = f"{ClientAddresses(0).address4}/32"
    document["vips"][0]["limits"] = {"clients": [{"prefix": limited, "new_connections": 1, "connection_burst": BURST}]}
    document["samples"] = {
        "agent": "192.0.2.1",
        "collectors": ["127.0.0.1:6343"],
        "one_in": ONE_IN,
        "drops_per_second": 1000,
        "postcards": "127.0.0.1:32766",
    }
    testbed.edge.write_configuration(yaml.safe_dump(document, sort_keys=False))

    def is_installed() -> bool:
        status: dict[str, Any] = json.loads(testbed.edge.frontage("status", "--json"))
        changes = sum(status["difference"][kind] for kind in ("missing", "different", "unexpected"))
        return status["vips"][0]["limits"] is not None and not changes

    until(is_installed, "the samples are not installed")


def drawn(pool: int, port: int) -> bool:
    """Return whether the switch samples a packet of a port, before which ``pool`` others came."""
    draw = zlib.crc32((pool * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(4, "big") + port.to_bytes(2, "big"))
    return draw < 2**32 // ONE_IN


def samples_of(file: Path) -> list[dict[str, Any]]:
    whole, _, _ = (file.read_text() if file.exists() else "").rpartition("\n")
    lines = [json.loads(line) for line in whole.splitlines()]
    return [sample for line in lines for sample in line["message"]["samples"]]


def flows_of(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the samples of forwarded packets."""
    return [sample for sample in samples if "sampling-rate" in sample]


def dropped(samples: list[dict[str, Any]]) -> Counter[str]:
    """Return the number of dropped packets by reason."""
    return Counter(function_of(sample) for sample in samples if "reason" in sample)


def counted() -> dict[str, int]:
    """Return the samples that the controller counts, by kind."""
    metrics = scrape(METRICS)
    return {kind: int(metrics.total("frontage_samples_total", kind=kind)) for kind in ("flow", "drop", "postcard", "lost")}


def received(reports: socket.socket) -> list[bytes]:
    """Return the datagrams that wait in a socket."""
    reports.setblocking(False)
    found = []
    while True:
        try:
            found.append(reports.recv(2048))
        except BlockingIOError:
            return found


def function_of(sample: dict[str, Any]) -> str:
    (name,) = (one["data"]["symbol"] for one in sample["records"] if one["header"]["data-format"] == FUNCTION)
    return str(name)


def test_collector_gets_samples_and_each_drop(tmp_path: Path) -> None:
    if BINARY is None:
        pytest.skip("goflow2 is missing: run `make build/goflow2`")
    parts = deployment(SETTINGS)
    file = tmp_path / "samples.json"

    def body(box: Sandbox) -> object:
        # Two workers would write into each other's lines.
        words = [str(BINARY), "-listen=sflow://127.0.0.1:6343?workers=1", "-format=json", "-produce=raw", "-addr=127.0.0.1:8089"]
        with (
            subprocess.Popen([*words, f"-transport.file={file}"]) as collector,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reports,
            parts.testbed(SETTINGS, box) as testbed,
        ):
            reports.bind(("127.0.0.1", 32766))
            try:
                testbed.wait_until_ready()
                before = testbed.edge.counters().drops.get("limit-client-connections", 0)
                set_up(testbed)
                result: dict[str, Any] = {"few": connect(testbed, 0), "all": connect(testbed, 1)}
                result["drops"] = testbed.edge.counters().drops["limit-client-connections"] - before
                cards: list[bytes] = []

                def is_complete() -> bool:
                    cards.extend(received(reports))
                    counts, samples = counted(), samples_of(file)
                    flows = len(flows_of(samples))
                    equal = flows == counts["flow"] == counts["postcard"] == len(cards) and len(samples) - flows == counts["drop"]
                    return equal and dropped(samples)[REFUSED] >= result["drops"]

                until(is_complete, "the collectors have what the controller sent")
                result["counts"] = counted()
                result["postcards"] = [postcard.hex() for postcard in cards]
                return result
            finally:
                collector.terminate()

    result = Sandboxed(body, tmp_path).result()
    print(result)
    assert result["all"] == ATTEMPTS
    samples = samples_of(file)
    print(Counter(function_of(sample) for sample in samples))
    flows = flows_of(samples)

    # Each refused connection, with the name of the reason and the VIP.
    assert dropped(samples)[REFUSED] == result["drops"] >= ATTEMPTS - result["few"]

    # The samples of each port are the packets that the draws choose: one in four within 4 standard deviations.
    pools: dict[int, list[int]] = {}
    for sample in flows:
        assert sample["sampling-rate"] == ONE_IN
        pools.setdefault(sample["input"], []).append(sample["sample-pool"])
    assert len(pools) >= 2
    for port, found in pools.items():
        # goflow2 has several workers, so datagrams may change places.
        assert sorted(found) == [number + 1 for number in range(max(found)) if drawn(number, port)]
        expected = max(found) / ONE_IN
        assert abs(len(found) - expected) <= 1 + 4 * math.sqrt(expected * (1 - 1 / ONE_IN))
    functions = Counter(function_of(sample).split()[0] for sample in flows)
    assert functions["assigned-cclb4"] + functions["retrieved-cookie"] > 0
    assert result["counts"]["lost"] == 0

    # A postcard for each of them: Telemetry Report 2.0 with ports, latency and queue depth.
    postcards = [bytes.fromhex(postcard) for postcard in result["postcards"]]
    ports: Counter[tuple[int, int]] = Counter()
    for number, postcard in enumerate(postcards, 1):
        assert struct.unpack("!2I", postcard[:8]) == (2 << 28 | number, 1)
        assert postcard[8] == 0x13
        assert struct.unpack("!H", postcard[12:14]) == (0x7000,)
        ingress, egress, latency, depth = struct.unpack("!2H2I", postcard[20:32])
        ports[ingress, egress] += 1
        assert latency < LIMIT * 1e6
        assert depth < 1000
    assert ports == Counter((sample["input"], sample["output"]) for sample in flows)
