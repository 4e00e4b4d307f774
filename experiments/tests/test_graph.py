"""Topologies, the ways through them, and what their switches are told."""

from collections import Counter

import pytest

from frontage_sim import scenario
from frontage_sim.addresses import VIP, host_address
from frontage_sim.graph import Graph, Host, Link, Switch
from frontage_sim.worlds import graph


def walk(net: Graph, start: str, destination: str, choice: int) -> list[str]:
    way = [start]
    while way[-1] != destination:
        port = net.next_hop(way[-1], destination, choice)
        assert port is not None
        way.append(port.peer)
    return way


def test_testbed_passes_balancer_nic_and_switch() -> None:
    net = graph(scenario.Testbed())
    assert not list(net.problems())
    assert walk(net, "c2", "s7", 0) == ["c2", "lb2", "nic", "tor", "s7"]
    assert walk(net, "s7", "c2", 0) == ["s7", "tor", "nic", "lb2", "c2"]


def test_testbeds_servers_share_the_rate() -> None:
    net = graph(scenario.Testbed(servers=4, rate=8_000_000_000, server_rates=(1_000_000_000, 3_000_000_000)))
    assert [net.ports[f"s{n}"][0].link.rate for n in range(1, 5)] == [10**9, 3 * 10**9] * 2


def test_leaf_spine_spreads_destinations_over_spines() -> None:
    net = graph(scenario.LeafSpine(kind="leaf-spine"))
    assert not list(net.problems())
    assert len(net.hosts) == 144
    assert walk(net, "h1", "h2", 0) == ["h1", "leaf1", "h2"]
    spines = Counter(walk(net, "h1", f"h{n}", n)[2] for n in range(17, 145))
    assert spines == {f"spine{n}": 32 for n in range(1, 5)}
    assert [port.peer for port in net.next_hops("leaf1", "h17")] == [f"spine{n}" for n in range(1, 5)]


def test_hosts_forward_nothing() -> None:
    links = (Link("s", "h1", 1, 0, 1), Link("h1", "t", 1, 0, 1), Link("t", "h2", 1, 0, 1))
    net = Graph((Switch("s"), Switch("t")), (Host("h1", "peer"), Host("h2", "peer")), links, 1)
    assert net.next_hop("s", "h2", 0) is None


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        ((Link("s", "h1", 1, 0, 1),), "h2 has 0 links, a host has one"),
        ((Link("s", "h1", 1, 0, 1), Link("s", "h2", 1, 0, 1), Link("s", "x", 1, 0, 1)), "a link leads to x, which is no node"),
    ],
)
def test_what_is_no_network(links: tuple[Link, ...], problem: str) -> None:
    net = Graph((Switch("s"),), (Host("h1", "client"), Host("h2", "server")), links, 1)
    assert problem in list(net.problems())


def test_addresses_are_unique() -> None:
    net = graph(scenario.LeafSpine(kind="leaf-spine"))
    addresses = {host_address(net, host.name) for host in net.hosts}
    assert len(addresses) == 144
    assert VIP not in addresses
