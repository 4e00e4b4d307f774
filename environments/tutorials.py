# SPDX-License-Identifier: Apache-2.0
"""The exercises of p4lang/tutorials with their own solutions, Makefiles, topologies, senders, receivers and PTF tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from outputs import connected, last_line, loss, packet_field, ptf_failures
from rows import Row, RowError
from stage import Net, Stage

CALCULATIONS = {"1+2": 3, "9-4": 5, "6&3": 2, "6|1": 7, "5^3": 6}


@contextmanager
def network(stage: Stage) -> Iterator[Net]:
    """Copy the solution over the exercise, and run the target `run` of its Makefile."""
    stage.install("solution/*.p4")
    with stage.mininet("make", "run") as net:
        yield net


def ping(net: Net, host: str, address: str, count: int = 3) -> None:
    lost = loss(net.run(host, f"ping -c {count} -W 2 {address}", 10 + 4 * count))
    if lost:
        raise RowError(f"{host} pings {address}: {lost:.0f}% loss")


def basic(stage: Stage) -> None:
    with network(stage) as net:
        net.pingall()
        received = net.receive("h2")
        net.exchange("h1", "./send.py 10.0.2.2 greeting", received, lambda text: "greeting" in text, "h2 receives no message")


def basic_tunnel(stage: Stage) -> None:
    with network(stage) as net:
        h2, h3 = net.receive("h2"), net.receive("h3")
        net.exchange("h1", "./send.py 10.0.2.2 plain", h2, lambda text: "plain" in text, "h2 receives no message without tunnel")
        # The tunnel leads to h2, the IP address to h3.
        sent = "./send.py 10.0.3.3 tunnelled --dst_id 2"
        net.exchange("h1", sent, h2, lambda text: "tunnelled" in text and "MyTunnel" in text, "h2 receives no message by tunnel")
        if "tunnelled" in stage.read(h3):
            raise RowError("a message leaves the tunnel for h3")


def calc(stage: Stage) -> None:
    with network(stage) as net:
        lines = "\\n".join([*CALCULATIONS, "quit"])
        output = net.run("h1", f"printf '{lines}\\n' | python3 calc.py")
        answers = [int(number) for number in re.findall(r"^(\d+)\s*$", output, re.MULTILINE)]
        if answers != list(CALCULATIONS.values()):
            raise RowError(f"answers are {answers}: {last_line(output)}")


def load_link(net: Net) -> None:
    """Send more from h11 to h22 than the link between their switches carries, as the READMEs say."""
    net.start("h22", "iperf -s -u", "h22.txt")
    net.start("h11", "iperf -c 10.0.2.22 -t 40 -u", "h11.txt")


def ecn(stage: Stage) -> None:
    with network(stage) as net:
        received = net.receive("h2")
        net.exchange(
            "h1", "./send.py 10.0.2.2 calm 1", received, lambda text: "0x1" in packet_field(text, "tos"), "no packet with ECN 1"
        )
        load_link(net)
        marked = "no packet is marked (ECN 3) while the queue is long"
        net.exchange("h1", "./send.py 10.0.2.2 busy 2", received, lambda text: "0x3" in packet_field(text, "tos"), marked, 50)


def mri(stage: Stage) -> None:
    with network(stage) as net:
        received = net.receive("h2")

        def traced(text: str) -> bool:
            return "2" in packet_field(text, "count") and {"1", "2"} <= packet_field(text, "swid")

        net.exchange("h1", "./send.py 10.0.2.2 route 1", received, traced, "no packet lists both switches")
        load_link(net)
        net.exchange(
            "h1",
            "./send.py 10.0.2.2 queue 2",
            received,
            lambda text: packet_field(text, "qdepth") - {"0"} != set(),
            "all queues are 0",
            50,
        )


def firewall(stage: Stage) -> None:
    with network(stage) as net:
        for host in ("h1", "h3"):
            net.start(host, "iperf -s", f"{host}.txt")
        for host, address in (("h2", "10.0.1.1"), ("h1", "10.0.3.3")):
            stage.wait(
                lambda host=host, address=address: connected(net.run(host, f"timeout 20 iperf -c {address} -t 1")),  # type: ignore[misc]
                f"{host} cannot connect to {address}",
            )
        if connected(net.run("h3", "timeout -s KILL 10 iperf -c 10.0.1.1 -t 1")):
            raise RowError("h3, outside, connects to h1, inside")


def flowcache(stage: Stage) -> None:
    stage.install("solution/mycontroller.py")
    controller = stage.background("./mycontroller.py", output="controller.txt")
    with network(stage) as net, controller:
        installed = "Installed P4 Program using SetForwardingPipelineConfig on s3"
        stage.wait(lambda: installed in stage.read("controller.txt"), "the controller does not install the program")
        stage.wait(lambda: loss(net.run("h1", "ping -c 1 -W 2 10.0.2.2")) == 0, "h1 never pings h2")
        ping(net, "h1", "10.0.2.2", 5)
        stage.wait(lambda: "Deleted flow_cache entry" in stage.read("controller.txt"), "the controller deletes no idle entry", 60)


def link_monitor(stage: Stage) -> None:
    with network(stage) as net:
        received = net.receive("h1")
        net.start("h4", "iperf -s", "h4.txt")
        stage.wait(lambda: connected(net.run("h1", "timeout 20 iperf -c 10.0.4.4 -t 1")), "h1 cannot connect to h4")
        net.start("h1", "iperf -c 10.0.4.4 -t 60", "iperf.txt")
        net.start("h1", "./send.py", "send.txt")

        def busy(text: str) -> bool:
            reports = re.findall(r"Switch (\d+) - Port (\d+): ([\d.]+(?:e-?\d+)?) Mbps", text)
            return len({(switch, port) for switch, port, _ in reports}) >= 8 and any(float(rate) > 0.1 for *_, rate in reports)

        stage.wait(lambda: busy(stage.read(received)), "no probe reports 8 ports and a rate above 0.1 Mbit/s", 60)


def load_balance(stage: Stage) -> None:
    with network(stage) as net:
        h2, h3 = net.receive("h2"), net.receive("h3")
        stage.wait(
            lambda: all("balanced" in stage.read(name) for name in (h2, h3)),
            "not both servers receive messages",
            120,
            lambda: net.run("h1", "./send.py 10.0.0.1 balanced"),
        )


def multicast(stage: Stage) -> None:
    stage.install("solution/s1-runtime.json", "sig-topo/s1-runtime.json")
    with network(stage) as net:
        # The hosts have no ARP entries: requests reach the others by multicast.
        net.pingall()


def p4runtime(stage: Stage) -> None:
    stage.install("solution/mycontroller.py")
    controller = stage.background("./mycontroller.py", output="controller.txt")
    # The solution of this exercise is the controller, not the program.
    with stage.mininet("make", "run") as net, controller:
        stage.wait(lambda: "Reading tunnel counters" in stage.read("controller.txt"), "the controller does not read counters")
        ping(net, "h1", "10.0.2.2")

        def counted(text: str) -> bool:
            counters = re.findall(r"(s\d MyIngress\.\w+ \d+): (\d+) packets", text)
            return len({counter for counter, packets in counters if int(packets) >= 3}) == 4

        stage.wait(lambda: counted(stage.read("controller.txt")), "not all four tunnel counters count the pings")


def qos(stage: Stage) -> None:
    with network(stage) as net:
        net.start("h2", "./receive.py", "h2.txt")
        for protocol, field in (("UDP", "0xb9"), ("TCP", "0xb1")):
            net.exchange(
                "h1",
                f"./send.py --p={protocol} --des=10.0.2.2 --m=graded --dur=2",
                "h2.txt",
                lambda text, field=field: field in packet_field(text, "tos"),  # type: ignore[misc]
                f"no {protocol} packet has the field tos {field}",
            )


def source_routing(stage: Stage) -> None:
    with network(stage) as net:
        received = net.receive("h2")
        # Five hops, the last of which leads to h2. Each decrements the TTL of 64.
        net.exchange(
            "h1",
            "printf '2 3 2 2 1\\nq\\n' | ./send.py 10.0.2.2",
            received,
            lambda text: "59" in packet_field(text, "ttl"),
            "h2 receives no packet after five hops",
        )


def ptf(stage: Stage) -> None:
    output = stage.run("make", "test", timeout=300)
    if failures := ptf_failures(output):
        raise RowError("; ".join(failures))


def _row(exercise: str, check: str, play: Callable[[Stage], None], part: str = "") -> Row:
    return Row(f"tutorials/{exercise}{part}", (f"exercises/{exercise}", "utils", "bin"), check, play)


ROWS = [
    _row("basic", "`pingall` without loss; h2 receives a message of `send.py`", basic),
    _row("basic", "`make test`: all PTF tests pass", ptf, "/ptf"),
    _row("basic_tunnel", "h2 receives messages with and without tunnel; the tunnel prevails over the IP address", basic_tunnel),
    _row("basic_tunnel", "`make test`: all PTF tests pass", ptf, "/ptf"),
    _row("calc", "five operators give the right results", calc),
    _row("ecn", "packets keep ECN 1 while the link is idle, and are marked (3) while it is overloaded", ecn),
    _row("firewall", "TCP from inside to inside and outside; none from outside", firewall),
    _row("flowcache", "the controller fills the cache: pings without loss; it deletes idle entries", flowcache),
    _row("link_monitor", "probes report at least 8 ports, and a rate above 0.1 Mbit/s during a transfer", link_monitor),
    _row("load_balance", "both servers receive messages", load_balance),
    _row("mri", "a packet lists both switches; queues above 0 while the link is overloaded", mri),
    _row("multicast", "`pingall` without loss, with ARP by multicast", multicast),
    _row("p4runtime", "pings through the controller's tunnels; all four counters count them", p4runtime),
    _row("qos", "UDP and TCP packets carry the right DSCP", qos),
    _row("source_routing", "a packet arrives after five hops", source_routing),
]
