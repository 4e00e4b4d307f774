# SPDX-License-Identifier: Apache-2.0
"""Samples of packets: the configuration, sFlow as goflow2 and pmacct decode it, INT reports, and what the exporter loses."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import EXAMPLE
from frontage.config import ConfigError, loads
from frontage.p4 import reasons
from frontage.p4.entries import Key
from frontage.p4.p4info import Schema
from frontage.samples import exporter, postcards, sflow
from frontage.samples.exporter import Exporter
from frontage.samples.sample import DROP, FLOW, POSTCARD, Sample, decoder
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired
from test_service import until
from test_tracing import free_port

pytestmark = pytest.mark.timeout(120)

BUILT = Path(__file__).parents[2] / "build" / "goflow2"
BINARY = os.environ.get("GOFLOW2") or (str(BUILT) if BUILT.exists() else shutil.which("goflow2"))
TEXT = EXAMPLE.read_text(encoding="utf-8")
ETHERNET = bytes.fromhex("020000000101 020000000901 0800".replace(" ", ""))


def ipv4(source: str, destination: str) -> bytes:
    """Return the start of a TCP packet."""
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 60, 1, 0, 64, 6, 0, socket.inet_aton(source), socket.inet_aton(destination))
    return ETHERNET + header + struct.pack("!HHII", 40000, 80, 7, 0) + bytes(28)


TO_VIP = ipv4("198.51.100.7", "203.0.113.10")


def sample(kind: int, **fields: Any) -> Sample:
    known = {"reason": 0, "outcome": 7, "direction": 1, "ingress_port": 1, "egress_port": 2, "vip_id": 0, "sid": 1}
    known |= {"length": 1514, "pool": 5000, "hop_latency": 0, "queue_depth": 0}
    return Sample(kind=kind, packet=TO_VIP, **known | fields)


def with_samples(text: str) -> str:
    return f"{TEXT}\nsamples: {{ {text} }}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent: 192.0.2.1", "samples: missing collector: set collectors, postcards or both"),
        ("agent: 192.0.2.1, collectors: [here]", "samples.collectors[0]: invalid listen address"),
        ("collectors: ['192.0.2.9:6343']", "samples.agent: missing"),
        ("agent: 192.0.2.1, collectors: ['192.0.2.9:6343'], one_in: 0", "samples.one_in"),
        (
            "agent: 192.0.2.1, collectors: ['192.0.2.9:6343'], ports: [up]",
            'samples.ports[0]: unknown port "up": use one of `ports`',
        ),
    ],
)
def test_problems_of_the_configuration_are_reported(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(with_samples(text), EXAMPLE)
    assert problem in str(caught.value)


def test_switch_samples_the_chosen_ports_and_each_reason() -> None:
    config = loads(with_samples("agent: 192.0.2.1, collectors: ['192.0.2.9:6343'], one_in: 256, ports: [uplink]"), EXAMPLE)
    state = desired(config, allocate(config, Installed({})))
    assert state[Key("ports.port", (1,))].name == "set_sampled_port"
    assert state[Key("ports.port", (1,))].params[2:] == (1 << 24, 0)
    assert state[Key("ports.port", (2,))].name == "set_port"
    limits = {key.match[0]: action.meter for key, action in state.items() if key.table == "drop_samples.reason"}
    assert limits == dict.fromkeys(reasons.drops(), (10, 10))
    without = desired(loads(TEXT, EXAMPLE), allocate(config, Installed({})))
    assert not [key for key in without if key.table == "drop_samples.reason"]


class Collector:
    """goflow2, which writes each decoded datagram as JSON."""

    def __init__(self, folder: Path, produce: str):
        if BINARY is None:
            pytest.skip("goflow2 is missing: run `make build/goflow2`")
        self.port = free_port()
        self._file = folder / "flows.json"
        metrics = f"127.0.0.1:{free_port()}"
        # Two workers would write into each other's lines.
        words = [BINARY, f"-listen=sflow://127.0.0.1:{self.port}?workers=1", "-format=json", f"-produce={produce}"]
        words += [f"-transport.file={self._file}", f"-addr={metrics}"]
        self._process = subprocess.Popen(words)
        until(lambda: f":{self.port:04X} " in Path("/proc/net/udp").read_text())

    def lines(self) -> list[dict[str, Any]]:
        whole, _, _ = (self._file.read_text() if self._file.exists() else "").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture
def collector(folder: Path) -> Iterator[Collector]:
    collector = Collector(folder, "raw")
    yield collector
    collector.stop()


def exporter_to(port: int, more: str = "") -> Exporter:
    found = Exporter(loads(with_samples(f"agent: 192.0.2.1, collectors: ['127.0.0.1:{port}'], one_in: 256{more}"), EXAMPLE))
    found._names = lambda: {"shop": 0, "shop6": 1}
    return found


async def test_collector_decodes_samples_and_drops(collector: Collector) -> None:
    found = exporter_to(collector.port)
    tcp_flags = next(number for number, reason in reasons.drops().items() if reason.name == "tcp-flags")
    for one in (
        sample(FLOW),
        sample(FLOW, direction=0, vip_id=0, outcome=0, egress_port=1),
        sample(DROP, reason=tcp_flags, egress_port=0),
        sample(DROP, reason=1, direction=0, egress_port=0),
    ):
        found._waiting.append(found._described(one))
    found.flush()
    until(lambda: len(collector.lines()) == 1)
    (datagram,) = collector.lines()
    packet = datagram["packet"] if "packet" in datagram else datagram["message"]
    assert (packet["version"], packet["agent-ip"], packet["sub-agent-id"]) == (5, "192.0.2.1", 1)
    flow, transit, drop, unknown_port = packet["samples"]
    assert (flow["sampling-rate"], flow["sample-pool"], flow["input"], flow["output"]) == (256, 5000, 1, 2)
    records = {record["header"]["data-format"]: record["data"] for record in flow["records"]}
    assert records[1]["frame-length"] == 1518
    assert records[1038]["symbol"] == "retrieved-cookie vip=shop server=web1"
    assert 1007 in records
    assert {record["header"]["data-format"] for record in transit["records"]} == {1, 1038}
    assert (drop["input"], drop["output"], drop["reason"]) == (1, 0, 289)
    assert [record["data"]["symbol"] for record in drop["records"] if record["header"]["data-format"] == 1038] == [
        "tcp-flags vip=shop"
    ]
    assert unknown_port["reason"] == sflow.UNKNOWN
    assert found.counts == {"flow": 2, "drop": 2}


async def test_full_buffer_loses_samples_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "MAX_WAITING", 3)
    found = exporter_to(free_port())
    found._decode = lambda _message: sample(FLOW)
    for _ in range(5):
        found.on_packet(None)  # type: ignore[arg-type]
    assert found.counts == {"lost": 2}
    found.flush()
    # No collector listens: the system reports that of the first datagram before the second one.
    found.on_packet(None)  # type: ignore[arg-type]
    await asyncio.sleep(0.1)
    found.flush()
    assert found.counts == {"lost": 3, "flow": 3}


async def test_datagrams_are_shorter_than_a_frame(collector: Collector) -> None:
    found = exporter_to(collector.port)
    for _ in range(50):
        found._waiting.append(found._described(sample(FLOW)))
    found.flush()

    def samples() -> list[Any]:
        lines = collector.lines()
        return [one for line in lines for one in (line.get("packet") or line["message"])["samples"]]

    until(lambda: len(samples()) == 50)
    assert len(collector.lines()) > 5
    assert sorted(one["header"]["sample-sequence-number"] for one in samples()) == list(range(1, 51))


def test_report_of_int_has_the_bytes_of_its_specification() -> None:
    card = sample(POSTCARD, hop_latency=1234, queue_depth=56)
    report = postcards.report(card, 7, 9)
    words = 2 + 3 + len(TO_VIP) // 4 + (len(TO_VIP) % 4 > 0)
    assert report[:8] == bytes.fromhex("20000009 00000007".replace(" ", ""))
    assert report[8:12] == bytes([0x13, words, 3, 0x20])
    assert report[12:20] == bytes.fromhex("7000 0000 0000 0000".replace(" ", ""))
    assert struct.unpack("!2H2I", report[20:32]) == (1, 2, 1234, 56)
    assert report[32 : 32 + len(TO_VIP)] == TO_VIP
    assert len(report) == 12 + 4 * words


def test_program_without_samples_has_no_decoder() -> None:
    schema = Schema.load(Path(__file__).parents[2] / "build" / "p4" / "frontage.p4info.txtpb")
    assert decoder(schema) is not None
    schema.packet_in = ()
    assert decoder(schema) is None
