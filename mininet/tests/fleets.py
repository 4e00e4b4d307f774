# SPDX-License-Identifier: Apache-2.0
"""Changes of a fleet during downloads over TCP: a switch fails, a switch gets another program, servers and keys change."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.edges import Edges
from frontage_testbed.fleet.testbed import fleet_testbed
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, network_counters

SETTINGS = Settings(servers=8, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN = SERVERS[:6], SERVERS[6:], SERVERS[:2]
SWITCHES = 3

OPENING = 4.0
"""Seconds within which the downloads begin."""
LENGTH = 140.0
"""Seconds of each download. On a busy machine, the actions take most of it."""
ADD, DRAIN, KILL, RETURN, PROGRAM, ROTATE, LAST = 5.0, 10.0, 16.0, 22.0, 26.0, 34.0, 38.0
"""Earliest times of the actions in seconds."""
LATE = 135.0
"""End of the short requests that show the assignment of new connections."""
EVENTS = {
    ADD: "servers added",
    DRAIN: "servers drained",
    KILL: "switch killed",
    RETURN: "switch returns, without state",
    PROGRAM: "switch drained, and restarted with another program",
    ROTATE: "key rotated",
}


@dataclass(frozen=True)
class Request:
    """One request. Times are seconds since the plan began."""

    index: int
    outcome: str
    server: str
    started: float
    finished: float


@dataclass(frozen=True)
class Observed:
    """Observations of the clients, the servers and the switches."""

    requests: list[Request]
    resets: list[int]
    """Segments with RST that each server's kernel sent, before the first download ends."""
    refused: int
    """Packets that the agents sent back to the switches until then."""
    packets: dict[str, int]
    """Packets of VIPs by switch."""
    begun: dict[float, float]
    """Beginning of each action by its earliest time."""
    ended: dict[float, float]
    """End of each action by its earliest time."""
    retransmissions: list[tuple[float, int]]
    """Segments that the servers have retransmitted so far, whenever the number has grown."""

    def downloads(self, count: int) -> list[Request]:
        """Return the long requests."""
        return [request for request in self.requests if request.index < count]

    def broken_by_event(self, count: int) -> dict[str, int]:
        """Return how many downloads broke after each event and before the next one."""
        begins = [0.0, *list(self.begun.values())[1 : len(EVENTS)]]
        broken: Counter[str] = Counter()
        for request in self.downloads(count):
            if request.outcome != "ok":
                last = max(i for i, begin in enumerate(begins) if begin <= request.finished)
                broken[list(EVENTS.values())[last]] += 1
        return {event: broken[event] for event in EVENTS.values()}

    def convergence(self) -> dict[str, float]:
        """Return the seconds from the beginning of each event to the last retransmission before the next one; 0 without any."""
        begins = [self.begun[at] for at in (*EVENTS, LAST)]
        times = [at for at, _ in self.retransmissions]
        return {
            event: round(max((at - begin for at in times if begin <= at < end), default=0.0), 1)
            for event, begin, end in zip(EVENTS.values(), begins, begins[1:], strict=False)
        }


class Retransmissions:
    """Samples how many segments the servers of a testbed have retransmitted, in a thread, until the context ends."""

    INTERVAL = 0.1
    """Seconds between samples."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self.seen: list[tuple[int, int]] = []
        """Monotonic times in nanoseconds, and the number whenever it has grown."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        last = -1
        while not self._stop.wait(self.INTERVAL):
            count = self._testbed.retransmitted() or 0
            if count != last:
                self.seen.append((time.monotonic_ns(), count))
                last = count


def make_plan(downloads: int) -> list[Arrival]:
    """Return the downloads, followed by ten short requests per second."""
    begin = [(OPENING * i / downloads, int(LENGTH * PACE)) for i in range(downloads)]
    begin += [(OPENING + 0.1 * i, 10_000) for i in range(int((LATE - OPENING) * 10))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "idle") for i, (at, size) in enumerate(begin)]


def compile_with_smaller_trees(directory: Path) -> tuple[Path, Path]:
    """Return the P4Info and the JSON of a program that differs from the installed one."""
    p4info, json = directory / "other.p4info.txtpb", directory / "other.json"
    source = REPOSITORY / "p4src" / "v1model" / "frontage.p4"
    compiler = REPOSITORY / "target" / "release" / "softswitch-p4c"
    command = [compiler, "-DTREE_LEVELS=10", source, "-o", json, "--p4runtime-files", p4info]
    subprocess.run(command, check=True, timeout=60)
    return p4info, json


@dataclass(frozen=True)
class Outages:
    """Events at the switches of a fleet of three, with the routes that an operator or a routing daemon would change."""

    edge: Edges
    route_through: Callable[[list[EdgeAddresses]], None]
    other: tuple[Path, Path]
    """The P4Info and the JSON of another program."""

    def kill_one(self) -> None:
        one, two, three = self.edge.edges
        self.edge.kill_one(one)
        self.route_through([two, three])

    def bring_one_back(self) -> None:
        self.edge.start_one(self.edge.edges[0])
        self.edge.wait_until_installed()
        self.route_through(self.edge.edges)

    def change_program_of_two(self) -> None:
        one, two, three = self.edge.edges
        self.route_through([one, three])
        self.edge.set_program(two, *self.other)
        self.route_through([one, two, three])


def observe(directory: Path, vip: str, downloads: int, has_timestamps: Callable[[int], bool], *, agents: bool = True) -> Observed:
    """Run the downloads through all events. `has_timestamps` says which clients, by index, use TCP timestamps."""
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan(downloads)
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        other = compile_with_smaller_trees(box.scratch)
        with fleet_testbed(parts, SETTINGS, box, SWITCHES, cookies=agents, in_service=IN_SERVICE) as testbed:
            for index, host in testbed.clients.items():
                host.run(["sh", "-c", f"echo {int(has_timestamps(index))} > /proc/sys/net/ipv4/tcp_timestamps"])
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            edge, outages = testbed.edge, Outages(testbed.edge, testbed.route_through, other)
            seen: dict[str, Any] = {}

            def read_counters() -> None:
                seen["resets"] = [network_counters(h)["Tcp.OutRsts"] for h in testbed.servers.values()]
                seen["packets"] = scrape(METRICS).by("device", "frontage_vip_packets_total")
                seen["refused"] = int(scrape(METRICS).by("outcome", "frontage_steering_packets_total").get("second-hop", 0))

            begun: dict[float, float] = {}

            def timed(at: float, action: Callable[[], object]) -> tuple[float, Callable[[], object]]:
                def act() -> None:
                    begun.setdefault(at, clients.elapsed())
                    action()

                return at, act

            schedule = Schedule(
                [
                    *(timed(ADD, lambda s=s: edge.add_server(s)) for s in SPARE),
                    *(timed(DRAIN, lambda s=s: edge.drain(s)) for s in TO_DRAIN),
                    timed(KILL, outages.kill_one),
                    timed(RETURN, outages.bring_one_back),
                    timed(PROGRAM, outages.change_program_of_two),
                    timed(ROTATE, edge.rotate_key),
                    timed(LAST, read_counters),
                ]
            )
            clients = Clients(testbed.clients, over_tcp(plan_file, vip, PACED), box.scratch / "clients.log")
            with Retransmissions(testbed) as retransmissions:
                schedule.run(clients)
        begin = clients.start_ns
        return seen | {
            "requests": [
                (o.index, o.outcome, o.server, (o.started_ns - begin) / 1e9, (o.finished_ns - begin) / 1e9)
                for o in clients.outcomes
            ],
            "begun": list(begun.items()),
            "ended": list(schedule.ended.items()),
            "retransmissions": [((at - begin) / 1e9, count) for at, count in retransmissions.seen],
        }

    result = Sandboxed(body, directory).result()
    result["requests"] = [Request(*values) for values in result["requests"]]
    result["begun"], result["ended"] = dict(result["begun"]), dict(result["ended"])
    return Observed(**result)
