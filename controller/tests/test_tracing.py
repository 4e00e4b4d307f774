# SPDX-License-Identifier: Apache-2.0
"""Traces of reconciliations, which a real OpenTelemetry Collector receives and writes to a file."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from frontage.observe import tracing
from test_fleet import fleet_file, switches
from test_service import FRONTAGE, LIMIT, command, until, up

__all__ = ["fleet_file", "switches"]

pytestmark = pytest.mark.timeout(200)

BUILT = Path(__file__).parents[2] / "build" / "otelcol"
BINARY = os.environ.get("OTELCOL") or (str(BUILT) if BUILT.exists() else shutil.which("otelcol"))

PICTURE = Path(__file__).parents[2] / "tools" / "trace_picture.py"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """A running collector."""

    def __init__(self, folder: Path):
        if BINARY is None:
            pytest.skip("otelcol is missing: run `make build/otelcol`")
        self.ports = {protocol: free_port() for protocol in ("http", "grpc")}
        self.file = folder / "traces.json"
        protocols = {protocol: {"endpoint": f"127.0.0.1:{port}"} for protocol, port in self.ports.items()}
        settings = {
            "receivers": {"otlp": {"protocols": protocols}},
            "exporters": {"file": {"path": str(self.file)}},
            "service": {
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
        }
        config = folder / "otelcol.json"
        config.write_text(json.dumps(settings))
        self._process = subprocess.Popen([BINARY, "--config", str(config)])
        until(lambda: self._process.poll() is not None or all(listens(port) for port in self.ports.values()))
        assert self._process.poll() is None

    def spans(self) -> list[dict[str, Any]]:
        """Return the received spans."""
        requests = [json.loads(line) for line in self.file.read_text().splitlines()]
        scopes = [scope for request in requests for resource in request["resourceSpans"] for scope in resource["scopeSpans"]]
        return [span for scope in scopes for span in scope["spans"]]

    def resources(self) -> list[dict[str, Any]]:
        """Return the attributes of the senders."""
        requests = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [attributes(resource["resource"]) for request in requests for resource in request["resourceSpans"]]

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(LIMIT) == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def attributes(owner: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in owner["attributes"]}


@pytest.fixture
def collector(folder: Path) -> Iterator[Collector]:
    collector = Collector(folder)
    yield collector
    collector.stop()


def below(spans: list[dict[str, Any]], root: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """Return the spans that are reached from ``root`` by children of these names, which must exist."""
    level = [root]
    for name in names:
        parents = {span["spanId"] for span in level}
        level = [span for span in spans if span["name"] == name and span.get("parentSpanId") in parents]
        assert level, f"no span {name} below {[span['name'] for span in spans if span['spanId'] in parents]}"
    return level


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_one_trace_leads_from_a_request_to_the_writes_of_each_switch(
    fleet_file: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.ports[protocol[:4]]}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    transport = httpx.HTTPTransport(uds=str(fleet_file.with_name(f".{fleet_file.name}.sock")))
    with up(fleet_file), httpx.Client(transport=transport, base_url="http://frontage/v1", timeout=LIMIT) as client:
        assert client.post("/installation").json() == {"missing": []}
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        answer = client.patch("/vips/shop", json={"policy": "hash"}, headers=headers)
        assert answer.status_code == 200
        text = fleet_file.read_text()
        assert client.post("/plans", json={"text": text}, headers={"X-Request-ID": "1" * 32}).status_code == 200
        # The id that the command prints is that of the trace.
        failed = command("drain", "web9", "-c", str(fleet_file), code=1)
    # The controller sends the last spans before it ends.
    spans = collector.spans()
    (request,) = (span for span in spans if span["name"] == "PATCH /v1/vips/shop")
    assert (request["traceId"], request["parentSpanId"]) == (TRACE, PARENT)
    assert request["spanId"] == answer.headers["traceparent"].split("-")[2]
    assert attributes(request)["http.response.status_code"] == "200"
    below(spans, request, "journal")
    installations = below(spans, request, "installation", "rollout", "reconciliation")
    assert [attributes(span)["frontage.device"] for span in sorted(installations, key=lambda span: span["startTimeUnixNano"])] == [
        "edge1",
        "edge2",
    ]
    for installation in installations:
        below(spans, installation, "plan", "P4Runtime Read")
        writes = below(spans, installation, "P4Runtime Write")
        assert sum(int(attributes(write)["frontage.updates"]) for write in writes) > 0
    (plan,) = (span for span in spans if span["name"] == "POST /v1/plans")
    assert plan["traceId"] == "1" * 32
    assert len(below(spans, plan, "preview")) == 2
    (drain,) = (span for span in spans if span["name"] == "PATCH /v1/servers/web9")
    assert f"(request {drain['traceId']})" in failed
    draw = [sys.executable, str(PICTURE), str(collector.file), TRACE]
    picture = ElementTree.fromstring(subprocess.run(draw, capture_output=True, text=True, check=True, timeout=LIMIT).stdout)
    bars = [one for one in picture if one.get("class") in ("bar", "write")]
    assert len(bars) == sum(span["traceId"] == TRACE for span in spans) > 10
    assert {one["service.name"] for one in collector.resources()} == {"frontage"}
    assert {one["deployment.environment.name"] for one in collector.resources()} == {"test"}


def test_collector_that_is_down_does_not_disturb_the_controller(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with up(config_file):
        until(lambda: config_file.with_name(".demo.yaml.sock").exists())
        assert "policy of shop is hash: installed" in command("set-policy", "shop", "hash", "-c", str(config_file))


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "OTEL_TRACES_EXPORTER: unknown exporter in jaeger: use otlp, console or none"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: unknown protocol http/json: use http/protobuf or grpc",
        ),
    ],
)
def test_unknown_settings_are_rejected(
    config_file: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], problem: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert problem in command("up", str(config_file), code=1)


def test_tracing_is_off_without_variables_and_loads_nothing() -> None:
    for off in ({}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}):
        assert not tracing.is_wanted(off)
    code = (
        "import sys, frontage.cli, frontage.service.daemon, frontage.observe.tracing as t; assert not t.start(lambda: None);"
        "assert t.span('one') is t.span('two', updates=2); t.begin('x').end();"
        "assert not [name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))]"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT, env=environment)


def test_missing_library_is_reported(config_file: Path) -> None:
    block = "import importlib.util as u; find = u.find_spec; u.find_spec = lambda n: None if n == 'opentelemetry.sdk' else find(n);"
    run = f"{block} import sys; sys.argv[1:] = ['up', {str(config_file)!r}]; from frontage.cli import main; main()"
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "otlp"}
    done = subprocess.run([FRONTAGE[0], "-c", run], capture_output=True, text=True, timeout=LIMIT, env=environment, check=False)
    assert done.returncode == 1
    assert "run `pip install 'frontage[tracing]'`" in done.stderr
