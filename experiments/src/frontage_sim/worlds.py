"""The topologies that a scenario can name, as graphs."""

from __future__ import annotations

from dataclasses import replace

from frontage_sim import scenario
from frontage_sim.graph import Graph, Host, Link, Switch

CLIENTS_NIC = "nic"
TOR = "tor"
BUS = 100
"""How many times faster than its wire a host reaches its NIC."""


def graph(world: scenario.Testbed | scenario.LeafSpine | scenario.Graph) -> Graph:
    """The graph of a scenario's world."""
    match world:
        case scenario.Testbed():
            return testbed(world)
        case scenario.LeafSpine():
            return leaf_spine(world)
        case scenario.Graph():
            return own(world)


def testbed(world: scenario.Testbed) -> Graph:
    """CloudCookie, section V: every client's traffic meets its own L4 load balancer, then the one link of their machine.

        c1 - lb1 \\                 / s1
        c2 - lb2 -- nic ======= tor -- s2
        c3 - lb3 /   (the bottleneck)\\ ...

    The machine's NIC switches between its virtual functions and the wire, and so is a switch here. The servers' links together carry no
    more than the bottleneck unless ``server_share`` says so: where assignments cluster, one server's link fills while others idle.
    """
    clients = [Host(f"c{n}", "client") for n in range(1, world.clients + 1)]
    servers = [Host(f"s{n}", "server") for n in range(1, world.servers + 1)]
    balancers = [Switch(f"lb{n}", balances=True, scheduled=False) for n in range(1, world.clients + 1)]
    rates = world.server_rates or (int(world.rate * world.server_share / world.servers),)
    wire = Link("", "", world.rate, world.delay, world.queue, overhead=world.overhead)
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
    return Graph(switches, (*clients, *servers), tuple(links), bottleneck=world.rate)


def leaf_spine(world: scenario.LeafSpine) -> Graph:
    """Racks of peers; flows go between any two of them. Load is that of the hosts' links.

    With ``nics``, what a host sends waits in its NIC, a switch that drops, marks and orders as the others do: hosts of NetBench and of
    pFabric are so. Else a host loses nothing, and its connections take turns, as with Linux's fq.
    """
    spines = [Switch(f"spine{n}") for n in range(1, world.spines + 1)]
    leaves = [Switch(f"leaf{n}") for n in range(1, world.leaves + 1)]
    hosts = [Host(f"h{n}", "peer", world.access_rate) for n in range(1, world.leaves * world.hosts + 1)]
    nics = [Switch(f"nic{n}") for n, _ in enumerate(hosts, 1)] if world.nics else []
    wire = Link("", "", world.access_rate, world.delay, world.queue, overhead=world.overhead, queue_bytes=world.queue_bytes)
    racked = [nic.name for nic in nics] or [host.name for host in hosts]
    links = [replace(wire, a=leaves[n // world.hosts].name, b=name) for n, name in enumerate(racked)]
    links += [Link(nic.name, host.name, BUS * world.access_rate, 0, world.queue) for nic, host in zip(nics, hosts, strict=False)]
    links += [replace(wire, a=leaf.name, b=spine.name, rate=world.spine_rate) for leaf in leaves for spine in spines]
    return Graph((*leaves, *spines, *nics), tuple(hosts), tuple(links), bottleneck=world.access_rate * len(hosts))


def own(world: scenario.Graph) -> Graph:
    """As the scenario says; load is that of the slowest link of all."""
    switches = tuple(Switch(node.name, node.balances, node.scheduled) for node in world.switches)
    hosts = tuple(Host(node.name, node.role) for node in world.hosts)
    links = tuple(Link(*edge.ends, edge.rate, edge.delay, edge.queue, edge.loss_ppb, edge.overhead) for edge in world.links)
    return Graph(switches, hosts, links, bottleneck=min(link.rate for link in links))
