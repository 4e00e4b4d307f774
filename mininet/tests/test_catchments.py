# SPDX-License-Identifier: Apache-2.0
"""Catchments of an Artemis service by BGP: clients of an emulated Internet reach the sites that its routers select, and keep their
connections when a site drains and when another one dies.
"""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from frontage_demo.artemis.programs import find
from frontage_demo.artemis.site import Programs
from frontage_demo.catchments import held, scenario
from frontage_demo.catchments.scenario import FIRST, FRANKFURT, HOLDING, TOKYO, VIRGINIA
from frontage_demo.catchments.testbed import CatchmentTestbed
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.internet.plan import ADJACENCIES, SITE_ASN, SYSTEMS, Relation, neighbors_of
from frontage_testbed.internet.routing import configuration
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.wan.addresses import SERVICE_PREFIX
from testbeds import Sandboxed, needs_frr, needs_root


def programs() -> Programs:
    try:
        return find()
    except DeploymentError as error:
        pytest.skip(str(error))


def test_relations_are_mutual() -> None:
    for number in SYSTEMS:
        for index, neighbor, relation in neighbors_of(number):
            (back,) = (r for i, system, r in neighbors_of(neighbor.number) if i == index and system.number == number)
            assert {relation, back} in ({Relation.PEER}, {Relation.CUSTOMER, Relation.PROVIDER})
    assert len(ADJACENCIES) == sum(len(neighbors_of(number)) for number in SYSTEMS) // 2


def test_peers_and_providers_get_routes_of_customers_only() -> None:
    text = configuration(SYSTEMS[64501], [])
    assert "route-map to-peer permit 10\n match community customers\nexit" in text
    assert "route-map to-provider permit 10\n match community customers\nexit" in text
    assert "route-map to-customer permit 10\nexit" in text
    assert "network 2001:db8:c2::/48 route-map own" in text


@needs_root
@needs_frr
@pytest.mark.slow(seconds=70)
def test_clients_follow_catchments_and_keep_connections(tmp_path: Path) -> None:
    made_of = programs()

    def body(box: Sandbox) -> object:
        with CatchmentTestbed(made_of, box.scratch / "testbed") as testbed:
            return asdict(scenario.play(testbed, box.scratch / "entries"))

    found = Sandboxed(body, tmp_path).result()
    print(json.dumps(found, indent=1))
    ways, events = found["catchments"], found["events"]
    for client, way in ways.items():
        # The best route, the forwarding tables, the answers of routers and the captures agree.
        assert way["site"] == way["announced_by"] == FIRST[client], client
        assert way["as_path"] == [*way["forwarded"], SITE_ASN]
        assert way["traced"] == way["forwarded"]
        assert found["entered"][client] == [FIRST[client]]
        # The mapping, not BGP, selects the site that serves.
        assert way["served"] == way["nearest"]
    away = {client for client, way in ways.items() if way["site"] != way["nearest"]}
    assert away == {"United Kingdom"}, "its network prefers the peer of Virginia's site to its provider"

    for name, event in events.items():
        assert event["attempts"] > 0, name
        assert event["failed"] == [], name
        # Only connections that the dead site serves end with it. With two sites per first flight, it serves some of the clients
        # of its catchment.
        lost = {client for client, (_, failed) in event["in_progress"].items() if failed}
        assert lost <= (set(event["last_before"]) if name == "Virginia dies" else set()), name
    assert events["Frankfurt's controller restarts"]["served"]["Germany"] == [FRANKFURT]
    # The catchment moves. Frankfurt still serves its clients, because the mapping leads there.
    assert list(events["Frankfurt drains"]["last_before"]) == ["Germany"]
    assert events["Frankfurt drains"]["served"]["Germany"] == [FRANKFURT]
    status = found["status"]["Frankfurt drains"]
    assert list(status["exports"].values()) == ["own prefixes"]
    assert list(status["withheld"].values()) == [[SERVICE_PREFIX]]
    # Tokyo still attracts its clients without replicas, and redirects them. Without a mapping it cannot.
    assert TOKYO not in events["Tokyo loses its replica"]["served"]["Osaka"]
    assert list(events["Tokyo loses its mapping"]["last_before"]) == ["Osaka"]
    status = found["status"]["Tokyo loses its mapping"]
    assert SERVICE_PREFIX not in status["prefixes"]
    assert len(status["prefixes"]) == 2, "its own prefix and its cookie prefix stay"
    assert list(status["unresolved"].values()) == [["films"]]
    assert "edge3 does not resolve films" in found["text"]
    assert set(events["Virginia dies"]["last_before"]) == {"United Kingdom", "Ohio"}
    interrupted = events["Virginia dies"]["in_progress"]
    assert all(count for count, _ in interrupted.values()), "each client has connections in progress"
    assert all(VIRGINIA not in sites for sites in events["the next mapping"]["served"].values())

    assert {(one["client"], one["program"]) for one in found["held"]} == {(c, p) for c in HOLDING for p in held.programs()}
    for one in found["held"]:
        assert one["was_open"], one
        assert one["whole"], one
        assert one["site"] == ways[one["client"]]["nearest"]
        assert one["during"] == 0, "it has left the service address for its site's own"
        assert one["before"] > 0
