# SPDX-License-Identifier: Apache-2.0
"""Sites and the end-user mapping: checks of the file, entries, and the writes of a change."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from conftest import EXAMPLE, Switch, for_switch
from frontage import limits
from frontage.config import Config, ConfigError, load, loads
from frontage.config.links import Resolved
from frontage.fields import Mac
from frontage.p4.entries import Action, Key, State
from frontage.p4.replication import CLONE_SESSION
from frontage.service.daemon import Service, _other_stamps
from frontage.service.sites import describe_sites
from frontage.service_addresses import assign
from frontage.state import steering_file
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import copies, encapsulation, neighbor, region, steering, tunnel, vip
from frontage.state.desired import desired
from frontage.state.reconcile import plan
from frontage.state.steering import Change, EndUserMapping, MappingEntries, MappingError
from live import LIMIT, connected, only, running, serving, until
from texts import problems, replaced

ARTEMIS = EXAMPLE.with_name("artemis.yaml")
TEXT = ARTEMIS.read_text(encoding="utf-8")


def end(address: str) -> int:
    return int(ip_address(address))


edited = partial(replaced, TEXT)


def with_sites(count: int) -> Config:
    """Return the example with this number of sites."""
    more = "".join(
        f'  - {{ id: {n}, name: site{n}, vtep: "2001:db8:102::{n:x}", sids: [{1600 + n}, {1600 + n}], tunnel: gre }}\n'
        for n in range(3, count + 1)
    )
    return loads(edited("\ndispatchers:", more + "\ndispatchers:"), ARTEMIS)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (edited("site: { id: 1,", "site: { id: 256,"), "site.id", '"256" is above the maximum of 255: give the id of this site'),
        (edited('site: { id: 1, vtep: "2001:db8:101::1" }\n', ""), "sites", "the own site is unknown: add `site`"),
        (edited("sids: [800, 1599]", "sids: [799, 1599]"), "sites[1].sids", "sites 1 and 2 share SIDs from 799"),
        (edited("sids: [800, 1599]", "sids: [1599, 800]"), "sites[1]", "the last of the sids is below the first"),
        (edited("sid: 2 }", "sid: 900 }"), "servers[1].sid", "SID 900 is not in the range of site 1, 0 to 799"),
        (edited("id: 2\n    name: tokyo", "id: 1\n    name: tokyo"), "sites[1].id", "duplicate site id 1"),
        (edited("role: site", "role: client"), "sites[1].vtep", "no route to 2001:db8:102::1 by a port of role 'site'"),
        (
            edited("role: server", "role: client"),
            "dispatchers[0].address",
            "no route to 2001:db8:2::d by a port of role 'server'",
        ),
        (edited("tunnel: vxlan", "tunnel: ipip"), "sites[1].tunnel", 'unknown tunnel "ipip": use one of vxlan, gre'),
        (edited('vtep: "2001:db8:101::1" }', 'vtep: "192.0.2.1" }'), "sites[0].vtep", "site 1 is this site, but its vtep is not"),
        (
            edited('  - { name: dispatcher1, address: "2001:db8:2::d" }', "  []"),
            "vips[1].artemis.dedicated_address",
            "no dispatcher to read the SNI",
        ),
        (
            edited("id: 4, dedicated_address", "id: 3, dedicated_address"),
            "vips[1].artemis.id",
            "VIP films describes service 3 differently",
        ),
        (
            edited("name: small\n    protocol: udp", "name: small\n    protocol: tcp"),
            "vips[1].artemis.dedicated_address",
            "VIP small uses TCP, but a dispatcher reads the SNI of QUIC only",
        ),
        (edited("port: 443", "port: 4789"), "vips[0].port", "UDP port 4789 is reserved for VXLAN"),
        (
            edited("latitude: 50.1", "latitude: 90.1"),
            "sites[0].location.latitude",
            '"90.1" is above the maximum of 90.0: give the degrees north of the equator, -90 to 90, for example 50.1',
        ),
        (
            edited("longitude: 139.7", "longitude: -180.5"),
            "sites[1].location.longitude",
            '"-180.5" is below the minimum of -180.0: give the degrees east of Greenwich, -180 to 180, for example 8.7',
        ),
        (
            edited("longitude: 139.7", "longitude: east"),
            "sites[1].location.longitude",
            'invalid number "east": give the degrees east of Greenwich',
        ),
        (
            edited("latitude: 35.7", "latitude: nan"),
            "sites[1].location.latitude",
            '"nan" should be a finite number: give the degrees',
        ),
        (
            edited("latitude: 50.1, ", ""),
            "sites[0].location.latitude",
            "missing: add the degrees north of the equator, -90 to 90, for example 50.1",
        ),
        (
            edited("{ latitude: 35.7, longitude: 139.7 }", "35.7, 139.7"),
            "sites[1].location",
            "must be a mapping of fields: give where the site is, for the map of the console; optional, "
            "for example { latitude: 50.1, longitude: 8.7 }",
        ),
    ],
)
def test_error_has_field_problem_and_fix(text: str, where: str, says: str) -> None:
    said = problems(text, ARTEMIS)
    assert any(f": {where}: " in line and says in line for line in said), said


def test_locations_have_no_entries() -> None:
    config, moved = (loads(text, ARTEMIS) for text in (TEXT, edited("latitude: 50.1", "latitude: 48.1")))
    allocation = allocate(config, Installed({}))
    assert desired(config, allocation) == desired(moved, allocation)


def test_shares_of_sites_count_regions_without_a_choice() -> None:
    """Region 5 has a choice, region 6 uses that of region 0, and region 9 is empty. Without a choice for region 0, the own site serves."""
    regions = {ip_network(f"2001:db8:c{n}::/48"): region for n, region in enumerate((5, 5, 6))}
    mapping = EndUserMapping(regions, {3: 7, 4: 8}, {(7, 0): (1, 2), (7, 5): (2, 1), (7, 9): (2,), (8, 6): (2,)})
    services = describe_sites(load(ARTEMIS), mapping, ())["services"]
    counts = {one["name"]: {by["site"]: by["regions"] for by in one["regions_by_site"]} for one in services}
    assert counts == {"films.example": {1: 2, 2: 1}, "small.example": {1: 2, 2: 1}}
    services = describe_sites(load(ARTEMIS), EndUserMapping(), ())["services"]
    assert [one["regions_by_site"] for one in services] == [[], []]


def test_tcp_service_has_no_tunnels_to_its_servers() -> None:
    text = edited(
        "\nservers:\n",
        """
  - { name: pages, protocol: tcp, port: 443, artemis: { name: films.example, id: 3 } }

servers:
  - { name: page1, vip: pages, address: "2001:db8:a:2::20", port: 8080, sid: 4 }
""",
    )
    config = loads(text, ARTEMIS).complete({ip_address("2001:db8:3::fe"): Resolved("backbone", Mac(0x020000000202))})
    allocation = allocate(config, Installed({}))
    state = desired(config, allocation)
    service = Action("set_service", (1, 3))
    assert {state[Key(steering.SERVICE, (allocation.vip_ids[name],))] for name in ("films", "pages")} == {service}
    server = end("2001:db8:a:2::20")
    assert not {Key(tunnel.ENDPOINT6, (server,)), Key(tunnel.PEER6, (server, 2)), Key(encapsulation.REMOTE, (3, 4))} & set(state)
    named = {assignment.name: assignment.ports for assignment in assign(config)}
    assert named["films.example"] == {443: ("h3", "h2")}


def test_entries_of_sites() -> None:
    next_hop = ip_address("2001:db8:3::fe")
    config = load(ARTEMIS).complete({next_hop: Resolved("backbone", Mac(0x020000000202))})
    allocation = allocate(config, Installed({}))
    state = desired(config, allocation)
    own, tokyo, replica, sender = (end(a) for a in ("2001:db8:101::1", "2001:db8:102::1", "2001:db8:a:1::10", "2001:db8:102::d"))
    assert state[Key(tunnel.ENDPOINT6, (own,))] == Action("local_endpoint")
    assert state[Key(tunnel.ENDPOINT6, (replica,))] == Action("remote_endpoint")
    assert state[Key(vip.ADDRESS6, (own,))] == Action("no_service")  # other packets to the endpoint are dropped
    assert state[Key(neighbor.ECHO6, (own,))] == Action("echo_reply")
    assert state[Key(tunnel.PEER6, (tokyo, 3))] == Action("set_peer", (2, 0))
    assert state[Key(tunnel.PEER6, (sender, 3))] == Action("set_peer", (2, 0))
    assert state[Key(tunnel.PEER6, (replica, 2))] == Action("set_peer", (0, 2))
    assert Key(tunnel.PEER6, (own, 3)) not in state
    # Servers 1 and 3 share an address, which may answer for the services of both.
    films, small = (end(a) for a in ("2001:db8:a57e:acdc::", "2001:db8:a57e:bd47::"))
    groups = {key.match for key in state if key.table == tunnel.SOURCE6}
    assert groups == {(g, films, 443) for g in (0, 2, 3)} | {(g, small, 443) for g in (0, 2)}
    assert state[Key(tunnel.ORIGIN, (0, 2))] == Action("forward_response", (2,))
    assert state[Key(encapsulation.REMOTE, (1, 2))] == Action("set_tunnel6", (1, own, tokyo))
    assert state[Key(encapsulation.REMOTE, (3, 1))] == Action("set_tunnel6", (1, own, replica))
    assert sum(key.table == encapsulation.REMOTE and key.match[0] == 2 for key in state) == limits.DISPATCHER_SLOTS
    assert state[Key(copies.NEXT_HOP, (2,))] == Action("rewrite_macs", (0x020000000103, 0x020000000202))
    assert state[Key(steering.SERVICE, (allocation.vip_ids["films"],))] == Action("set_service", (1, 3))
    assert state[Key(steering.SERVICE, (allocation.vip_ids["small"],))] == Action("use_dispatcher", (1,))


def test_range_of_sids_is_covered_by_prefixes() -> None:
    for first, last in ((0, 799), (800, 1599), (0, 4095), (7, 7), (1, 4094)):
        found = [range(v, v + (1 << 16 - length)) for v, length in steering.prefixes(first, last)]
        assert [sid for part in found for sid in part] == list(range(first, last + 1))
        assert len(found) <= 22


def sessions(state: State) -> dict[int, set[int]]:
    """Return the sites of each session."""
    return {key.match[0]: set(action.params[2::2]) for key, action in state.items() if key.table == CLONE_SESSION}  # type: ignore[misc]


def test_choices_become_entries_and_sessions() -> None:
    mapping = EndUserMapping(
        {ip_network("2001:db8:c1::/48"): 5}, {3: 7, 4: 7}, {(7, 5): (2, 3, 4, 5), (7, 6): (2, 1, 3), (7, 0): (1,)}
    )
    state = MappingEntries(with_sites(6), mapping).state
    assert state[Key(region.CLIENT6, ((end("2001:db8:c1::"), 48),))] == Action("set_region", (5,))
    assert state[Key(steering.DEPLOYMENT, (3,))] == Action("set_deployment", (7,))
    best = state[Key(steering.MAPPING, (7, 5))]
    assert best.name == "to_site"
    assert best.params[0] == 2
    assert sessions(state)[best.params[1]] == {3, 4, 5}  # the first has the packet itself
    ours = state[Key(steering.MAPPING, (7, 6))]
    assert ours.name == "keep_local"  # this site is one of them, and needs no tunnel to itself
    assert sessions(state)[ours.params[0]] == {2, 3}
    assert state[Key(steering.DEFAULT_MAPPING, (7,))] == Action("keep_local", (0,))
    assert Key(steering.DEPLOYMENT, (4,)) not in state  # service 4 is a dispatcher's


def test_change_writes_only_the_difference() -> None:
    """After any changes, the state equals that of the whole mapping, and sessions exist as long as they are used."""
    config = with_sites(9)
    mapping = EndUserMapping({}, {3: 7}, {(7, region): (2 + region % 7, 2 + (region + 1) % 7) for region in range(1, 2000)})
    entries = MappingEntries(config, mapping)
    assert len(sessions(entries.state)) == 7
    for change in (
        Change(choices={(7, 7): (9, 8, 1), (7, 8): None}),
        Change(regions={ip_network("198.51.100.0/24"): 7}),
        Change(deployments={3: 8, 4: 8}, choices={(8, 0): (2, 3)}),
        Change(deployments={3: None}),
        Change(choices={(7, 7): (9,)}, regions={ip_network("198.51.100.0/24"): None}),
    ):
        before = dict(entries.state)
        mapping.apply(change)
        found = entries.change(change)
        after = {k: a for k, a in (before | found.missing | found.different).items() if k not in found.unexpected}
        assert after == entries.state
        assert len(found) <= 4
        fresh = MappingEntries(config, mapping, {k: a for k, a in after.items() if k.table == CLONE_SESSION})
        assert fresh.state == after
    assert len(sessions(entries.state)) == 7


def test_mapping_is_reduced_to_the_services_of_the_site() -> None:
    mapping = EndUserMapping({ip_network("192.0.2.0/24"): 5}, {3: 7, 4: 8, 5: 7}, {(7, 0): (1,), (7, 5): (2,), (8, 0): (2,)})
    found = mapping.for_services({3, 5, 6})
    assert found == EndUserMapping(mapping.regions, {3: 7, 5: 7}, {(7, 0): (1,), (7, 5): (2,)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (Change(choices={(7, 5): (9,)}), "deployment 7 in region 5: unknown site 9: add it to `sites`"),
        (Change(choices={(7, 5): ()}), "deployment 7 in region 5: invalid sites []: use 1 to 4 different sites"),
        (Change(choices={(7, 5): (2, 2)}), "deployment 7 in region 5: invalid sites [2, 2]: use 1 to 4 different sites"),
        (Change(choices={(7, 5): (1, 2, 3, 4, 5)}), "invalid sites [1, 2, 3, 4, 5]: use 1 to 4 different sites"),
        (
            Change(choices={(7, 65536): (2,)}),
            "invalid choice for deployment 7 in region 65536: use a deployment from 1 to 65535 and",
        ),
        (
            Change(choices={(0, 5): (2,)}),
            "invalid choice for deployment 0 in region 5: use a deployment from 1 to 65535 and a region",
        ),
        (Change(deployments={3: 0}), "service 3: invalid deployment 0: use a deployment from 1 to 65535"),
        (Change(regions={ip_network("192.0.2.0/24"): 0}), "192.0.2.0/24: invalid region 0: use a region from 1"),
    ],
)
def test_invalid_change_is_rejected_as_a_whole(change: Change, says: str) -> None:
    entries = MappingEntries(load(ARTEMIS), EndUserMapping({}, {3: 7}, {(7, 0): (1, 2)}))
    before = dict(entries.state)
    with pytest.raises(MappingError) as caught:
        entries.change(change)
    assert says in str(caught.value)
    assert entries.state == before


SERVICES = '"services": [{"id": 3, "deployment": 7}]'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "mapping.json:1:2: invalid JSON"),
        (
            f'{{{SERVICES}, "mapping": [\n {{"deployment": 7, "sites": [], "regions": [5]}}]}}',
            "mapping.json:2:29: mapping[0].sites: has 0 items",
        ),
        (
            f'{{{SERVICES}, "mapping": [\n {{"deployment": 7, "sites": [2], "regions": [5]}},\n'
            ' {"deployment": 8, "sites": [2], "regions": [5]}]}',
            "mapping.json:3:17: mapping[1].deployment: no service has deployment 8: add one to `services`, or remove this",
        ),
        (
            '{"services": [], "mapping": [], "clients": [{"prefix": "10.0.0.1/8", "region": 5}]}',
            'clients[0].prefix: invalid prefix "10.0.0.1/8": host bits',
        ),
        (
            f'{{{SERVICES}, "mapping": [{{"deployment": 7, "sites": [7], "regions": [5]}}]}}',
            "mapping.json: deployment 7 in region 5: unknown site 7: add",
        ),
        (
            f'{{{SERVICES}, "mapping": [{{"deployment": 7, "sites": [1], "regions": [5, 5]}}]}}',
            "mapping.json: duplicate prefix, service, or deployment and region: keep one of them",
        ),
    ],
)
def test_invalid_mapping_file_is_rejected(text: str, says: str, folder: Path) -> None:
    (folder / "mapping.json").write_text(text)
    config = load(ARTEMIS).model_copy(update={"mapping": folder / "mapping.json"})
    with pytest.raises(ConfigError) as caught:
        steering_file.for_config(config)
    assert says in str(caught.value)


async def test_difference_is_written_without_reading(folder: Path, switch: Switch) -> None:
    """A real switch gets 2,000 clients and choices; a change of three then writes three entries and reads nothing."""
    config = load(for_switch(ARTEMIS, folder, switch))
    whole = Change(
        {ip_network((0x20010DB8 << 96 | n << 64, 64)): 1 + n for n in range(1000)},
        {3: 7},
        {(7, 1 + n): (1 + n % 2,) for n in range(1000)},
    )
    async with asyncio.timeout(LIMIT), running(config) as controller:
        await controller.installed()
        await controller.steer(whole)
        await controller.installed()
        session, pipeline = connected(controller)
        reads: list[object] = []
        session.read_tables = session.read_clone_sessions = lambda *a: reads.append(a)  # type: ignore[method-assign,assignment]
        writes = controller.health.writes.total()
        await controller.steer(Change({ip_network("192.0.2.0/24"): 7}, {}, {(7, 1): (2, 1), (7, 2): None}))
        await controller.installed()
        assert controller.health.writes.total() - writes == 4  # with the session of copies
        assert not reads
        del session.read_tables, session.read_clone_sessions
        assert len((await plan(session, pipeline.schema, config, controller.mapping)).difference) == 0
    async with asyncio.timeout(LIMIT), running(config) as second:
        second.mapping = controller.mapping
        await second.installed()
        assert second.health.writes.total() == 0


async def test_full_table_is_emptied_before_new_entries(folder: Path, switch: Switch) -> None:
    config = load(for_switch(ARTEMIS, folder, switch))
    mapping = EndUserMapping({}, {3: 1}, {(n, 0): (1,) for n in range(1, 1001)})
    async with asyncio.timeout(LIMIT), running(config) as controller:
        controller.mapping = mapping
        await controller.installed()
        other = EndUserMapping({}, {3: 1001}, {(n, 0): (2,) for n in range(1001, 2001)})
        await controller.steer(mapping.change_to(other))
        await controller.installed()
        assert controller.health.failures == 0
        session, pipeline = connected(controller)
        assert len((await plan(session, pipeline.schema, config, other)).difference) == 0


async def test_controller_follows_the_mapping_file(folder: Path, switch: Switch) -> None:
    file = for_switch(ARTEMIS, folder, switch)
    mapping = folder / "artemis-mapping.json"
    mapping.write_text(ARTEMIS.with_name(mapping.name).read_text())
    service = Service(file)
    async with serving(service), asyncio.timeout(LIMIT):
        await only(service).installed()
        assert only(service).mapping.choices[7, 5] == (2, 1)
        changed = json.loads(mapping.read_text())
        changed["mapping"][1]["sites"] = [1]
        mapping.write_text(json.dumps(changed))
        await until(lambda: only(service).mapping.choices[7, 5] == (1,))
        await only(service).installed()
        session, pipeline = connected(only(service))
        state = await session.read_tables(pipeline.schema, [pipeline.schema.table(steering.MAPPING)])
        assert state[Key(steering.MAPPING, (7, 5))] == Action("keep_local", (0,))
        # A service that now has a dedicated address is read from the same file.
        changed["services"].append({"id": 4, "deployment": 8})
        changed["mapping"].append({"deployment": 8, "sites": [2], "regions": [0]})
        mapping.write_text(json.dumps(changed))
        await until(lambda: service._others == _other_stamps(only(service).config))
        assert only(service).mapping.deployments == {3: 7}
        file.write_text(file.read_text().replace("id: 4, dedicated_address: false", "id: 4, dedicated_address: true"))
        await until(lambda: only(service).mapping.deployments == {3: 7, 4: 8})
        assert only(service).mapping.choices[8, 0] == (2,)
