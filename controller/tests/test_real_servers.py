# SPDX-License-Identifier: Apache-2.0
"""Real servers of QDSR: checks of the file, entries, status and metrics."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from rich.console import Console

import texts
from conftest import EXAMPLE, Switch, for_switch
from frontage import limits
from frontage.cli.show import render
from frontage.config import Config, ConfigError, edit, load, loads
from frontage.config.real_servers import balancers, senders
from frontage.config.routing import RoutingTable
from frontage.fields import Mac
from frontage.p4.entries import Action, Key, State
from frontage.service.metrics import _counter_metrics
from frontage.service.status import merge, read_counters, read_status
from frontage.state.allocation import Hop, Installed, allocate
from frontage.state.blocks import forwarding, ports, real_servers
from frontage.state.desired import STAGES, desired
from live import connected, installed, running
from texts import problems

QDSR = EXAMPLE.with_name("qdsr.yaml")
TEXT = QDSR.read_text(encoding="utf-8")
edited = partial(texts.edited, TEXT)
FILE = Path("qdsr.yaml")


def number(address: str) -> int:
    return int(ip_address(address))


def wanted(config: Config) -> State:
    return desired(config, allocate(config, Installed({})))


def of(state: State, *tables: str) -> State:
    return {key: action for key, action in state.items() if key.table in tables}


ONE_MACHINE = edited(
    # Load balancer film2 is also a real server, for connections of film1.
    (
        '"2001:db8:a:2::/64", port: balancers, next_hop: "2001:db8:2::c"',
        '"2001:db8:a:2::/64", port: rack4, next_hop: "2001:db8:4::c"',
    ),
    ('"2001:db8:4::3", for: film2 }', '"2001:db8:a:2::10", for: film1 }'),
)

WEB = '  - { name: web, address: "2001:db8:ffff::30", port: 80 }\n'


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (
            edited(("port: rack4, mac", "port: rack9, mac")),
            "67:26: real_servers[2].port",
            'unknown port "rack9": use one of `ports`: ',
        ),
        (
            edited(("port: rack4, mac", "port: balancers, mac")),
            "67:26: real_servers[2].port",
            "port balancers has role 'server', not 'real-server': change the role",
        ),
        (edited(("name: real3", "name: real1")), "67:13: real_servers[2].name", 'duplicate real server name "real1": rename one'),
        (
            edited(("for: film2", "for: film3")),
            "67:92: real_servers[2].for[0]",
            'unknown server or VIP "film3": use one of `servers` or `vips`: films, films-v4, film1, film2',
        ),
        (
            edited(("films-v4] }", "[films]] }")),
            "real_servers[0].for[1]",
            "must be text: give the servers on whose behalf it may send",
        ),
        (edited((", for: film2 }", " }")), "67:5: real_servers[2].for", "missing: add the servers on whose behalf it may send"),
        (edited((", for: film2 }", ", for: [] }")), "real_servers[2].for", "has 0 items, needs at least 1: give the servers"),
        (edited((", for: film2 }", ", as: film2 }")), "real_servers[2].as", 'unknown key "as": remove it or use'),
        (
            edited(("name: films-v4\n", "name: film2\n")),
            "real_servers[2].for[0]",
            '"film2" is the name of a server and of a VIP: rename one',
        ),
        (
            edited(("  - name: films-v4\n", WEB + "  - name: films-v4\n"), (", for: film2 }", ", for: [film2, web] }")),
            "real_servers[2].for[1]",
            "VIP web uses TCP, but real servers need QUIC: remove it",
        ),
        (
            edited(("2001:db8:4::3", "2001:db8:4::/64")),
            "real_servers[2].addresses[0]",
            'invalid IP address "2001:db8:4::/64": give',
        ),
        (edited(('"2001:db8:4::3"', "[]")), "real_servers[2].addresses", "has 0 items, needs at least 1: give the address"),
        (edited(("2001:db8:4::3", "2001:db8:3::2")), "real_servers[2].addresses[0]", "two next hops for 2001:db8:3::2/128"),
        (
            edited(("2001:db8:4::3", "2001:db8:4::ff")),
            "real_servers[2].addresses[0]",
            "is a gateway of port rack4: use another",
        ),
        (
            edited(("2001:db8:4::3", "2001:db8:ffff::20")),
            "real_servers[2].addresses[0]",
            "is the address of VIP films: use another",
        ),
        (edited(("2001:db8:4::3", "ff0e::3")), "real_servers[2].addresses[0]", "invalid address ff0e::3: use a unicast address"),
        (
            edited(("2001:db8:4::3", "2001:db8:c00c:1e::3")),
            "real_servers[2].addresses[0]",
            "2001:db8:c00c:1e::3 is in the cookie prefix of VIP films: use an address outside of it",
        ),
        (
            edited(("2001:db8:4::3", "2001:db8:a:2::3")),
            "real_servers[2].addresses[0]",
            "2001:db8:a:2::3 is in the /64 of server film2, all of which belongs to that server: use an address outside of it",
        ),
        (
            edited(("\nvips:\n", '\nneighbors:\n  - { address: 10.0.0.11, port: rack3, mac: "02:00:00:00:03:0b" }\n\nvips:\n')),
            "servers[2].address",
            "10.0.0.11 is behind port rack3 of role 'real-server', which drops its packets: add the address",
        ),
        (
            edited(("role: real-server", "role: real")),
            "ports[2].role",
            'unknown role "real": use ',
        ),
    ],
)
def test_error_has_position_problem_and_fix(text: str, where: str, says: str) -> None:
    said = problems(text, FILE)
    assert any(f"{where}: " in line and says in line for line in said), said


def test_entries_of_real_servers() -> None:
    config = load(QDSR)
    state = wanted(config)
    assert state[Key(ports.PORT, (3,))] == Action("set_port", (4, 0x020000000103))
    # Port 3 sends for all servers of films and films-v4, port 4 only for film2.
    assert of(state, real_servers.SENDER) == {
        Key(real_servers.SENDER, match): Action("allow_sender", (1,)) for match in [(3, 1), (3, 2), (3, 3), (3, 4), (4, 2)]
    }
    assert of(state, real_servers.SOURCE4, real_servers.SOURCE6) == {
        Key(real_servers.SOURCE4, (number("10.0.3.1"),)): Action("set_real_server_port", (3,)),
        Key(real_servers.SOURCE6, (number("2001:db8:3::1"),)): Action("set_real_server_port", (3,)),
        Key(real_servers.SOURCE6, (number("2001:db8:3::2"),)): Action("set_real_server_port", (3,)),
        Key(real_servers.SOURCE6, (number("2001:db8:4::3"),)): Action("set_real_server_port", (4,)),
    }
    destinations = of(state, *real_servers.DESTINATIONS)
    assert {key.match for key in destinations} == {key.match for key in of(state, real_servers.SOURCE4, real_servers.SOURCE6)}
    assert set(destinations.values()) == {Action("external_source")}


def test_real_servers_are_routed_like_neighbors() -> None:
    config = load(QDSR)
    allocation = allocate(config, Installed({}))
    hop = allocation.next_hops[Hop(4, config.ports[3].mac, Mac(0x020000000403))]
    state = desired(config, allocation)
    assert state[Key(forwarding.IPV6_LPM, ((number("2001:db8:4::3"), 128),))] == Action("set_next_hop", (hop,))
    next_hop = RoutingTable(config.routes, config.on_link_hosts).lookup(ip_address("10.0.3.1"))
    assert next_hop is not None
    assert (next_hop.port, str(next_hop.mac)) == ("rack3", "02:00:00:00:04:01")


def test_address_is_protected_before_it_is_routed() -> None:
    stage = {table: n for n, tables in enumerate(STAGES) for table in tables}
    for guard, way in ((real_servers.DESTINATION4, forwarding.IPV4_LPM), (real_servers.DESTINATION6, forwarding.IPV6_LPM)):
        assert stage[guard] < stage[way]


def senders_of(config: Config) -> dict[tuple[str, int], bool]:
    return senders(config.real_servers, config.servers)


def test_load_balancer_can_be_a_real_server() -> None:
    """Its packets on its own behalf are not from a real server; those on behalf of another server are."""
    config = loads(ONE_MACHINE, FILE)
    assert {key: second_hand for key, second_hand in senders_of(config).items() if key[0] == "rack4"} == {
        ("rack4", 1): True,
        ("rack4", 2): False,
    }
    # It may also list itself.
    assert senders_of(loads(ONE_MACHINE.replace("for: film1 }", "for: films }"), FILE)) == senders_of(config)


def test_names_refer_to_servers_or_vips() -> None:
    config = load(QDSR)
    found = {r.name: [server.name for server in servers] for r, servers in balancers(config.real_servers, config.servers)}
    assert found == {"real1": ["film1", "film2", "film1-v4", "film2-v4"], "real2": ["film1", "film2"], "real3": ["film2"]}


def test_real_servers_above_the_sizes_of_the_program_are_rejected() -> None:
    def listed(first: str, count: int) -> str:
        return ", ".join(f'"{address}"' for _, address in zip(range(count), ip_network(first), strict=False))

    many = edited(('"2001:db8:4::3"', f"[{listed('fd00::/64', limits.MAX_REAL_SERVERS + 1)}]"))
    with pytest.raises(
        ConfigError, match=r"4099 IPv6 addresses of real servers, but the P4 program has room for 4096: remove some"
    ):
        loads(many, FILE)
    racks = "".join(f'  - {{ id: {n}, name: r{n}, role: real-server, mac: "02:00:00:00:01:{n:02x}" }}\n' for n in range(5, 25))
    servers = "".join(
        f'  - {{ name: s{n}, vip: films, address: "2001:db8:b:{n:x}::10", port: 8443, sid: {n} }}\n' for n in range(5, 905)
    )
    reals = "".join(
        f'  - {{ name: r{n}, port: r{n}, mac: "02:00:00:00:05:{n:02x}", addresses: 10.9.0.{n}, for: films }}\n'
        for n in range(5, 25)
    )
    text = edited(
        ("\n# The networks of the load balancers", racks + "\n# The networks of the load balancers"),
        ("routes:\n", 'routes:\n  - { prefix: "2001:db8:b::/48", port: balancers, mac: "02:00:00:00:03:0d" }\n'),
        ("servers:\n", "servers:\n" + servers),
        ("real_servers:\n", "real_servers:\n" + reals),
    )
    with pytest.raises(
        ConfigError, match=r"pairs of a port and a server that sends through it, but the P4 program has room for 16384"
    ):
        loads(text, FILE)


def test_server_named_by_a_real_server_is_not_removed(tmp_path: Path) -> None:
    file = tmp_path / "qdsr.yaml"
    file.write_text(TEXT)
    with pytest.raises(ConfigError, match='unknown server or VIP "film2"'):
        edit.change_file(file, lambda text: edit.remove_server(text, "film2"))
    assert file.read_text() == TEXT
    edit.change_file(file, lambda text: edit.remove_server(text, "film1"))


@pytest.fixture
def qdsr_file(folder: Path, switch: Switch) -> Path:
    return for_switch(QDSR, folder, switch)


@pytest.fixture
def text(qdsr_file: Path) -> str:
    return qdsr_file.read_text()


async def test_real_servers_are_added_and_removed(qdsr_file: Path, text: str) -> None:
    begin = text.index("real_servers:")
    without = text[:begin] + text[text.index("# Replace the example secret") :]
    async with running(loads(without, qdsr_file)) as controller:
        before = await installed(controller)
        assert not of(before, *real_servers.TABLES)
        await controller.apply(loads(text, qdsr_file))
        state = await installed(controller)
        assert len(of(state, *real_servers.TABLES)) == 5 + 4 + 4
        await controller.apply(loads(without, qdsr_file))
        assert await installed(controller) == before
        # Port 3 may send for a new server of the VIP, too.
        more = edit.add_server(text, name="film3", vip="films", address="2001:db8:a:1::10", port=8444)
        await controller.apply(loads(more, qdsr_file))
        assert len(of(await installed(controller), real_servers.SENDER)) == 6


async def test_status_and_metrics_show_real_servers(qdsr_file: Path) -> None:
    async with running(load(qdsr_file)) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["real_servers"][2] == {
            "name": "real3",
            "port": "rack4",
            "mac": "02:00:00:00:04:03",
            "addresses": ["2001:db8:4::3"],
            "for": ["film2"],
            "down": {"packets": 0, "bytes": 0},
        }
        counters = await read_counters(session, pipeline.schema, controller.config)
        families = {family.name: family for family in _counter_metrics({"switch": (controller.config, counters)})}
        labels = [sample.labels for sample in families["frontage_real_server_packets"].samples]
        assert {"device": "switch", "port": "rack4", "server": "film2"} in labels
        assert len(labels) == 5
        described = {"controller": {"phase": "installed", "role": None, "error": None}}
        status = merge(controller.config, {"switch": status | described})
    status["controller"]["config_error"] = None
    console = Console(width=200)
    with console.capture() as captured:
        render(console, status)
    said = captured.get()
    assert "real servers" in said
    assert any(line.split()[:4] == ["real3", "rack4", "2001:db8:4::3", "film2"] for line in said.splitlines()), said
