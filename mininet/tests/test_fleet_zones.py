# SPDX-License-Identifier: Apache-2.0
"""Zones of a fleet: switches prefer the servers of their zone, use others if too many of them fail, and forward all connections."""

from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from frontage_testbed.datacentre.addresses import VIP4
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.faults import unavailable
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet import checkers
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.testbed import FleetTestbed, fleet_testbed
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from healthbeds import Bed, wait
from testbeds import Sandboxed, deployment, needs_root

pytest.importorskip("h11")
pytestmark = [needs_root, pytest.mark.slow(seconds=60)]

SETTINGS = Settings(servers=6, clients=1, policies=("cheetah-rr",), queue_delay=0.1)
CHECK = {"kind": "http", "path": "/health", "interval": 1.0, "timeout": 1.0, "rise": 2, "fall": 3}
ZONES = {"edge1": "one", "edge2": "two", "edge3": "two"}
OWN, OTHERS = ["s1", "s2", "s3"], ["s4", "s5", "s6"]
"""The servers of zones one and two."""


def with_zones(text: str) -> str:
    document = yaml.safe_load(text)
    for device in document["devices"]:
        device["zone"] = ZONES[device["name"]]
    for server in document["servers"]:
        server["zone"] = "one" if server["name"].partition("-")[0] in OWN else "two"
    for vip in document["vips"]:
        vip["spill_over"] = 0.7
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed


def spills() -> dict[str, int]:
    """Return the VIPs that spill over, by switch."""
    return {name: count for name, count in scrape(METRICS).by("device", "frontage_zone_spills").items() if count}


def assigned(found: Bed, testbed: FleetTestbed, edge: EdgeAddresses, count: int = 12) -> dict[str, int]:
    """Return the servers of new connections through one switch."""
    testbed.route_through([edge])
    return dict(found.connections(count, VIP4))


def test_switches_prefer_their_zone_and_spill_over(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        testbed = fleet_testbed(deployment(SETTINGS), SETTINGS, box, len(ZONES))
        checkers.attach(testbed.edge, CHECK)
        testbed.edge.write_configuration(with_zones(testbed.edge.config.read_text()))
        result: dict[str, object] = {}
        with testbed, ExitStack() as faults:
            one, two, three = testbed.edge.edges
            testbed.wait_until_ready()
            found = Bed(testbed, box.scratch)
            for server in testbed.server_addresses:
                found.wait_for(server.name, "healthy")
            result["healthy"] = {edge.name: assigned(found, testbed, edge) for edge in (one, two, three)}

            testbed.route_through([one])
            held = found.hold(6, VIP4)
            testbed.route_through([two])
            result["held"] = held.servers()

            faults.enter_context(unavailable(found.server(0), box.scratch))
            wait(lambda: spills() == {"edge1": 2}, f"zone one does not spill over: {spills()}")
            testbed.edge.wait_until_installed()
            result["one failed"] = {edge.name: assigned(found, testbed, edge, 34) for edge in (one, two)}
            for index in (1, 2):
                faults.enter_context(unavailable(found.server(index), box.scratch))
                found.wait_for(f"s{index + 1}", "failed")
            testbed.edge.wait_until_installed()
            result["all failed"] = assigned(found, testbed, one)
            faults.close()
            for server in testbed.server_addresses:
                found.wait_for(server.name, "healthy")
            wait(lambda: not spills(), "the spill-over does not end")
            testbed.edge.wait_until_installed()
            result["recovered"] = assigned(found, testbed, one)
        return result

    result = Sandboxed(body, tmp_path).result()
    own, others = dict.fromkeys(OWN, 4), dict.fromkeys(OTHERS, 4)
    assert result["healthy"] == {"edge1": own, "edge2": others, "edge3": others}
    assert all(first == second for first, second in result["held"]), "each switch forwards the connections of all zones"
    assert {first for first, _ in result["held"]} == set(OWN)
    # Two of three servers are 0.67 of the weight: others take 1 of 17 turns each.
    assert result["one failed"]["edge1"] == {"s2": 14, "s3": 14, **dict.fromkeys(OTHERS, 2)}
    assert set(result["one failed"]["edge2"]) == set(OTHERS)
    assert result["all failed"] == others
    assert result["recovered"] == own
