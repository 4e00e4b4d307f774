# SPDX-License-Identifier: Apache-2.0
"""Entries that a program in several pipes needs twice: roles of ports, endpoints, and the next hops of tunnels."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import softswitch
from conftest import EXAMPLE
from frontage.config import loads
from frontage.config.schema import Config
from frontage.p4.entries import Action, Key, State
from frontage.p4.p4info import Schema
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import encapsulation, forwarding, gate, tunnel
from frontage.state.desired import desired
from frontage.state.offline import contents

PROGRAMS = Path(__file__).parents[2] / "p4src"
OTHER = "2001:db8:102::1"


def config() -> Config:
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    document["ports"].append({"id": 9, "name": "backbone", "mac": "02:00:00:00:09:01", "role": "site"})
    document["routes"].append({"prefix": "2001:db8:102::/48", "port": "backbone", "mac": "02:00:00:00:09:02"})
    document["site"] = {"id": 1, "vtep": ["2001:db8:101::1"]}
    document["sites"] = [
        {"id": 1, "name": "here", "vtep": "2001:db8:101::1", "sids": [0, 799]},
        {"id": 2, "name": "there", "vtep": OTHER, "sids": [800, 1599]},
    ]
    return loads(yaml.safe_dump(document), EXAMPLE)


def schema(folder: Path, program: str) -> Schema:
    compiled = softswitch.compile(PROGRAMS / program)
    assert compiled.p4info is not None
    file = folder / "p4info.txtpb"
    file.write_text(compiled.p4info)
    return Schema.load(file)


def test_tunnel_takes_the_longest_route_to_its_other_end(tmp_path: Path) -> None:
    found = schema(tmp_path, "tna/tofino2full.p4")
    remote = Key(encapsulation.REMOTE, (encapsulation.SITE, 2))
    end = int.from_bytes(bytes.fromhex("20010db8010200000000000000000001"), "big")
    tunnels: State = {remote: Action("set_tunnel6", (1, 7, end))}
    wide = Key(forwarding.IPV6_LPM, ((0, 0),))
    narrow = Key(forwarding.IPV6_LPM, ((end >> 80 << 80, 48),))
    network: State = {wide: Action("set_next_hop", (5,)), Key(forwarding.IPV4_LPM, ((0, 0),)): Action("set_next_hop", (9,))}
    assert gate.routes(found, tunnels, {}) == {}
    assert gate.routes(found, tunnels, network) == {Key(gate.ROUTE, remote.match): Action("set_next_hop", (5,))}
    network[narrow] = Action("set_group", (3,))
    assert gate.routes(found, tunnels, network) == {Key(gate.ROUTE, remote.match): Action("set_group", (3,))}


def test_roles_and_endpoints_are_in_every_pipe_that_needs_them(tmp_path: Path) -> None:
    known = schema(tmp_path, "tna/tofino2full.p4")
    state, _ = contents(config(), known)
    by_table = {table: {key.match: action for key, action in state.items() if key.table == table} for table in gate.TABLES}
    roles = {port.id for port in config().ports}
    assert {match[0] for match in by_table[gate.PORT]} == roles
    assert {action.name for action in by_table[gate.PORT].values()} == {"set_role"}
    endpoints = {key.match: action for key, action in state.items() if key.table == tunnel.ENDPOINT6}
    assert by_table["nested.endpoint6"] == endpoints
    assert len(endpoints) == 2


@pytest.mark.parametrize("program", ["v1model/frontage.p4", "tna/tofino2folded.p4"])
def test_other_programs_have_no_copies(tmp_path: Path, program: str) -> None:
    known = schema(tmp_path, program)
    state = desired(config(), allocate(config(), Installed({})))
    assert gate.entries(known, config().ports, state) == {}


def test_each_block_that_drops_packets_has_a_counter_of_drops(tmp_path: Path) -> None:
    blocks = {"", "gate_", "inner_", "edge_", "site_", "tunnel_", "scheduling_", "egress_"}
    assert set(schema(tmp_path, "tna/tofino2full.p4").drop_counters) == {f"{block}drops" for block in blocks}
    assert set(schema(tmp_path, "v1model/frontage.p4").drop_counters) == {"drops", "egress_drops"}
