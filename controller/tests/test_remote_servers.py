# SPDX-License-Identifier: Apache-2.0
"""Remote servers: checks of the file, entries, status and metrics."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest
from rich.console import Console

import texts
from conftest import EXAMPLE, Switch, for_switch
from frontage.cli.show import render
from frontage.config import Config, load, loads
from frontage.p4.entries import Action, Key, State
from frontage.service.metrics import _counter_metrics
from frontage.service.status import merge, read_counters, read_status
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import encapsulation, remote_servers, server, tunnel
from frontage.state.desired import STAGES, desired
from live import connected, installed, running
from texts import problems

REMOTE = EXAMPLE.with_name("remote-servers.yaml")
TEXT = REMOTE.read_text(encoding="utf-8")
edited = partial(texts.edited, TEXT)
FILE = Path("remote-servers.yaml")
WEB1 = "encapsulation: { kind: vxlan, endpoint: 10.9.0.11, vni: 7, mtu: 9000 }"
WEB2 = "encapsulation: { kind: gre, endpoint: 10.9.0.12, key: 5 }"
FILM1 = 'encapsulation: { kind: ipip, endpoint: "2001:db8:9::20" }'
VTEP4, VTEP6 = (int(ip_address(address)) for address in ("10.8.0.1", "2001:db8:8::1"))


def number(address: str) -> int:
    return int(ip_address(address))


def wanted(text: str) -> State:
    config: Config = loads(text, FILE)
    return desired(config, allocate(config, Installed({})))


def of(state: State, *tables: str) -> State:
    return {key: action for key, action in state.items() if key.table in tables}


ARTEMIS = "artemis: { name: films.example, id: 3 }\n    "


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (
            edited((WEB1, "encapsulation: vlan")),
            "55:20: servers[1].encapsulation.kind",
            'unknown kind "vlan": use ',
        ),
        (
            edited((WEB1, "encapsulation: { kind: vxlan, vnid: 7 }")),
            "55:35: servers[1].encapsulation.vnid",
            'unknown key "vnid": remove it or use one of: kind, endpoint, vni, key, mtu, answers',
        ),
        (edited((WEB1, "encapsulation: { vni: 7 }")), "servers[1].encapsulation.kind", "missing: add one of none, vxlan, gre, "),
        (
            edited((WEB1, "encapsulation: 7")),
            "55:20: servers[1].encapsulation.kind",
            'unknown kind "7": use one of none, vxlan, gre, geneve, ipip',
        ),
        (edited(("vni: 7", "vni: 16777216")), "55:61: servers[1].encapsulation.vni", '"16777216" is above the maximum of 16777215'),
        (edited(("key: 5", "vni: 5")), "61:54: servers[2].encapsulation.vni", "gre has no VNI: remove it"),
        (edited(("vni: 7", "key: 7")), "55:56: servers[1].encapsulation.key", "vxlan has no key: remove it"),
        (
            edited((WEB1, "encapsulation: { kind: none, mtu: 1400 }")),
            "servers[1].encapsulation.mtu",
            'unknown key "mtu" for none: remove it',
        ),
        (edited(("mtu: 9000", "mtu: 500")), "servers[1].encapsulation.mtu", '"500" is below the minimum of 576'),
        (edited(("answers: routed", "answers: direct")), "servers[5].encapsulation.answers", 'unknown answers "direct": use '),
        (
            edited((FILM1, 'encapsulation: { kind: vxlan, endpoint: "2001:db8:9::20", mtu: 1349 }')),
            "85:68: servers[6].encapsulation.mtu",
            "vxlan over IPv6 leaves 1279 bytes of an MTU of 1349, but QUIC and IPv6 need 1280: use a network that carries 1350 bytes",
        ),
        (
            edited(("10.9.0.11", "10.7.0.11"), ("  - { prefix: 0.0.0.0/0, port: uplink, next_hop: 192.0.2.254 }\n", "")),
            "servers[1].encapsulation.endpoint",
            "no route to 10.7.0.11 by a port of role 'server': add one to `routes` or `neighbors`",
        ),
        (
            edited(("10.9.0.11", "10.7.0.11")),
            "55:45: servers[1].encapsulation.endpoint",
            "no route to 10.7.0.11 by a port of role 'server'",
        ),
        (
            edited(("address: 10.9.0.14 ", "address: 10.7.0.14 ")),
            "servers[4].address",
            "no route to 10.7.0.14 by a port of role 'server'",
        ),
        (edited(("10.9.0.11", "203.0.113.10")), "servers[1].encapsulation.endpoint", "203.0.113.10 is the address of VIP shop"),
        (edited(("10.9.0.11", "10.8.0.1")), "servers[1].encapsulation.endpoint", "10.8.0.1 is this site's vtep: use another"),
        (edited(("10.9.0.11", "10.0.0.1")), "servers[1].encapsulation.endpoint", "10.0.0.1 is a gateway of port fabric"),
        (edited(("10.9.0.11", "224.0.0.5")), "servers[1].encapsulation.endpoint", "no tunnel can end at 224.0.0.5"),
        (
            edited(("site:\n  id: 1\n", ""), ('  vtep: [10.8.0.1, "2001:db8:8::1"]\n', "")),
            "servers[1].encapsulation.endpoint",
            "this switch has no tunnel endpoint: add `site` with `id` and `vtep`",
        ),
        (
            edited(('[10.8.0.1, "2001:db8:8::1"]', "10.8.0.1")),
            "servers[3].encapsulation.endpoint",
            "2001:db8:9::13 is IPv6, but this switch has no IPv6 vtep: add one to `site.vtep`",
        ),
        (
            edited(("    cookie_prefix", f"    {ARTEMIS}cookie_prefix")),
            "servers[6].encapsulation",
            "VIP films is a service address, whose replicas the switch reaches through tunnels already: remove it",
        ),
    ],
)
def test_error_has_position_problem_and_fix(text: str, where: str, says: str) -> None:
    said = problems(text, FILE)
    assert any(f"{where}: " in line and says in line for line in said), said


def test_entries_towards_remote_servers() -> None:
    state = wanted(TEXT)
    assert of(state, server.SERVER4) == {
        Key(server.SERVER4, (1,)): Action("to_server4", (number("10.0.0.11"), 8080)),
        Key(server.SERVER4, (2,)): Action("to_remote_server4", (number("172.16.0.11"), 8080, 9000 - 50 - 40)),
        Key(server.SERVER4, (3,)): Action("to_remote_server4", (number("172.16.0.12"), 8080, 1500 - 28 - 40)),
        Key(server.SERVER4, (4,)): Action("to_remote_server4", (number("172.16.0.13"), 8080, 1500 - 70 - 40)),
        Key(server.SERVER4, (5,)): Action("to_remote_server4", (number("10.9.0.14"), 8080, 1500 - 20 - 40)),
        Key(server.SERVER4, (6,)): Action("to_remote_server4", (number("172.16.0.15"), 8080, 1500 - 24 - 40)),
    }
    assert of(state, server.SERVER6) == {
        Key(server.SERVER6, (20,)): Action("to_remote_server6", (number("2001:db8:a:1::10"), 8443, 1500 - 40 - 60))
    }
    remote = encapsulation.REMOTE
    assert of(state, remote) == {
        Key(remote, (4, 2)): Action("set_server_tunnel4", (1, 7, 8950, VTEP4, number("10.9.0.11"))),
        Key(remote, (4, 3)): Action("set_server_tunnel4", (2, 5, 1472, VTEP4, number("10.9.0.12"))),
        Key(remote, (4, 4)): Action("set_server_tunnel6", (3, 1, 1430, VTEP6, number("2001:db8:9::13"))),
        Key(remote, (4, 5)): Action("set_server_tunnel4", (5, 0, 1480, VTEP4, number("10.9.0.14"))),
        Key(remote, (4, 6)): Action("set_server_tunnel4", (4, 0, 1476, VTEP4, number("10.9.0.12"))),
        Key(remote, (4, 20)): Action("set_server_tunnel6", (5, 0, 1460, VTEP6, number("2001:db8:9::20"))),
    }


def test_entries_for_answers_of_remote_servers() -> None:
    state = wanted(TEXT)
    assert of(state, remote_servers.SOURCE) == {
        Key(remote_servers.SOURCE, (2,)): Action("return_by_tunnel", (3, 8910)),
        Key(remote_servers.SOURCE, (3,)): Action("return_by_tunnel", (4, 1432)),
        Key(remote_servers.SOURCE, (4,)): Action("return_by_tunnel", (5, 1390)),
        Key(remote_servers.SOURCE, (5,)): Action("return_by_tunnel", (6, 1440)),
        Key(remote_servers.SOURCE, (6,)): Action("return_routed", (1436,)),
        Key(remote_servers.SOURCE, (20,)): Action("return_by_tunnel", (21, 1400)),
    }
    assert of(state, remote_servers.TUNNEL) == {
        Key(remote_servers.TUNNEL, match): Action("NoAction") for match in ((3, 1, 7), (4, 2, 5), (5, 3, 1), (6, 5, 0), (21, 5, 0))
    }
    ends = {"10.9.0.11": 3, "10.9.0.12": 4, "10.9.0.14": 6, "2001:db8:9::13": 5, "2001:db8:9::20": 21}
    peers = {
        Key(tunnel.PEER6 if ":" in end else tunnel.PEER4, (number(end), 2)): Action("set_server_peer", (source_set,))
        for end, source_set in ends.items()
    }
    assert of(state, *tunnel.PEERS) == peers
    endpoints = {
        Key(tunnel.ENDPOINT6 if ":" in end else tunnel.ENDPOINT4, (number(end),)): Action("remote_endpoint") for end in ends
    }
    endpoints |= {
        Key(tunnel.ENDPOINT4, (VTEP4,)): Action("local_endpoint"),
        Key(tunnel.ENDPOINT6, (VTEP6,)): Action("local_endpoint"),
    }
    assert of(state, *tunnel.ENDPOINTS) == endpoints


def test_servers_behind_one_endpoint_share_a_source_set() -> None:
    state = wanted(edited((WEB1, "encapsulation: { kind: vxlan, endpoint: 10.9.0.12 }")))
    sources = of(state, remote_servers.SOURCE)
    assert sources[Key(remote_servers.SOURCE, (2,))].params[0] == sources[Key(remote_servers.SOURCE, (3,))].params[0] == 3
    assert Key(remote_servers.TUNNEL, (3, 1, 1)) in state
    assert Key(remote_servers.TUNNEL, (3, 2, 5)) in state


def test_none_is_the_same_as_no_encapsulation() -> None:
    local = "    address: 172.16.0.11           # the server's own address (DIP), in the tunnel\n    port: 8080\n    sid: 2\n"
    at = ("address: 172.16.0.11 ", "address: 10.0.0.12 ")
    assert local in TEXT
    assert wanted(edited((WEB1, "encapsulation: none"), at)) == wanted(edited((f"    {WEB1}\n", ""), at))


def test_only_endpoints_are_resolved() -> None:
    config = loads(edited(("10.9.0.11", "10.0.0.77"), ("172.16.0.11", "10.0.0.78")), FILE)
    assert ip_address("10.0.0.77") in config.wanted
    assert ip_address("10.0.0.78") not in config.wanted
    assert ip_address("10.0.0.254") in config.wanted


def test_tunnels_are_written_before_packets_enter_them() -> None:
    stage = {table: number for number, tables in enumerate(STAGES) for table in tables}
    for table in (encapsulation.REMOTE, remote_servers.SOURCE, remote_servers.TUNNEL, *tunnel.PEERS):
        assert stage[table] < stage[server.SERVER4] < stage["choice.member"]
        assert stage[table] < stage["vip.dip4"]


@pytest.fixture
def remote_file(folder: Path, switch: Switch) -> Path:
    return for_switch(REMOTE, folder, switch)


async def test_status_and_metrics_show_remote_servers(remote_file: Path) -> None:
    async with running(load(remote_file)) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert not status["difference"]["tables"]
        tunnels = {item["name"]: item["encapsulation"] for item in status["servers"]}
        assert tunnels["local1"] is None
        assert tunnels["web1"] == {
            "kind": "vxlan",
            "endpoint": "10.9.0.11",
            "vni": 7,
            "key": None,
            "mtu": 9000,
            "path_mtu": 8950,
            "answers": "tunnel",
        }
        assert tunnels["web4"]["endpoint"] == "10.9.0.14"
        assert set(status["segments"]) == {"kept", "clamped", "unknown"}
        counters = await read_counters(session, pipeline.schema, controller.config)
        families = {family.name: family for family in _counter_metrics({"switch": (controller.config, counters)})}
        labels = [sample.labels["result"] for sample in families["frontage_remote_server_segment_sizes"].samples]
        assert sorted(labels) == ["clamped", "kept", "unknown"]
        described = {"controller": {"phase": "installed", "role": None, "error": None}}
        status = merge(controller.config, {"switch": status | described})
    status["controller"]["config_error"] = None
    console = Console(width=220)
    with console.capture() as captured:
        render(console, status)
    said = captured.get()
    assert "172.16.0.11 port 8080 by vxlan to 10.9.0.11" in said, said


async def test_server_becomes_remote_and_local_again(remote_file: Path) -> None:
    text = remote_file.read_text()
    local = text.replace(WEB2, "encapsulation: none").replace("172.16.0.12", "10.0.0.12")
    async with running(load(remote_file)) as controller:
        await installed(controller)
        for changed in (local, text):
            await controller.apply(loads(changed, remote_file))
            await installed(controller)
            session, pipeline = connected(controller)
            status = await read_status(session, pipeline.schema, controller.config)
            assert not status["difference"]["tables"]
