# SPDX-License-Identifier: Apache-2.0
"""Neighbor resolution with real hosts: the controller finds out all Ethernet addresses, follows a server whose address changes,
and rejects hosts that claim the addresses of others.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from scapy.all import ARP, Ether, ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6

from frontage_testbed.datacentre.addresses import (
    EDGE_CLIENT4,
    EDGE_CLIENT6,
    EDGE_CLIENT_MAC,
    INTERNET4,
    INTERNET6,
    INTERNET_MAC,
    VIP4,
    VIP6,
    ServerAddresses,
)
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.edge import EdgeSwitch
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.nodes import Namespace
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, needs_root, only_long

pytestmark = [needs_root, pytest.mark.slow(seconds=40)]

SETTINGS = Settings(servers=3, policies=("cclb4",))
DOWNLOADS = 60
LENGTH = 25.0
"""Seconds of each download."""
CHANGE, SPOOF, CHECK = 4.0, 10.0, 14.0
"""Times of the actions in seconds."""
MOVE_LIMIT = 20.0
"""Seconds within which the controller must follow a server that has packets to send."""
NEW_MAC = "02:00:00:00:02:f1"
SPOOFER_MAC = "02:00:00:00:01:66"
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]

SEND_AND_COUNT = """
import socket, sys, time
interface, mac, seconds, *frames = sys.argv[1:]
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((interface, 0))
link.settimeout(0.05)
end = time.monotonic() + float(seconds)
due, received = 0.0, 0
while time.monotonic() < end:
    if time.monotonic() >= due:
        for frame in frames:
            link.send(bytes.fromhex(frame))
        due = time.monotonic() + 0.1
    try:
        received += link.recv(65535)[:6] == bytes.fromhex(mac.replace(":", ""))
    except TimeoutError:
        pass
print(received)
"""
"""Sends frames ten times per second, and prints the number of frames to an Ethernet address."""


def claims(address: str, gateway: str, gateway_mac: str) -> list[str]:
    """Return the frames, in hexadecimal, of a host that claims an address: an answer to the switch."""
    ethernet = Ether(src=SPOOFER_MAC, dst=gateway_mac)
    if ":" in address:
        advertisement = ICMPv6ND_NA(tgt=address, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=SPOOFER_MAC)
        return [bytes(ethernet / IPv6(src=address, dst=gateway, hlim=255) / advertisement).hex()]
    return [bytes(ethernet / ARP(op=2, hwsrc=SPOOFER_MAC, psrc=address, hwdst=gateway_mac, pdst=gateway)).hex()]


def spoof(host: Namespace, interface: str, frames: list[str], seconds: float) -> int:
    """Send claims from a host, and return the number of frames that came for the claimed Ethernet address."""
    return int(host.run([sys.executable, "-c", SEND_AND_COUNT, interface, SPOOFER_MAC, str(seconds), *frames]).stdout)


def neighbors(edge: EdgeSwitch) -> dict[str, dict[str, Any]]:
    status = json.loads(edge.frontage("status", "--json"))
    return {neighbor["address"]: neighbor for neighbor in status["neighbors"]}


def make_plan() -> list[Arrival]:
    return [
        Arrival(i, i / DOWNLOADS, i % SETTINGS.clients, size, size, "fin")
        for i, size in enumerate([int(LENGTH * PACE)] * DOWNLOADS)
    ]


@pytest.mark.parametrize(("target", "version"), [("softswitch", 4), ("softswitch", 6), pytest.param("tna", 6, marks=only_long)])
def test_downloads_survive_change_of_address_and_spoofing(tmp_path: Path, target: str, version: int) -> None:
    settings = replace(SETTINGS, target=target)
    parts = deployment(settings)
    vip, router, gateway = (VIP4, INTERNET4, EDGE_CLIENT4) if version == 4 else (VIP6, INTERNET6, EDGE_CLIENT6)
    first, second = SERVERS[:2]
    server = first.address4 if version == 4 else first.address6
    second_gateway = second.gateway4 if version == 4 else second.gateway6

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with parts.testbed(settings, box) as testbed:
            edge, found = testbed.edge, dict[str, Any]()
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            found["configuration"] = yaml.safe_load(edge.config.read_text())
            found["before"] = neighbors(edge)

            def change_address() -> None:
                testbed.servers[0].run(["ip", "link", "set", "dev", "eth0", "address", NEW_MAC])
                began = time.monotonic()
                while neighbors(edge)[server]["mac"] != NEW_MAC and time.monotonic() < began + MOVE_LIMIT:
                    time.sleep(0.1)
                found["moved after"] = time.monotonic() - began

            def claim() -> None:
                found["to spoofer"] = spoof(testbed.network["internet"], "edge", claims(router, gateway, EDGE_CLIENT_MAC), 2.0)
                # Another server claims the addresses of the first one and of the router.
                frames = claims(server, second_gateway, second.gateway_mac) + claims(router, second_gateway, second.gateway_mac)
                found["to other server"] = spoof(testbed.servers[1], "eth0", frames, 1.0)

            def check() -> None:
                found["after"] = neighbors(edge)

            schedule = Schedule([(CHANGE, change_address), (SPOOF, claim), (CHECK, check)])
            clients = Clients(testbed.clients, over_tcp(plan_file, vip, PACED), box.scratch / "clients.log")
            schedule.run(clients)
            found["log"] = (box.scratch / "edge" / "controller.log").read_text()
        return found | {"outcomes": [(o.index, o.outcome, o.server) for o in clients.outcomes]}

    found = Sandboxed(body, tmp_path).result()
    sections = [*found["configuration"]["routes"], *found["configuration"].get("neighbors", []), *found["configuration"]["servers"]]
    assert not [entry for entry in sections if "mac" in entry]
    before, after = found["before"], found["after"]
    assert {address: neighbor["mac"] for address, neighbor in before.items()} == {
        **{address: s.mac for s in SERVERS for address in (s.address4, s.address6)},
        INTERNET4: INTERNET_MAC,
        INTERNET6: INTERNET_MAC,
    }
    assert [o for o in found["outcomes"] if o[1] != "ok"] == []
    assert first.name in {o[2] for o in found["outcomes"]}, "downloads use the server whose address changes"
    assert found["moved after"] < MOVE_LIMIT
    assert (after[server]["mac"], after[server]["conflicts"]) == (NEW_MAC, 0)

    assert (found["to spoofer"], found["to other server"]) == (0, 0)
    assert (after[router]["mac"], after[router]["port"]) == (INTERNET_MAC, "internet")
    assert (after[router]["conflicts"], after[router]["claimant"]) == (1, SPOOFER_MAC)
    assert after[router]["rejected"] > 0, "an answer on the port of a server is not about the router"
    assert after[server]["rejected"] > 0
    assert f"neighbor {router}: {SPOOFER_MAC} on port internet claims the address" in found["log"]
