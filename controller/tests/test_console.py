# SPDX-License-Identifier: Apache-2.0
"""The part of the API that the web console needs: its files, samples, explanations of flows, and packets on their way."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import EXAMPLE, QUIC_EXAMPLE, ROOT, Switch, for_switch
from frontage.api import access
from frontage.api.app import Shared, application
from frontage.api.client import RequestError, local, remote
from frontage.api.offline import Offline
from frontage.config import Config, load
from frontage.cookie import Ip6Cookie, tweak
from frontage.p4.reasons import drops
from frontage.service.flow import FlowError, Query, explain
from frontage.service.probe import Flags, ProbeError, Segment, frame
from frontage.service.samples import Report, decode_report
from live import LIMIT, installed_service
from test_api import LOCAL, url, with_api
from texts import replaced

CLIENT = "198.51.100.7"
IS_BUILT = (ROOT / "console" / "dist" / "index.html").exists()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(Path(shutil.copy(EXAMPLE, tmp_path / "demo.yaml")))


@pytest.fixture
async def offline(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    file = Path(shutil.copy(EXAMPLE, tmp_path / "demo.yaml"))
    app = application(Shared(Offline(file)), access.local)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=LOCAL), base_url="http://test") as client:
        yield client


# Files.


@pytest.mark.skipif(not IS_BUILT, reason="the console is not built: run `make console`")
async def test_files_of_the_console_have_a_strict_policy(offline: httpx.AsyncClient) -> None:
    page = await offline.get("/console/")
    assert page.status_code == 200
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["Cache-Control"] == "no-cache"
    script = page.text.split('src="./assets/')[1].split('"')[0]
    asset = await offline.get(f"/console/assets/{script}")
    assert asset.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in asset.headers["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/console/../pyproject.toml", "/console/%2e%2e/package.json", "/console//etc/passwd", "/console/none"]
)
async def test_only_files_of_the_console_are_served(offline: httpx.AsyncClient, path: str) -> None:
    assert (await offline.get(path)).status_code == 404


async def test_the_root_leads_to_the_console(offline: httpx.AsyncClient) -> None:
    answer = await offline.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (307, "/console/")


async def test_samples_need_a_running_controller(offline: httpx.AsyncClient) -> None:
    for path in ("samples", "samples/vips/shop", "sites"):
        answer = await offline.get(f"/v1/{path}")
        assert answer.status_code == 503
        assert "no controller is running: run `frontage up " in answer.json()["detail"]
    assert (await offline.get("/v1/me")).json()["role"] == "admin"


# Flows.


def found(config: Config, text: str, **more: Any) -> tuple[str, str | None, str]:
    explanation = explain(config, Query(text, **more))
    server = None if explanation.server is None else explanation.server.name
    return explanation.kind, server, "; ".join(f"{one.what}: {one.result}" for one in explanation.findings)


def test_a_static_cookie_names_its_server(config: Config) -> None:
    client, port = ip_address(CLIENT), 40000
    code = config.cookie_keys[-1].seal_tcp(2, tweak(client, ip_address("203.0.113.10"), port, 80))
    kind, server, text = found(config, str(0x1234 << 16 | code), client=client, client_port=port)
    assert (kind, server) == ("timestamp", "web2")
    assert "key 1: unseals it" in text
    # It is sealed for this connection only.
    assert "key 1: does not unseal it" in found(config, hex(code), client=client, client_port=port + 1)[2]


def test_a_client_without_a_cookie_belongs_to_the_owner_of_its_slot(config: Config) -> None:
    kind, server, text = found(config, f"{CLIENT}:40000")
    assert kind == "client"
    assert server in {"web1", "web2", "web3"}  # web4 drains
    assert "belongs to SID" in text
    assert found(config, CLIENT, client_port=40000)[1] == server


@pytest.mark.parametrize(
    ("text", "server", "part"),
    [
        ("203.0.113.10", None, "is the address of shop (tcp port 80)"),
        ("10.0.0.12", "web2", "web2 of the VIP shop, port 8080, SID 2"),
        ("192.0.2.77", None, "add a port to look up a client"),
        ("0x00000421", None, "N_AF 1, N_FF 1, RPT 8 us"),
    ],
)
def test_addresses_and_dynamic_cookies_are_explained(config: Config, text: str, server: str | None, part: str) -> None:
    _, name, findings = found(config, text)
    assert name == server
    assert part in findings


def test_cookies_of_quic_name_their_server(tmp_path: Path) -> None:
    config = load(Path(shutil.copy(QUIC_EXAMPLE, tmp_path / "quic.yaml")))
    server = config.servers[0]
    vip = next(vip for vip in config.vips if vip.name == server.vip)
    key = config.cookie_keys[-1]
    assert vip.cookie_prefix is not None
    word = key.seal_ip6(Ip6Cookie(server.sid, rpt=3, n_af=5, n_ff=2, dynamic=True))
    address = str(ip_address(int(vip.cookie_prefix.network_address) | word))
    kind, name, text = found(config, address)
    assert (kind, name) == ("cookie-address", server.name)
    assert "N_AF 5, N_FF 2, RPT 24 us" in text
    kind, name, _ = found(config, key.seal_cid(server.sid, 7, b"abc").hex())
    assert (kind, name) == ("connection-id", server.name)
    forged = str(ip_address(int(vip.cookie_prefix.network_address) | word ^ 1 << 20))
    assert "COOKIE_FORGED" in found(config, forged)[2]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("nothing", {}, 'unknown kind of text "nothing": enter an address'),
        ("4294967296", {}, "must be a 32-bit number"),
        (f"{CLIENT}:0", {}, "invalid port 0: use 1 to 65535"),
        (f"{CLIENT}:1", {"vip": "shop6"}, 'no VIP "shop6" with an IPv4 address'),
    ],
)
def test_other_texts_are_rejected(config: Config, text: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(FlowError, match=message.replace("(", r"\(")):
        explain(config, Query(text, **more))


# Packets.


def test_segments_have_valid_checksums(config: Config) -> None:
    from scapy.layers.inet import TCP
    from scapy.layers.l2 import Ether

    for vip, client in (("shop", CLIENT), ("shop6", "2001:db8:9::7")):
        made = frame(config, Segment(vip, ip_address(client), 40000, Flags.SYN, 1, 0))
        assert made.port == 1
        packet = Ether(made.data)
        checksums = [layer.fields.get("chksum") for layer in (packet.payload, packet[TCP])]
        for layer in (packet.payload, packet[TCP]):
            layer.fields.pop("chksum", None)
        again = Ether(bytes(packet))
        assert [layer.fields.get("chksum") for layer in (again.payload, again[TCP])] == checksums
        assert packet.dst == "02:00:00:00:01:01"


@pytest.mark.parametrize(
    ("vip", "client", "message"),
    [("none", CLIENT, 'unknown VIP "none": use one of shop, shop6'), ("shop6", CLIENT, "has an IPv6 address")],
)
def test_segments_that_cannot_be_built(config: Config, vip: str, client: str, message: str) -> None:
    with pytest.raises(ProbeError, match=message):
        frame(config, Segment(vip, ip_address(client), 40000))


def test_reports_are_decoded_by_their_carrier() -> None:
    # TCP: RPT 9 units of 8 us have the code 8, N_AF 3 and N_FF 10 the codes 3 and 9; the score is 6.5 flows.
    assert decode_report(1 << 56 | 8 << 48 | 3 << 40 | 9 << 32 | 1 << 16 | 104) == Report(3, 10, 64, 6.5)
    assert decode_report(2 << 56 | 3 << 48 | 5 << 40 | 2 << 32) == Report(5, 2, 24, None)
    assert decode_report(0) is None


# A running controller.


async def test_samples_of_a_running_controller(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        sample = (await client.send("GET", "/samples")).body
        assert [(vip["name"], vip["active"], vip["draining"]) for vip in sample["vips"]] == [("shop", 3, 1), ("shop6", 1, 0)]
        assert [(one["name"], one["phase"], one["role"]) for one in sample["switches"]] == [("switch", "installed", "primary")]
        assert sample["keys"][0]["since"] is not None
        servers = (await client.send("GET", "/samples/vips/shop")).body["servers"]
        assert [(server["name"], server["state"]) for server in servers][-1] == ("web4", "draining")
        with pytest.raises(RequestError, match='unknown VIP "none"'):
            await client.send("GET", "/samples/vips/none")


async def test_an_injected_syn_shows_its_way_and_why_it_is_dropped(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        inject = {"vip": "shop", "client": CLIENT, "client_port": 40000}
        passes = (await client.send("POST", "/captures", {"seconds": 5, "inject": inject})).body["passes"]
        assert passes[0]["pass"] == "ingress"
        tables = [step["table"] for one in passes for step in one["steps"] if step["step"] == "table"]
        assert any(name.endswith("vip4") for name in tables)
        # No host answers for the server's address here, so the switch has no next hop.
        steps = [step for one in passes for step in one["steps"]]
        counted = [step["args"] for step in steps if step["step"] == "extern" and step["call"] == "count"]
        number = next(number for number, reason in drops().items() if reason.name == "no-next-hop")
        assert ("FrontageIngress.drops", str(number)) in [(args["counter"], args["index"]) for args in counted]
        assert (await client.send("GET", "/samples")).body["drops"]["no-next-hop"]["packets"] == 1


async def test_a_changed_location_is_shown_and_writes_nothing(folder: Path, switch: Switch) -> None:
    file = for_switch(EXAMPLE.with_name("artemis.yaml"), folder, switch)
    shutil.copy(EXAMPLE.with_name("artemis-mapping.json"), folder)

    async with installed_service(file) as service, local(service.control.path, LIMIT) as client:

        async def locations() -> list[Any]:
            sites = (await client.send("GET", "/sites")).body["sites"]
            assert [site["out"] for site in sites] == [False, False]
            return [site["location"] for site in sites]

        tokyo = {"latitude": 35.7, "longitude": 139.7}
        assert await locations() == [{"latitude": 50.1, "longitude": 8.7}, tokyo]
        text = replaced(file.read_text(), "location: { latitude: 50.1, longitude: 8.7 }", "")
        planned = (await client.send("POST", "/plans", {"text": text, "entries": True})).body
        assert planned["effect"] == "none"
        assert planned["switches"]["switch"]["updates"] == []
        await client.send("POST", "/plans/apply", planned)
        assert await locations() == [None, tokyo]


async def test_a_packet_that_does_not_come_has_no_way(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        wanted = {"seconds": 0.2, "source": CLIENT, "destination_port": 80}
        assert (await client.send("POST", "/captures", wanted)).body == {"device": "switch", "passes": []}


async def test_viewers_cannot_follow_packets(config_file: Path) -> None:
    tokens = with_api(config_file)
    async with installed_service(config_file) as service, remote(url(service), LIMIT, tokens[access.Role.VIEWER]) as client:
        assert (await client.send("GET", "/me")).body["role"] == "viewer"
        with pytest.raises(RequestError, match="the role viewer does not permit this request: it requires operator"):
            await client.send("POST", "/captures", {"seconds": 0.2})
