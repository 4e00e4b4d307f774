# SPDX-License-Identifier: Apache-2.0
"""VIPs that a real router learns by BGP from FRR, and default routes that servers learn.

Switches fail, drain and lose their router during downloads. A VIP without servers is withdrawn, and sessions with a wrong password
are rejected.
"""

import time
from ipaddress import ip_address
from pathlib import Path

import pytest

from cuts import dropping
from frontage_testbed.datacentre.addresses import VIP4, VIP6
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet.testbed import FleetTestbed, IPAddress, fleet_testbed
from frontage_testbed.fleet.topology import INTERNET
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, needs_frr, needs_root, only_long, seconds_until

pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=90),
    needs_frr,
]

SETTINGS = Settings(servers=3, policies=("cclb4",), queue_delay=0.1)
DOWNLOADS = 200
LENGTH = 60.0
"""Seconds of each download."""
FORGED = "203.0.113.99"
PASSWORD = "known-to-both-sides"


def make_plan() -> list[Arrival]:
    """Return the downloads, followed by five short requests per second."""
    begin = [(2.0 * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(2.0 + 0.2 * i, 10_000) for i in range(int((LENGTH - 5) * 5))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "idle") for i, (at, size) in enumerate(begin)]


def uplinks(testbed: FleetTestbed, vip: str, *indices: int) -> set[IPAddress]:
    """Return the addresses of switches, as next hops for a VIP."""
    return {ip_address(edge.uplink6 if ":" in vip else edge.uplink4) for edge in testbed.edge.edges if edge.index in indices}


def gateways(testbed: FleetTestbed, version: int, *indices: int) -> set[IPAddress]:
    """Return the addresses of switches, as next hops of servers."""
    return {ip_address(edge.rack6 if version == 6 else edge.rack4) for edge in testbed.edge.edges if edge.index in indices}


def servers_use(testbed: FleetTestbed, version: int, *indices: int) -> bool:
    """Return whether the default routes of all servers lead through these switches only."""
    wanted = gateways(testbed, version, *indices)
    return all(testbed.default_routes(server, version) == wanted for server in testbed.server_addresses)


def test_routers_and_servers_follow_switches_and_connections_survive(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with fleet_testbed(parts, SETTINGS, box, password=PASSWORD) as testbed:
            edge, times = testbed.edge, {}
            one, two, _ = edge.edges
            testbed.offer_objects(a.wire_size for a in plan)

            def wait(name: str, *indices: int) -> None:
                began = time.monotonic()
                seconds_until(lambda: all(testbed.next_hops(vip) == uplinks(testbed, vip, *indices) for vip in (VIP4, VIP6)))
                routers = time.monotonic() - began
                seconds_until(lambda: all(servers_use(testbed, version, *indices) for version in (4, 6)))
                times[name] = routers, time.monotonic() - began

            wait("start", 0, 1, 2)
            testbed.wait_until_ready()

            def kill() -> None:
                edge.kill_one(one)
                wait("switch killed", 1, 2)

            def bring_back() -> None:
                edge.start_one(one)
                wait("switch back", 0, 1, 2)

            def drain() -> None:
                edge.frontage("drain-switch", two.name, "--wait", "25")
                wait("drained", 0, 2)

            def end_drain() -> None:
                edge.frontage("drain-switch", two.name, "--undo")
                wait("drain undone", 0, 1, 2)

            def cut() -> None:
                with dropping(testbed.network[INTERNET], "meta length gt 0", device=one.name):
                    wait("switch without its router", 1, 2)
                    time.sleep(2)
                wait("router back", 0, 1, 2)

            events = [(5.0, kill), (9.0, bring_back), (13.0, drain), (20.0, end_drain), (26.0, cut)]
            schedule = Schedule(events)
            clients = Clients(testbed.clients, over_tcp(plan_file, VIP4, PACED), box.scratch / "clients.log")
            schedule.run(clients)
        outcomes = [(o.index, o.outcome) for o in clients.outcomes]
        return {"outcomes": outcomes, "times": times}

    result = Sandboxed(body, tmp_path).result()
    print({name: f"router {router:.2f} s, servers {servers:.2f} s" for name, (router, servers) in result["times"].items()})
    assert len(result["outcomes"]) == len(make_plan())
    assert [o for o in result["outcomes"] if o[1] != "ok"] == []


@only_long
def test_vip_without_servers_and_forged_sessions(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with fleet_testbed(parts, SETTINGS, box, switches=2, password=PASSWORD) as testbed:
            assert testbed.speaker is not None
            assert testbed.router is not None

            def is_routed(vip: str) -> bool:
                return testbed.next_hops(vip) == uplinks(testbed, vip, 0, 1)

            seconds_until(lambda: is_routed(VIP4) and is_routed(VIP6))
            names = [f"{server.name}-web" for server in testbed.server_addresses]
            for name in names:
                testbed.edge.frontage("drain", name)
            withdrawn = seconds_until(lambda: not testbed.next_hops(VIP4))
            others = is_routed(VIP6)
            testbed.edge.frontage("drain", names[0], "--undo")
            announced = seconds_until(lambda: is_routed(VIP4))

            # A speaker without the password takes the controller's part, and announces what is not in the configuration.
            testbed.edge.stop_controller()
            peers = [address for edge in testbed.edge.edges for address in (edge.router4, edge.router6)]
            wrong = [f"neighbor {peer} password wrong" for peer in peers]
            forged = ["address-family ipv4 unicast", f"network {FORGED}/32", "exit-address-family"]
            testbed.speaker.configure("\n".join(["router bgp 64512", *wrong, *forged, "exit", ""]))
            time.sleep(4)  # several attempts to connect
            states = testbed.session_states()
            accepted = bool(testbed.next_hops(FORGED))
            # The controller restores its configuration.
            testbed.edge.start_controller()
            restored = seconds_until(lambda: set(testbed.session_states()) == {"Established"})
            times = {"withdrawn": withdrawn, "announced": announced, "restored": restored}
            seconds_until(lambda: is_routed(VIP4))
            kept = bool(testbed.next_hops(FORGED))
        return {"others": others, "states": states, "accepted": accepted, "kept": kept, "times": times}

    result = Sandboxed(body, tmp_path).result()
    print(result)
    assert result["others"], "the other VIP stays announced"
    assert "Established" not in result["states"]
    assert not result["accepted"]
    assert not result["kept"], "the controller removes networks that are not in its configuration"
