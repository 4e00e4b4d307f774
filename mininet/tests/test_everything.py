# SPDX-License-Identifier: Apache-2.0
"""One connection through all systems, as each of them counted or logged it.

An Artemis client and Chromium open a page at two sites with two switches each. Anycast leads one of the two clients to
the far site.
"""

from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from frontage.naming import ServicePrefix
from frontage_demo.artemis.names import ZONE
from frontage_demo.everything import clients, hops
from frontage_demo.everything.addresses import balancers, real_servers
from frontage_demo.everything.programs import find
from frontage_demo.everything.testbed import SCENARIO, EverythingTestbed
from frontage_testbed import chromium
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.wan.addresses import INSTANCE
from testbeds import Sandboxed, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=35)]


def by_artemis(testbed: EverythingTestbed, client: str) -> dict[str, Any]:
    before = hops.read_all(testbed)
    visit = clients.by_artemis(testbed, client, list(testbed.page)).finish()
    counts = hops.since(testbed, before, len(testbed.page))
    digests = [item.sha256 for item in testbed.page.values()]
    return {
        "first": visit.first_address,
        "last": visit.last_address,
        "whole": sorted(report["sha256"] for report in visit.objects) == sorted(digests),
        "counts": {location: count.as_json() for location, count in counts.items()},
    }


def by_chromium(testbed: EverythingTestbed, client: str, scratch: Path) -> dict[str, Any]:
    before = hops.read_all(testbed)
    urls = {path: item.sha256 for path, item in testbed.page.items()}
    objects = clients.visit_by_chromium(testbed, client, scratch / f"chromium-{client}", urls)
    counts = hops.since(testbed, before, len(urls))
    return {
        "whole": all(fetched.whole for fetched in objects),
        "protocols": sorted({fetched.protocol for fetched in objects}),
        "counts": {location: count.as_json() for location, count in counts.items()},
    }


def check(seen: dict[str, Any], near: str, entry: str) -> None:
    """Check the hops that a visit by any client has."""
    assert seen["whole"]
    counts = seen["counts"]
    at_entry, best = counts[entry], counts[near]
    # Anycast led the first flight to the entry site, whose switch asked the dispatcher, which chose the best site.
    assert at_entry["total"].get("steered-dispatcher", 0) > 0
    assert at_entry["dispatched"]["forwarded"] > 0
    for location, count in counts.items():
        assert bool(count["requests"]) == (location == near), "only the best replica answers"
    if entry != near:
        assert best["total"]["steered-dispatcher"] > 0, "the best site's dispatcher chose the replica"
        assert at_entry["total"]["steered-cid"] > 0, "the entry site passed the handshake on by its connection id"
    # The best site answered the client directly.
    assert best["total"]["response-client"] > 0
    assert at_entry is best or "response-client" not in at_entry["total"]
    # After the client had moved, CCLB4 found the balancer by the cookie in the address.
    assert best["total"]["retrieved-address"] > 10
    assert len({line["balancer"] for line in best["requests"]}) == 1
    # Real servers answered, also while the client was in the tunnel of another site.
    delegated = [line for line in best["requests"] if "server" in line]
    assert len(delegated) == len(best["requests"])
    assert best["total"]["real-server"] > 100
    sent = sum(best["real_server_bytes"].values())
    assert sent == sum(line["bytes"] for line in delegated)
    assert (
        best["dropped"].keys().isdisjoint({"cookie-source", "real-server-source", "tunnel-peer", "tunnel-forged", "tunnel-origin"})
    )


def test_one_connection_passes_through_all_systems(tmp_path: Path) -> None:
    try:
        programs = find()
    except DeploymentError as error:
        pytest.skip(str(error))

    def body(box: Sandbox) -> dict[str, Any]:
        with EverythingTestbed(programs, box.scratch / "testbed") as testbed:
            seen: dict[str, Any] = {"routes": {c: testbed.routes[p] for c, p in SCENARIO.clients.items()}}
            seen["artemis"] = {client: by_artemis(testbed, client) for client in SCENARIO.clients}
            if chromium.is_installed():
                seen["chromium"] = {c: by_chromium(testbed, c, box.scratch) for c in SCENARIO.clients}
            seen["sites"] = {
                s.location: [s.cookie_prefix, [b.name for b in balancers(s)], [r.name for r in real_servers(s)]]
                for s in testbed.sites
            }
        return seen

    seen = Sandboxed(body, tmp_path).result()
    print(seen)
    service = str(ServicePrefix.parse(INSTANCE).service_address(ZONE))
    for client, near in SCENARIO.clients.items():
        visit = seen["artemis"][client]
        # The client computed the address of its first packet from the name, and moved to the best site.
        assert IPv6Address(visit["first"]) == IPv6Address(service)
        assert IPv6Address(visit["last"]) in IPv6Network(seen["sites"][near][0])
        check(visit, near, seen["routes"][client])
        # Servers do not hash their addresses, which are dynamic cookies: the connection's packets stay in order.
        edges = visit["counts"][near]["outcomes"].values()
        assert sum(bool(count.get("real-server")) for count in edges) == 1
    for client, visit in seen.get("chromium", {}).items():
        assert visit["protocols"] == ["h3"]
        check(visit, SCENARIO.clients[client], seen["routes"][client])
    assert {*seen["routes"].values()} != {*SCENARIO.clients.values()}, "anycast leads a client to the far site"
