# SPDX-License-Identifier: Apache-2.0
"""Topologies, paths through them, and the configurations of their switches."""

from collections import Counter

import pytest

from frontage_sim import scenario
from frontage_sim.addresses import QUIC, TCP
from frontage_sim.graph import Graph, Host, Link, Switch
from frontage_sim.packets import shipped_program
from frontage_sim.switches import contents_of
from frontage_sim.topologies import graph


def walk(net: Graph, start: str, destination: str, choice: int) -> list[str]:
    path = [start]
    while path[-1] != destination:
        port = net.next_hop(path[-1], destination, choice)
        assert port is not None
        path.append(port.peer)
    return path


def test_testbed_path_leads_through_balancer_nic_and_switch() -> None:
    net = graph(scenario.Testbed())
    assert not list(net.problems())
    assert walk(net, "c2", "s7", 0) == ["c2", "lb2", "nic", "tor", "s7"]
    assert walk(net, "s7", "c2", 0) == ["s7", "tor", "nic", "lb2", "c2"]


def test_server_rates_are_used_in_turn() -> None:
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


def test_nic_is_between_host_and_leaf() -> None:
    topology = scenario.LeafSpine(kind="leaf-spine", leaves=2, spines=1, hosts=2, nics=True, overhead=24)
    net = graph(topology)
    assert not list(net.problems())
    assert walk(net, "h1", "h4", 0) == ["h1", "nic1", "leaf1", "spine1", "leaf2", "nic4", "h4"]
    bus, wire = net.ports["nic1"][1].link, net.ports["nic1"][0].link
    assert (wire.rate, wire.delay, wire.overhead) == (topology.access_rate, topology.delay, 24)
    assert bus.rate > 10 * wire.rate  # so that packets wait in the NIC
    assert {host.rate for host in net.hosts} == {topology.access_rate}
    scheduled = contents_of(
        net,
        net.switches[-1],
        scenario.Balancer(),
        scenario.Scheduler(kind=scenario.SchedulerKind.AIFO),
        scenario.Protocol.TCP,
        shipped_program(),
    )
    assert sum(entry["table"].endswith("aifo.limit") for entry in scheduled["entries"]) == len(net.ports["nic4"]) * 21


def test_paths_do_not_lead_through_hosts() -> None:
    links = (Link("s", "h1", 1, 0, 1), Link("h1", "t", 1, 0, 1), Link("t", "h2", 1, 0, 1))
    net = Graph((Switch("s"), Switch("t")), (Host("h1", "peer"), Host("h2", "peer")), links, 1)
    assert net.next_hop("s", "h2", 0) is None


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        ((Link("s", "h1", 1, 0, 1),), "h2 has 0 links, a host must have one"),
        ((Link("s", "h1", 1, 0, 1), Link("s", "h2", 1, 0, 1), Link("s", "x", 1, 0, 1)), 'a link leads to the unknown node "x"'),
    ],
)
def test_invalid_networks_are_reported(links: tuple[Link, ...], problem: str) -> None:
    net = Graph((Switch("s"),), (Host("h1", "client"), Host("h2", "server")), links, 1)
    assert problem in list(net.problems())


def test_addresses_are_unique() -> None:
    net = graph(scenario.LeafSpine(kind="leaf-spine"))
    addresses = {TCP.address(net, host.name) for host in net.hosts}
    assert len(addresses) == 144
    assert TCP.vip not in addresses


def test_each_quic_host_has_its_own_64() -> None:
    net = graph(scenario.Testbed())
    networks = [QUIC.network(net, host.name) for host in net.hosts]
    assert {network.prefixlen for network in networks} == {64}
    assert len(set(networks)) == 16
    assert not any(QUIC.vip in network or network == QUIC.cookie_prefix for network in networks)
    assert [str(QUIC.address(net, name)) for name in ("c1", "s12")] == ["2001:db8:0:1::1", "2001:db8:0:10::1"]
