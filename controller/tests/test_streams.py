# SPDX-License-Identifier: Apache-2.0
"""Streams per real server: the text of an agent, readings of real HTTP servers, and samples of a running controller."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import texts
from authorities import Authority
from conftest import EXAMPLE, Switch, for_switch
from frontage.api.access import Role
from frontage.api.client import RequestError, local, remote
from frontage.changes import plan
from frontage.changes.plan import Effect, Field
from frontage.config import load, loads
from frontage.config.agent_metrics import AgentMetrics
from frontage.service import agents
from frontage.service.agents import AgentReading, Agents
from frontage.service.daemon import Service
from frontage.service.streams import MetricsError, Streams, parse
from live import LIMIT, installed_service, only, until
from metrics_server import TEXT, MetricsServer
from test_api import url, with_api
from texts import problems, replaced

QDSR = EXAMPLE.with_name("qdsr.yaml")
FILE = Path("qdsr.yaml")
YAML = QDSR.read_text(encoding="utf-8")
edited = partial(texts.edited, YAML)
FIRST = "port: 8443, sid: 1 }"
REAL1 = Streams(120, 3, 2, 5, 4_800_000, {"small": 0, "busy": 7, "path": 0, "request": 0})


def with_metrics(value: str) -> str:
    """Return the example whose first load balancer has metrics."""
    return edited((FIRST, f"port: 8443, sid: 1, metrics: {value} }}"))


# The configuration.


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"10.0.1.1:9153"', 'invalid URL "10.0.1.1:9153": neither http nor https: give the http or https URL'),
        ('"ftp://10.0.1.1/metrics"', 'invalid URL "ftp://10.0.1.1/metrics": neither http nor https'),
        ('"http:///metrics"', 'invalid URL "http:///metrics": invalid host'),
        ('"http://10.0.1.1:99999/"', 'invalid URL "http://10.0.1.1:99999/": Port out of range 0-65535'),
        ('"http://10.0.1.1:0/"', 'invalid URL "http://10.0.1.1:0/": invalid port'),
        ('"http://[fd00::1/metrics"', 'invalid URL "http://[fd00::1/metrics": Invalid IPv6 URL'),
        ('"http://me:secret@10.0.1.1/"', "invalid URL: it contains a user name: give the"),
        ('"http://10.0.1.1/#x"', "it has a fragment"),
        ('"http://10.0.1.1/a b"', 'invalid URL "http://10.0.1.1/a b": give'),
        ("{ ca_file: ca.pem }", "missing: add the http or https URL of the Prometheus metrics of the server's agent"),
        ('{ url: "http://a/", ca: ca.pem }', 'unknown key "ca": remove it or use one of: url, ca_file'),
        ("[a]", "must be a mapping of fields"),
    ],
)
def test_invalid_metrics_have_position_problem_and_fix(value: str, says: str) -> None:
    said = problems(with_metrics(value), FILE)
    assert any("qdsr.yaml:57:" in line and "servers[0].metrics" in line and says in line for line in said), said
    assert not any("secret" in line for line in said)


def test_metrics_of_tcp_servers_are_rejected() -> None:
    text = edited(
        ("\n# The load balancers", '\n  - { name: web, address: "2001:db8:ffff::30", port: 80 }\n\n# The load balancers'),
        (
            "real_servers:\n",
            "  - { name: web1, vip: web, address: 10.0.0.13, port: 80, sid: 9, metrics: 'http://a/' }\nreal_servers:\n",
        ),
    )
    assert any("VIP web uses TCP, but the agents of QUIC servers count streams: remove it" in line for line in problems(text, FILE))


def test_the_url_may_stand_for_the_mapping() -> None:
    short, long = (loads(with_metrics(value), FILE) for value in ('"https://a/m"', '{ url: "https://a/m" }'))
    assert short.servers[0].metrics == long.servers[0].metrics == AgentMetrics(url="https://a/m")
    assert short.servers[1].metrics is None


def test_authorities_are_relative_to_the_file(tmp_path: Path) -> None:
    config = loads(with_metrics('{ url: "https://a/m", ca_file: ca.pem }'), tmp_path / "qdsr.yaml")
    assert config.servers[0].metrics is not None
    assert config.servers[0].metrics.ca_file == tmp_path / "ca.pem"


def test_no_connection_notices_metrics() -> None:
    (step,) = plan.steps(loads(YAML, FILE), loads(with_metrics('"http://a/m"'), FILE))
    assert (step.name, step.effect, step.fields) == ("film1", Effect.NONE, (Field("metrics", None, "url http://a/m"),))


async def test_operators_cannot_set_metrics(qdsr_file: Path) -> None:
    tokens = with_api(qdsr_file)
    server = {"name": "film3", "vip": "films", "address": "2001:db8:a:1::10", "port": 8444}
    async with installed_service(qdsr_file) as service, remote(url(service), LIMIT, tokens[Role.OPERATOR]) as client:
        with pytest.raises(RequestError, match=r"metrics: .*not permitted"):
            await client.send("POST", "/servers", {**server, "metrics": "http://127.0.0.1/"})
        with pytest.raises(RequestError, match=r"metrics: .*not permitted"):
            await client.send("PATCH", "/servers/film1", {"metrics": "http://127.0.0.1/"})
        with pytest.raises(RequestError, match="it requires admin"):
            await client.send("PUT", "/configuration", text=with_metrics('"http://127.0.0.1/"'))


# The text.


def test_streams_are_those_of_the_agent() -> None:
    found = parse(TEXT)
    assert found.streams["real1"] == REAL1
    assert found.streams["real2.example"].rejected["path"] == 4


def test_real_servers_match_by_name_or_else_by_address() -> None:
    config = load(QDSR)
    streams, unmatched = parse(TEXT).match(config.real_servers)
    assert {name: found.completed for name, found in streams.items()} == {"real1": 120, "real2": 80}
    assert unmatched == []
    # An older agent does not export addresses.
    older = "\n".join(line for line in TEXT.splitlines() if "_info" not in line) + "\n"
    streams, unmatched = parse(older).match(config.real_servers)
    assert (list(streams), unmatched) == (["real1"], ["real2.example"])


def test_two_names_of_a_real_server_are_added() -> None:
    found = parse(TEXT.replace("[2001:db8:3::2]:4500", "10.0.3.1:4501"))
    streams, _ = found.match(load(QDSR).real_servers)
    assert streams["real1"] == Streams(200, 3, 2, 6, 8_000_000, {"small": 0, "busy": 7, "path": 4, "request": 0})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "invalid metrics: Missing # EOF at end"),
        ("<html>\n", "invalid metrics: "),
        (TEXT.replace("# EOF\n", ""), "invalid metrics: Missing # EOF at end: give the URL of the agent's metrics"),
        (TEXT.replace('answers_total{server="real1"} 120', 'answers_total{server="real1"} NaN'), "invalid metrics: "),
        (TEXT.replace('requests{server="real1"} 5', 'requests{server="real1"} -5'), "requests is -5"),
        (TEXT.replace('requests{server="real1"} 5', 'requests{server="real1"} 1e300'), "requests is 1e+300"),
        ("# TYPE up gauge\nup 1\n# EOF\n", "no metrics of real servers: give the URL of an agent whose configuration has"),
    ],
)
def test_other_texts_are_rejected(text: str, says: str) -> None:
    with pytest.raises(MetricsError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 200


# Readings.


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer().running() as server:
        yield server


async def done(found: Agents) -> None:
    """Wait until no reading is going on."""
    await until(lambda: not any(endpoint.is_busy for endpoint in found._endpoints.values()))


async def read(settings: AgentMetrics, of: Agents | None = None) -> AgentReading:
    """Return a reading that was begun now."""
    found = Agents() if of is None else of
    found.refresh([settings])
    await done(found)
    return found.reading(settings)


async def test_a_reading_has_the_streams_and_its_time(server: MetricsServer) -> None:
    before = time.time()
    found = await read(AgentMetrics(url=server.url()))
    assert found.error is None
    assert found.time is not None and before <= found.time <= time.time()
    assert found.delegated.streams["real1"] == REAL1


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/slow", "no complete response within 0.5 s: see whether the agent runs"),
        ("/silent", "no complete response within 0.5 s: see whether the agent runs"),
        ("/large", "more than 1048576 bytes: give the URL of the agent's metrics"),
        ("/garbage", "invalid metrics: "),
        ("/truncated", "invalid metrics: "),
        ("/other", "no metrics of real servers"),
        ("/none", "status 404: give the URL of the agent's metrics"),
        ("/redirect", "redirects to http://127.0.0.1:"),
    ],
)
async def test_a_failed_reading_says_why(server: MetricsServer, path: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "TIMEOUT", 0.5)
    found = await read(AgentMetrics(url=server.url(path)))
    assert says in (found.error or "")
    assert (found.time, found.delegated.streams) == (None, {})
    assert server.requests == [path]  # in particular, a redirect is not followed
    # Nothing near the 100 MB was read: the rest is what the kernel holds.
    assert server.sent < 20_000_000


async def test_an_agent_that_is_gone_leaves_the_last_reading(server: MetricsServer) -> None:
    settings, found = AgentMetrics(url=server.url()), Agents()
    first = (await read(settings, found)).time
    server.text = "<html>"
    await asyncio.sleep(agents.MIN_INTERVAL)
    last = await read(settings, found)
    assert last.time == first
    assert "invalid metrics" in (last.error or "")
    assert last.delegated.streams["real1"] == REAL1
    server.text = TEXT
    await asyncio.sleep(agents.MIN_INTERVAL)
    assert (await read(settings, found)).error is None


async def test_an_unreachable_agent_is_named() -> None:
    with MetricsServer().running() as gone:
        url = gone.url()
    found = await read(AgentMetrics(url=url))
    assert found.error is not None and found.error.startswith("unreachable: ")
    assert "Connect call failed" in found.error


async def test_requests_at_the_same_time_share_a_reading(server: MetricsServer) -> None:
    settings, found = AgentMetrics(url=server.url()), Agents()
    for _ in range(10):
        found.refresh([settings, settings])
        await asyncio.sleep(0.01)
    await done(found)
    assert server.requests == ["/metrics"]


async def test_agents_are_read_concurrently(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "TIMEOUT", 0.5)
    found = Agents()
    wanted = [AgentMetrics(url=server.url(f"/silent?{n}")) for n in range(10)]
    fine = AgentMetrics(url=server.url())
    began = time.monotonic()
    found.refresh([*wanted, fine])
    await until(lambda: found.reading(fine).time is not None)
    await done(found)
    assert time.monotonic() - began < 5  # one after the other, they would take 5 s


async def test_a_reading_is_forgotten_if_it_is_not_used(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, found = AgentMetrics(url=server.url()), Agents()
    await read(settings, found)
    monkeypatch.setattr(agents, "FORGET_AFTER", 0.0)
    found.refresh([])
    assert found.reading(settings) == AgentReading()


async def test_https_needs_an_authority_that_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with MetricsServer(authority.issue("agent", "127.0.0.1")).running() as server:
        found = await read(AgentMetrics(url=server.url(), ca_file=authority.pem))
        assert found.delegated.streams["real1"] == REAL1
        found = await read(AgentMetrics(url=server.url()))
        assert "unable to get local issuer certificate" in (found.error or "")
        assert (found.error or "").endswith("give its authority as `ca_file`")
        found = await read(AgentMetrics(url=server.url(), ca_file=tmp_path / "none.pem"))
        assert "none.pem: cannot load the authorities" in (found.error or "")


async def test_proxies_of_the_environment_are_not_used(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert (await read(AgentMetrics(url=server.url()))).error is None


# A running controller.


@pytest.fixture
def qdsr_file(folder: Path, switch: Switch) -> Path:
    return for_switch(QDSR, folder, switch)


async def sampled(service: Service, name: str) -> dict[str, Any]:
    """Return a server of a sample of the VIP films."""
    async with local(service.control.path, LIMIT) as client:
        found = (await client.send("GET", "/samples/vips/films")).body["servers"]
    return next(server for server in found if server["name"] == name)


async def sampled_with(service: Service, name: str, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return a server of the first sample in which it is as wanted."""
    async with asyncio.timeout(LIMIT):
        while not is_wanted(server := await sampled(service, name)):
            await asyncio.sleep(0.1)
        return server


async def test_samples_have_the_streams_of_real_servers(qdsr_file: Path, server: MetricsServer) -> None:
    text = qdsr_file.read_text()
    server.text = TEXT.replace('"real2.example"', '"other.example"').replace("[2001:db8:3::2]", "[2001:db8:9::9]")
    qdsr_file.write_text(replaced(text, FIRST, f'port: 8443, sid: 1, metrics: "{server.url()}" }}'))
    async with installed_service(qdsr_file) as service:
        assert server.requests == []  # no client looks
        film1 = await sampled_with(service, "film1", lambda found: found["agent"]["time"] is not None)
        assert film1["agent"]["error"] is None
        assert film1["agent"]["age"] < 10
        assert film1["agent"]["unmatched"] == ["other.example"]
        real1, real2 = film1["real_servers"]
        assert (real1["name"], real1["port"], real1["packets"], real1["streams"]) == ("real1", "rack3", 0, asdict(REAL1))
        assert (real2["name"], real2["port"], real2["streams"]) == ("real2", "rack3", None)
        film2 = await sampled(service, "film2")
        assert film2["agent"] is None
        assert [(one["name"], one["streams"]) for one in film2["real_servers"]] == [
            ("real1", None),
            ("real2", None),
            ("real3", None),
        ]
        async with local(service.control.path, LIMIT) as client:
            for path in ("/samples", "/samples/vips/films-v4"):
                server.requests.clear()
                await asyncio.sleep(agents.MIN_INTERVAL)
                await client.send("GET", path)
                assert server.requests == []


async def test_a_change_of_metrics_writes_nothing_and_a_hanging_agent_delays_nothing(
    qdsr_file: Path, server: MetricsServer
) -> None:
    text = qdsr_file.read_text()
    async with installed_service(qdsr_file) as service:
        health = only(service).health
        writes, turns = health.writes.total(), health.reconciliations

        async def change_to(path: str) -> dict[str, Any]:
            qdsr_file.write_text(replaced(text, FIRST, f'port: 8443, sid: 1, metrics: "{server.url(path)}" }}'))
            return await sampled_with(service, "film1", lambda _: path in server.requests)

        await change_to("/metrics")
        film1 = await change_to("/silent")
        assert health.writes.total() == writes
        assert film1["agent"] == {"time": None, "age": None, "error": None, "unmatched": []}
        slowest = 0.0
        while film1["agent"]["error"] is None:
            began = time.monotonic()
            film1 = await sampled(service, "film1")
            slowest = max(slowest, time.monotonic() - began)
        assert film1["agent"]["error"].startswith("no complete response within 2 s")
        assert slowest < agents.TIMEOUT / 2
        assert (await sampled(service, "film1"))["real_servers"][0]["streams"] is None
        assert health.reconciliations > turns
