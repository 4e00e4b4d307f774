# SPDX-License-Identifier: Apache-2.0
"""Graphs of the topologies that a scenario can name."""

from __future__ import annotations

from dataclasses import replace

from frontage_sim import scenario
from frontage_sim.graph import Graph, Host, Link, Switch

CLIENTS_NIC = "nic"
TOR = "tor"
BUS_SPEEDUP = 100
"""Rate between a host and its NIC, as a multiple of the rate of the NIC's link."""


def graph(topology: scenario.Testbed | scenario.LeafSpine | scenario.Graph) -> Graph:
    """Return the graph of a scenario's topology."""
    match topology:
        case scenario.Testbed():
            return testbed(topology)
        case scenario.LeafSpine():
            return leaf_spine(topology)
        case scenario.Graph():
            return listed(topology)


def testbed(topology: scenario.Testbed) -> Graph:
    """Return CloudCookie's testbed (section V): clients with their own L4 load balancers, which share the link of their machine.

        c1 - lb1 \\                 / s1
        c2 - lb2 -- nic ======= tor -- s2
        c3 - lb3 /   (the bottleneck)\\ ...

    The machine's NIC switches between its virtual functions and the wire, so it is a switch here. With a ``server_share`` of 1, all links
    of servers together have the rate of the bottleneck. Then an uneven assignment fills the link of one server while others are idle.
    """
    clients = [Host(f"c{n}", "client") for n in range(1, topology.clients + 1)]
    servers = [Host(f"s{n}", "server") for n in range(1, topology.servers + 1)]
    balancers = [Switch(f"lb{n}", balances=True, scheduled=False) for n in range(1, topology.clients + 1)]
    rates = topology.server_rates or (int(topology.rate * topology.server_share / topology.servers),)
    wire = Link("", "", topology.rate, topology.delay, topology.queue, overhead=topology.overhead)
    links = [
        link
        for client, balancer in zip(clients, balancers, strict=True)
        for link in (
            replace(wire, a=client.name, b=balancer.name),
            replace(wire, a=balancer.name, b=CLIENTS_NIC),
        )
    ]
    links.append(replace(wire, a=CLIENTS_NIC, b=TOR))
    links += [replace(wire, a=TOR, b=server.name, rate=rates[n % len(rates)]) for n, server in enumerate(servers)]
    switches = (*balancers, Switch(CLIENTS_NIC, scheduled=False), Switch(TOR))
    return Graph(switches, (*clients, *servers), tuple(links), bottleneck=topology.rate)


def leaf_spine(topology: scenario.LeafSpine) -> Graph:
    """Return racks of peers with flows between any two of them. The load refers to the hosts' links.

    With ``nics``, packets of a host wait in its NIC, a switch that drops, marks and orders like the others, as in NetBench and pFabric.
    Without, a host loses no packets, and its connections take turns, as with Linux's fq.
    """
    spines = [Switch(f"spine{n}") for n in range(1, topology.spines + 1)]
    leaves = [Switch(f"leaf{n}") for n in range(1, topology.leaves + 1)]
    hosts = [Host(f"h{n}", "peer", topology.access_rate) for n in range(1, topology.leaves * topology.hosts + 1)]
    nics = [Switch(f"nic{n}") for n, _ in enumerate(hosts, 1)] if topology.nics else []
    wire = Link(
        "", "", topology.access_rate, topology.delay, topology.queue, overhead=topology.overhead, queue_bytes=topology.queue_bytes
    )
    leaf_peers = [nic.name for nic in nics] or [host.name for host in hosts]
    links = [replace(wire, a=leaves[n // topology.hosts].name, b=name) for n, name in enumerate(leaf_peers)]
    links += [
        Link(nic.name, host.name, BUS_SPEEDUP * topology.access_rate, 0, topology.queue)
        for nic, host in zip(nics, hosts, strict=False)
    ]
    links += [replace(wire, a=leaf.name, b=spine.name, rate=topology.spine_rate) for leaf in leaves for spine in spines]
    return Graph((*leaves, *spines, *nics), tuple(hosts), tuple(links), bottleneck=topology.access_rate * len(hosts))


def listed(topology: scenario.Graph) -> Graph:
    """Return the graph that the scenario lists. The load refers to the slowest link."""
    switches = tuple(Switch(node.name, node.balances, node.scheduled) for node in topology.switches)
    hosts = tuple(Host(node.name, node.role) for node in topology.hosts)
    links = tuple(Link(*edge.ends, edge.rate, edge.delay, edge.queue, edge.loss_ppb, edge.overhead) for edge in topology.links)
    return Graph(switches, hosts, links, bottleneck=min(link.rate for link in links))
