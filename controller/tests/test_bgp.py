# SPDX-License-Identifier: Apache-2.0
"""The announcement by BGP: what is announced to whom, FRR's configuration, and the section of the file."""

from __future__ import annotations

import asyncio
import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.bgp.announce import Announcement, Export, SwitchState, announcement
from frontage.bgp.frr import Frr, FrrError, Originated, SessionState, lines, parse_running, parse_summary, setup_lines
from frontage.bgp.metrics import speaker_metrics
from frontage.bgp.speaker import Speaker
from frontage.config import Config, ConfigError, edit, loads
from frontage.config.bgp import Bgp
from frontage.config.devices import DeviceState
from frontage.config.vips import ServerState
from frontage.service.fleet import Fleet

FLEET = EXAMPLE.with_name("fleet.yaml")
SECTION = """
bgp:
  asn: 64512
  router_id: 10.0.254.1
  neighbors:
    - { address: 192.0.2.254, asn: 64513, device: edge1, source: 10.0.254.1, communities: ["64512:100"], prepend: 2 }
    - { address: 192.0.2.253, asn: 64513, device: edge2, bfd: false }
"""
TEXT = FLEET.read_text(encoding="utf-8") + SECTION
IN_SYNC = SwitchState(is_in_sync=True)
OUT_OF_SYNC = SwitchState(is_in_sync=False)


def config_of(text: str = TEXT) -> tuple[Config, Bgp]:
    config = loads(text, FLEET)
    assert config.bgp is not None
    return config, config.bgp


def exports(states: dict[str, SwitchState], last: Announcement | None = None) -> dict[str, Export]:
    config, bgp = config_of()
    found = announcement(config, bgp, states, last) if last else announcement(config, bgp, states)
    return dict(found.exports)


# The announced routes


def test_vip_is_announced_while_it_has_enough_active_servers() -> None:
    vip = ip_network("203.0.113.10/32")
    assert announcement(*config_of(), {}).prefixes == {vip}
    one = edit.set_server_state(TEXT, "web1", ServerState.DRAINING)
    assert announcement(*config_of(one), {}).prefixes == {vip}
    assert announcement(*config_of(one.replace("asn: 64512\n", "asn: 64512\n  min_servers: 2\n")), {}).prefixes == set()
    none = edit.set_server_state(one, "web2", ServerState.DRAINING)
    assert announcement(*config_of(none), {}).prefixes == set()


def test_cookie_prefix_is_announced_with_its_vip() -> None:
    text = EXAMPLE.with_name("quic.yaml").read_text() + re.sub(r"device: edge\d, |.*edge2.*\n", "", SECTION)
    config = loads(text.replace("192.0.2.254, ", "192.0.2.254, next_hop: 192.0.2.1, "), EXAMPLE)
    assert config.bgp is not None
    found = announcement(config, config.bgp, {}).prefixes
    assert {vip.cookie_prefix for vip in config.vips if vip.cookie_prefix} <= found
    assert {ip_network(vip.address) for vip in config.vips} <= found


def test_switch_that_is_out_of_sync_is_withdrawn() -> None:
    assert exports({"edge1": IN_SYNC, "edge2": OUT_OF_SYNC}) == {"edge1": Export.ANNOUNCED, "edge2": Export.WITHDRAWN}


def test_routes_stay_if_the_controller_reaches_no_switch() -> None:
    before = Announcement(frozenset(), {"edge1": Export.ANNOUNCED, "edge2": Export.WITHDRAWN})
    assert exports({"edge1": OUT_OF_SYNC, "edge2": OUT_OF_SYNC}, before) == before.exports
    assert exports({"edge1": OUT_OF_SYNC, "edge2": IN_SYNC}, before) == {"edge1": Export.WITHDRAWN, "edge2": Export.ANNOUNCED}


@pytest.mark.parametrize(("seconds", "export"), [(0.0, Export.SHUTTING_DOWN), (4.9, Export.SHUTTING_DOWN), (5.0, Export.WITHDRAWN)])
def test_draining_switch_shuts_down_gracefully(seconds: float, export: Export) -> None:
    assert exports({"edge1": SwitchState(is_in_sync=True, draining_for=seconds)}) == {"edge1": export}


# FRR's configuration


def test_setup_names_neighbors_and_rejects_their_routes() -> None:
    _, bgp = config_of()
    present = Originated(frozenset({ip_address("192.0.2.254"), ip_address("192.0.2.9")}))
    text = "\n".join(setup_lines(bgp, {ip_address("192.0.2.253"): "word"}, present))
    assert " no neighbor 192.0.2.9\n" in text
    for line in ("remote-as 64513", "update-source 10.0.254.1", "bfd 3 100 100", "route-map frontage-in in"):
        assert f" neighbor 192.0.2.254 {line}\n" in text
    for line in (" neighbor 192.0.2.253 password word", " no neighbor 192.0.2.253 bfd", " no neighbor 192.0.2.254 password"):
        assert f"{line}\n" in text


def test_exports_precede_networks() -> None:
    config, bgp = config_of()
    wanted = Announcement(frozenset({ip_network("203.0.113.10")}), {"edge1": Export.SHUTTING_DOWN, "edge2": Export.WITHDRAWN})
    found = list(lines(config, bgp, Originated(networks=frozenset({ip_network("203.0.113.9")})), wanted))
    assert found[:12] == [
        "route-map frontage-192.0.2.254 deny 5",
        " match ip address prefix-list frontage-withheld-edge1",
        "exit",
        "route-map frontage-192.0.2.254 deny 7",
        " match ip address prefix-list frontage-default",
        "exit",
        "route-map frontage-192.0.2.254 permit 10",
        " match as-path frontage-own",
        " set ip next-hop 192.0.2.1",
        " set community 64512:100 graceful-shutdown",
        " set as-path prepend 64512 64512",
        "exit",
    ]
    assert "route-map frontage-192.0.2.253 deny 10" in found
    assert found.index("  network 203.0.113.10/32") < found.index("  no network 203.0.113.9/32")


def test_running_configuration_is_read_back() -> None:
    text = (
        "router bgp 64512\n bgp router-id 10.0.0.1\n neighbor 192.0.2.254 remote-as 64513\n neighbor 2001:db8::1 remote-as 1\n !\n"
        " address-family ipv4 unicast\n  network 203.0.113.10/32\n exit-address-family\n !\n"
        " address-family ipv6 unicast\n  network 2001:db8::/64\n exit-address-family\nexit\n!\nroute-map x permit 1\nexit\n"
        "router ospf\n network 10.0.0.0/8 area 0\nexit\n"
    )
    assert parse_running(text, 64512) == Originated(
        frozenset({ip_address("192.0.2.254"), ip_address("2001:db8::1")}),
        frozenset({ip_network("203.0.113.10"), ip_network("2001:db8::/64")}),
    )
    assert parse_running("", 64512) == Originated()
    with pytest.raises(FrrError, match=r"AS number 64512: use it as bgp\.asn"):
        parse_running(text, 64999)


def test_summary_has_the_sessions_of_both_families() -> None:
    peer = {"state": "Established", "pfxSnt": 2, "connectionsDropped": 1}
    found = parse_summary(
        {"ipv4Unicast": {"peers": {"192.0.2.1": peer}}, "ipv6Unicast": {"peers": {"2001:db8::1": {"state": "Idle"}}}}
    )
    assert found[ip_address("192.0.2.1")] == SessionState("Established", 2, 1)
    assert found[ip_address("2001:db8::1")] == SessionState("Idle", 0, 0)
    assert parse_summary({}) == {}


# A shell that is not FRR's


async def test_missing_program_is_reported() -> None:
    with pytest.raises(FrrError, match=r"no-such-vtysh: cannot be run: .*: install FRR, or correct bgp\.vtysh"):
        await Frr(["no-such-vtysh"]).sessions()


async def test_errors_and_nonsense_are_reported(tmp_path: Path) -> None:
    program = tmp_path / "vtysh"

    async def raised(script: str) -> str:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.raises(FrrError) as caught:
            await Frr([str(program)]).sessions()
        return str(caught.value)

    assert "vtysh: line 3: % Unknown command" in await raised("echo 'line 3: % Unknown command'; exit 13")
    assert "start FRR with bgpd and bfdd" in await raised("echo 'Exiting: failed to connect to any daemons.'")
    assert "use FRR 8.4 or later" in await raised("echo '[1]'")
    assert "use FRR 8.4 or later" in await raised("echo 'no JSON'")


async def test_error_is_reported_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program fails first, and then accepts everything and remembers it."""
    monkeypatch.setattr("frontage.bgp.speaker.POLL_INTERVAL", 0.05)
    monkeypatch.setattr(Fleet, "primary", True)
    program, given = tmp_path / "vtysh", tmp_path / "given"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    fleet = Fleet(loads(TEXT + f"  vtysh: [{program}]\n", FLEET))
    speaker = Speaker(fleet)
    task = asyncio.create_task(speaker.run())
    async with asyncio.timeout(30):
        while speaker.error is None:
            await asyncio.sleep(0.01)
        assert {s.value for m in speaker_metrics(speaker) if m.name == "frontage_bgp_error" for s in m.samples} == {1.0}
        program.write_text(f"#!/bin/sh\ncase \"$*\" in *json*) echo '{{}}';; -f*) cat >>{given};; esac\n")
        while speaker.error is not None or not speaker.announced.prefixes:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert "network 203.0.113.10/32" in given.read_text()
    described = speaker.describe()
    assert described is not None
    assert described["prefixes"] == ["203.0.113.10/32"]
    # No switch runs here, so nothing is exported.
    assert described["exports"] == {"edge1": "withdrawn", "edge2": "withdrawn"}


# The configuration file


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("device: edge2", "device: edge9", 'bgp.neighbors[1].device: unknown device "edge9": use one of `devices`: edge1, edge2'),
        (", device: edge2", "", "bgp.neighbors[1].device: missing: add the switch that the router sends to: edge1, edge2"),
        ("192.0.2.253", "192.0.2.254", "bgp.neighbors[1].address: duplicate neighbor 192.0.2.254"),
        ("192.0.2.253", "192.0.3.253", "bgp.neighbors[1].address: 192.0.3.253 is not on a link of the switch"),
        ("source: 10.0.254.1", 'source: "fd00::1"', "bgp.neighbors[0].source: fd00::1 is not an IPv4 address"),
        ("64512:100", "64512:70000", 'bgp.neighbors[0].communities[0]: invalid community "64512:70000"'),
        ("asn: 64512", "asn: 0", 'bgp.asn: "0" is below the minimum of 1'),
    ],
)
def test_invalid_sections_are_rejected(old: str, new: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        config_of(TEXT.replace(old, new, 1))


def test_switch_is_drained_in_the_file() -> None:
    text = edit.set_device_state(TEXT, "edge2", DeviceState.DRAINING)
    config, _ = config_of(text)
    assert config.draining_switches == {"edge2"}
    assert config.switches == config_of()[0].switches, "the switch itself does not notice"
    with pytest.raises(edit.EditError, match='unknown device "edge9"'):
        edit.set_device_state(TEXT, "edge9", DeviceState.DRAINING)
