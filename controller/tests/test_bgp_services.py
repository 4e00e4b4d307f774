# SPDX-License-Identifier: Apache-2.0
"""The announcement of service addresses and of a site's own prefixes: when a site resolves a service, and what its routers get."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.bgp.announce import Announcement, Export, SwitchState, announcement
from frontage.bgp.frr import Originated, lines, parse_running, recovered, setup_lines
from frontage.bgp.metrics import speaker_metrics
from frontage.bgp.resolution import unresolved
from frontage.bgp.speaker import Speaker
from frontage.config import Config, ConfigError, edit, loads
from frontage.config.bgp import Bgp
from frontage.config.links import Resolved
from frontage.config.vips import ServerState
from frontage.fields import Mac
from frontage.service.fleet import Fleet
from frontage.state.steering import EndUserMapping

ARTEMIS = EXAMPLE.with_name("artemis.yaml")
SERVICES, OWN, COOKIES = (ip_network(p) for p in ("2001:db8:a57e::/48", "2001:db8:101::/48", "2001:db8:c00c:1e::/64"))
SECTION = f"""
bgp:
  asn: 64512
  router_id: 10.0.254.1
  service_prefixes: ["{SERVICES}"]
  own_prefixes: ["{OWN}"]
  neighbors:
    - {{ address: "2001:db8:1::fe", asn: 64513 }}
"""
TEXT = ARTEMIS.read_text(encoding="utf-8") + SECTION
BACKBONE, DISPATCHER = ip_address("2001:db8:3::fe"), ip_address("2001:db8:2::d")
FILMS, SMALL = "films", "small"
"""The service with a dedicated address, and the one whose SNI a dispatcher reads."""
IN_SYNC = SwitchState(is_in_sync=True)
ALL_UNRESOLVED = replace(IN_SYNC, unresolved=frozenset({FILMS, SMALL}))
DRAINED = replace(IN_SYNC, draining_for=100.0)


def config_of(text: str = TEXT) -> tuple[Config, Bgp]:
    config = loads(text, ARTEMIS)
    assert config.bgp is not None
    return config, config.bgp


def announced(*states: SwitchState, text: str = TEXT, last: Announcement | None = None) -> Announcement:
    named = {f"edge{number}": state for number, state in enumerate(states, 1)}
    return announcement(*config_of(text), named, *([last] if last else []))


def without_servers(text: str) -> str:
    for name in ("film1", "film2", "small1"):
        text = edit.set_server_state(text, name, ServerState.DRAINING)
    return text


# The announced routes


def test_prefix_is_announced_instead_of_service_addresses() -> None:
    assert announced(IN_SYNC).prefixes == {SERVICES, OWN, COOKIES}
    alone = announced(IN_SYNC, text=TEXT.replace(f'service_prefixes: ["{SERVICES}"]', "service_prefixes: []"))
    assert alone.prefixes == {ip_network("2001:db8:a57e:acdc::"), ip_network("2001:db8:a57e:bd47::"), OWN, COOKIES}


def test_service_that_is_resolved_nowhere_is_withdrawn_and_own_prefixes_stay() -> None:
    found = announced(ALL_UNRESOLVED)
    assert found.prefixes == {OWN, COOKIES}
    assert not found.withheld
    assert found.exports == {"edge1": Export.ANNOUNCED}


def test_prefix_stays_while_one_of_its_services_is_resolved() -> None:
    assert SERVICES in announced(replace(IN_SYNC, unresolved=frozenset({FILMS}))).prefixes


def test_switch_that_does_not_resolve_services_withholds_them() -> None:
    found = announced(IN_SYNC, ALL_UNRESOLVED)
    assert found.prefixes == {SERVICES, OWN, COOKIES}
    assert found.withheld == {"edge2": {SERVICES}}


def test_cookie_prefix_stays_for_connections_with_draining_servers() -> None:
    assert announced(IN_SYNC, text=without_servers(TEXT)).prefixes == {SERVICES, OWN, COOKIES}


def test_last_switch_of_a_site_keeps_own_prefixes_when_it_drains() -> None:
    alone = announced(DRAINED)
    assert (alone.exports, alone.withheld) == ({"edge1": Export.OWN_PREFIXES}, {"edge1": {SERVICES}})
    both = announced(DRAINED, DRAINED)
    assert set(both.exports.values()) == {Export.OWN_PREFIXES}
    assert announced(DRAINED, IN_SYNC).exports == {"edge1": Export.WITHDRAWN, "edge2": Export.ANNOUNCED}
    assert announced(DRAINED, SwitchState(is_in_sync=False)).exports["edge1"] is Export.OWN_PREFIXES
    assert announced(replace(DRAINED, draining_for=0.0)).exports == {"edge1": Export.SHUTTING_DOWN}


def test_routes_stay_if_the_controller_reaches_no_switch() -> None:
    before = announced(IN_SYNC, ALL_UNRESOLVED)
    lost = SwitchState(is_in_sync=False, unresolved=frozenset({FILMS, SMALL}))
    assert announced(lost, lost, last=before) == before


def test_restarted_controller_keeps_what_frr_announces() -> None:
    config, bgp = config_of()
    router = ip_address("2001:db8:1::fe")
    running = (
        f"ipv6 prefix-list frontage-withheld-{config.device.name} seq 5 permit 2001:db8:f::/48\nrouter bgp 64512\n"
        f" neighbor {router} remote-as 64513\n address-family ipv6 unicast\n  network {SERVICES}\n exit-address-family\nexit\n"
        f"route-map frontage-{router} deny 5\n match ipv6 address prefix-list frontage-withheld-x\nexit\n"
        f"route-map frontage-{router} permit 10\nexit\n"
    )
    present = parse_running(running, 64512)
    assert present == Originated(
        frozenset({router}),
        frozenset({SERVICES}),
        withheld={config.device.name: frozenset({ip_network("2001:db8:f::/48")})},
        permitted=frozenset({router}),
    )
    last = recovered(config, bgp, present)
    found = announcement(config, bgp, {config.device.name: SwitchState(is_in_sync=False)}, last)
    assert found.exports == {config.device.name: Export.ANNOUNCED}
    assert SERVICES in found.prefixes
    assert recovered(config, bgp, Originated()).exports == {}


async def test_speaker_withdraws_nothing_before_it_knows_a_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No switch runs here, as while a restarted controller connects."""
    monkeypatch.setattr(Fleet, "primary", True)
    running, given, program = tmp_path / "running", tmp_path / "given", tmp_path / "vtysh"
    running.write_text(
        f"router bgp 64512\n neighbor 2001:db8:1::fe remote-as 64513\n address-family ipv6 unicast\n  network {SERVICES}\n"
        " exit-address-family\nexit\nroute-map frontage-2001:db8:1::fe permit 10\nexit\n"
    )
    program.write_text(f"#!/bin/sh\ncase \"$*\" in *json*) echo '{{}}';; -f*) cat >>{given};; *) cat {running};; esac\n")
    program.chmod(0o755)
    speaker = Speaker(Fleet(loads(TEXT + f"  vtysh: [{program}]\n", ARTEMIS)))
    task = asyncio.create_task(speaker.run())
    async with asyncio.timeout(30):
        while not {OWN, COOKIES} <= speaker.announced.prefixes:
            await asyncio.sleep(0.01)
    samples = {s.name: s.value for metric in speaker_metrics(speaker) for s in metric.samples}
    assert samples["frontage_bgp_unresolved_services"] == 1, "the dispatcher is not resolved"
    assert samples["frontage_bgp_withheld_prefixes"] == 0
    task.cancel()
    await asyncio.wait([task])
    written = given.read_text()
    assert f"no network {SERVICES}" not in written
    assert "route-map frontage-2001:db8:1::fe permit 10" in written
    assert "route-map frontage-2001:db8:1::fe deny 10" not in written
    assert SERVICES in speaker.announced.prefixes


# Default routes

RACK = TEXT.replace("    - { address", '    - { address: "2001:db8:2::5", asn: 64520, announce: default }\n    - { address')
DEFAULT = ip_network("::/0")


def test_neighbors_in_racks_learn_a_default_route() -> None:
    assert announced(IN_SYNC, text=RACK).prefixes == {SERVICES, OWN, COOKIES, DEFAULT}
    config, bgp = config_of(RACK)
    wanted = Announcement(frozenset({DEFAULT}), {config.device.name: Export.ANNOUNCED})
    text = "\n".join([*lines(config, bgp, Originated(), wanted), *setup_lines(bgp, {}, Originated())])
    assert (
        "route-map frontage-default-2001:db8:2::5 permit 10\n match as-path frontage-own\n"
        " match ipv6 address prefix-list frontage-default\n set ipv6 next-hop global 2001:db8:2::1\n" in text
    )
    assert "route-map frontage-2001:db8:1::fe deny 7\n match ipv6 address prefix-list frontage-default\nexit" in text
    assert " neighbor 2001:db8:2::5 route-map frontage-reject in\n" in text
    assert " neighbor 2001:db8:1::fe route-map frontage-in in\n" in text
    assert bgp.upstreams == bgp.neighbors[1:]


def test_switch_without_upstream_routers_withholds_the_default_route() -> None:
    found = announced(replace(IN_SYNC, isolated=frozenset({6})), IN_SYNC, text=RACK)
    assert found.withheld == {"edge1": {DEFAULT}}
    assert not announced(replace(IN_SYNC, isolated=frozenset({4})), IN_SYNC, text=RACK).withheld
    all_isolated = replace(IN_SYNC, isolated=frozenset({6}))
    assert not announced(all_isolated, all_isolated, text=RACK).withheld, "then FRR's host is probably the one that is cut off"


def test_last_switch_that_drains_keeps_the_default_route() -> None:
    assert announced(DRAINED, text=RACK).withheld == {"edge1": {SERVICES}}
    assert announced(DRAINED, IN_SYNC, text=RACK).exports["edge1"] is Export.WITHDRAWN


# When a switch resolves a service

ELSEWHERE, HERE, BOTH = (2,), (1,), (1, 2)


def mapping_of(default: tuple[int, ...] | None, **regions: tuple[int, ...]) -> EndUserMapping:
    choices = {(7, int(name.removeprefix("r"))): sites for name, sites in regions.items()}
    return EndUserMapping(deployments={3: 7}, choices=choices | ({(7, 0): default} if default else {}))


@pytest.mark.parametrize(
    ("mapping", "has_servers", "has_backbone", "is_resolved"),
    [
        # A site with replicas resolves the service, even if it is the last one.
        (EndUserMapping(), True, False, True),
        (mapping_of(HERE), True, False, True),
        (mapping_of(ELSEWHERE), True, False, True),
        (mapping_of(HERE, r5=ELSEWHERE), True, False, True),
        # Without replicas, it redirects clients if the mapping leads them to a site that it reaches.
        (mapping_of(ELSEWHERE), False, True, True),
        (mapping_of(BOTH), False, True, True),
        (mapping_of(ELSEWHERE, r5=HERE), False, True, True),
        (mapping_of(ELSEWHERE), False, False, False),
        (mapping_of(BOTH), False, False, False),
        (mapping_of(HERE), False, True, False),
        (mapping_of(HERE, r5=ELSEWHERE), False, True, False),
        # Clients without a region would stay here.
        (mapping_of(None), False, True, False),
        (mapping_of(None, r5=ELSEWHERE), False, True, False),
        (EndUserMapping(), False, True, False),
    ],
)
def test_switch_resolves_service(mapping: EndUserMapping, has_servers: bool, has_backbone: bool, is_resolved: bool) -> None:
    config, _ = config_of(TEXT if has_servers else without_servers(TEXT))
    mac = Mac(0x020000000909)
    neighbors = {BACKBONE: Resolved("backbone", mac) if has_backbone else None, DISPATCHER: Resolved("rack", mac)}
    assert unresolved(config, mapping, neighbors, min_servers=1) == (set() if is_resolved else {FILMS})


def test_service_without_dedicated_address_needs_a_dispatcher() -> None:
    config, _ = config_of()
    assert SMALL in unresolved(config, EndUserMapping(), {DISPATCHER: None}, min_servers=1)
    assert FILMS in unresolved(config, EndUserMapping(), {}, min_servers=3)


def test_other_vips_are_not_service_addresses() -> None:
    assert unresolved(loads(EXAMPLE.read_text(), EXAMPLE), EndUserMapping(), {}, min_servers=1) == frozenset()


# FRR's configuration


def test_withheld_prefixes_are_in_a_list_of_the_switch() -> None:
    config, bgp = config_of()
    name = config.device.name
    wanted = Announcement(frozenset({SERVICES}), {name: Export.OWN_PREFIXES}, {name: frozenset({SERVICES})})
    found = list(lines(config, bgp, Originated(withheld={name: frozenset({OWN}), "gone": frozenset({COOKIES})}), wanted))
    assert found[:6] == [
        f"no ipv6 prefix-list frontage-withheld-gone permit {COOKIES}",
        f"ipv6 prefix-list frontage-withheld-{name} permit {SERVICES}",
        f"no ipv6 prefix-list frontage-withheld-{name} permit {OWN}",
        "route-map frontage-2001:db8:1::fe deny 5",
        f" match ipv6 address prefix-list frontage-withheld-{name}",
        "exit",
    ]
    assert " set community graceful-shutdown" in found


# The configuration file


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (f'["{SERVICES}"]', '["2001:db8:a57f::/48"]', "bgp.service_prefixes[0]: 2001:db8:a57f::/48 has no service address"),
        (f'["{SERVICES}"]', f'["{SERVICES}", "2001:db8::/32"]', f"bgp.service_prefixes[1]: 2001:db8::/32 overlaps {SERVICES}"),
        (
            f'["{OWN}"]',
            '["2001:db8:a57e:1::/64"]',
            f"bgp.own_prefixes[0]: 2001:db8:a57e:1::/64 overlaps {SERVICES} of service_prefixes[0]",
        ),
        (f'["{OWN}"]', "[198.51.100.0/24]", "bgp.own_prefixes[0]: no neighbor learns the IPv4 prefix 198.51.100.0/24"),
        (f'["{OWN}"]', '["2001:db8:101::1/48"]', "bgp.own_prefixes[0]:"),
        (f'["{OWN}"]', '["::/0"]', "bgp.own_prefixes[0]: ::/0 is a default route: use `announce: default`"),
        (f'["{SERVICES}"]', '["2001:db8:c00c::/48"]', f"vips[0].cookie_prefix: {COOKIES} overlaps 2001:db8:c00c::/48"),
    ],
)
def test_invalid_prefixes_are_rejected(old: str, new: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"artemis\.yaml:\d+:\d+: {re.escape(problem)}"):
        config_of(TEXT.replace(old, new, 1))


def test_vip_in_a_prefix_must_be_of_the_right_kind() -> None:
    plain = re.sub(r"    artemis: { name: small.*\n", '    address: "2001:db8:a57e:bd47::"\n', TEXT)
    with pytest.raises(
        ConfigError, match=r"vips\[1\]\.address: 2001:db8:a57e:bd47:: is in 2001:db8:a57e::/48, but not a service address"
    ):
        config_of(plain)
    own = TEXT.replace(f'service_prefixes: ["{SERVICES}"]', "service_prefixes: []").replace(str(OWN), str(SERVICES))
    with pytest.raises(
        ConfigError, match=r"vips\[0\]\.address: 2001:db8:a57e:acdc:: is in 2001:db8:a57e::/48, which only this site"
    ):
        config_of(own)
