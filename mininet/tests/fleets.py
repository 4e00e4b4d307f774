# SPDX-License-Identifier: Apache-2.0
"""Changes of a fleet during downloads over TCP: a switch fails, a switch gets another program, servers and keys change."""

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from fleetevents import ADDED, DRAINED, END, KILLED, REMOVED, REPROGRAMMED, RETURNED, ROTATED, Timeline
from frontage_testbed.datacentre.addresses import HTTP_PORT, ServerAddresses
from frontage_testbed.datacentre.agents import Cclb7Agents
from frontage_testbed.datacentre.clients import Clients, Generator, over_tcp
from frontage_testbed.datacentre.edge import METRICS, EdgeSwitch
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.edges import Edges
from frontage_testbed.fleet.testbed import FleetTestbed, fleet_testbed
from frontage_testbed.load import workload
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox
from quicrounds import wait_until
from testbeds import Sandboxed, Schedule, deployment, network_counters

SETTINGS = Settings(servers=9, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN, TO_REMOVE = SERVERS[:7], SERVERS[7:], SERVERS[:2], SERVERS[2]
"""The number of servers crosses a power of two, which must not change the size of Maglev's table (docs/second-hop.md)."""
SWITCHES = 3

OPENING = 4.0
"""Seconds within which the downloads begin."""
LENGTH = 140.0
"""Seconds of each download. On a busy machine, the actions take most of it."""
EARLIEST = {
    ADDED: 5.0,
    DRAINED: 10.0,
    REMOVED: 14.0,
    KILLED: 17.0,
    RETURNED: 23.0,
    REPROGRAMMED: 27.0,
    ROTATED: 35.0,
    END: 39.0,
}
"""Earliest times of the events in seconds."""
LATE = 135.0
"""End of the short requests that show the assignment of new connections."""
EARLY = 40
"""Downloads that begin before `TO_REMOVE` drains, and end before it is removed."""
EARLY_LENGTH = 12.0
"""Seconds of each of them."""


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
    early: list[Request]
    """The downloads that began before the server that is removed was drained."""
    resets: list[int]
    """Segments with RST that each server's kernel sent, before the first download ends."""
    refused: int
    """Packets that the agents sent back to the switches until then."""
    syns: dict[str, int]
    """Packets of the defence against SYN floods, by kind, until then."""
    packets: dict[str, int]
    """Packets of VIPs by switch."""
    events: Timeline
    retransmissions: list[tuple[float, int]]
    """Segments that the servers have retransmitted so far, whenever the number has grown."""

    def downloads(self, count: int) -> list[Request]:
        """Return the long requests."""
        return [request for request in self.requests if request.index < count]

    def broken_by_event(self, count: int) -> dict[str, int]:
        """Return how many downloads broke after each event and before the next one."""
        return self.events.counts(request.finished for request in self.downloads(count) if request.outcome != "ok")

    def convergence(self) -> dict[str, float]:
        """Return the seconds from the beginning of each event to the last retransmission before the next one; 0 without any."""
        return self.events.until_last(at for at, _ in self.retransmissions)


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

    def events(self) -> list[tuple[str, Callable[[], None]]]:
        """Return the events by name, in order."""
        return [(KILLED, self.kill_one), (RETURNED, self.bring_one_back), (REPROGRAMMED, self.change_program_of_two)]

    def kill_one(self) -> None:
        one, two, three = self.edge.edges
        self.edge.kill_one(one)
        self.route_through([two, three])

    def bring_one_back(self) -> None:
        connections = int(scrape(METRICS).total("frontage_switch_connections_total"))
        self.edge.start_one(self.edge.edges[0])
        # A busy controller may not have noticed yet that the switch failed.
        self.edge.wait_until_installed(connections + 1)
        self.route_through(self.edge.edges)

    def change_program_of_two(self) -> None:
        one, two, three = self.edge.edges
        self.route_through([one, three])
        self.edge.set_program(two, *self.other)
        self.route_through([one, two, three])


class EarlyDownloads:
    """Downloads of clients that are in progress while a server drains, and end before it is removed."""

    def __init__(self, testbed: Testbed, generator: Callable[[Path], Generator], plan: list[Arrival]) -> None:
        """Start the downloads."""
        file = testbed.scratch / "early.csv"
        workload.write_plan(plan, file)
        testbed.offer_objects(a.wire_size for a in plan)
        self.clients = Clients(testbed.clients, generator(file), testbed.scratch / "early.log")

    def drain(self, edge: EdgeSwitch, server: ServerAddresses, connections: Callable[[], list[int]]) -> None:
        """Drain the server once all downloads are in progress. `connections` counts those of each server."""
        wait_until(lambda: sum(connections()) >= EARLY, "the early downloads are in progress")
        edge.drain(server)

    def remove(self, edge: EdgeSwitch, server: ServerAddresses, connections: Callable[[], list[int]]) -> None:
        """Remove the server once all downloads and connections have ended."""
        self.clients.run(lambda: None)
        wait_until(lambda: not connections()[server.index], f"{server.name} has no connections")
        edge.remove(server)


def tcp_connections(testbed: Testbed) -> list[int]:
    """Return the connections of each server's program."""
    listing = ["ss", "-Htn", "state", "connected", "exclude", "time-wait", "sport", "=", f":{HTTP_PORT}"]
    return [len(host.run(listing).stdout.splitlines()) for host in testbed.servers.values()]


def make_early_plan(size: int, closing: str) -> list[Arrival]:
    """Return downloads that begin within a second."""
    return [Arrival(i, i / EARLY, i % SETTINGS.clients, size, size, closing) for i in range(EARLY)]


def answer_syns(edge: EdgeSwitch) -> None:
    """Let the switches, which have not started yet, answer the SYNs of all VIPs."""
    document = yaml.safe_load(edge.config.read_text())
    for vip in document["vips"]:
        vip["syn_defence"] = {"mode": "always"}
    edge.config.write_text(yaml.safe_dump(document, sort_keys=False))


def renew_syn_keys(testbed: FleetTestbed) -> None:
    """Give the agents the keys of the switches."""
    keys = testbed.scratch / "syn-keys.toml"
    testbed.edge.write_keys(keys)
    assert isinstance(testbed.agents, Cclb7Agents)
    testbed.agents.use_syn_keys(testbed.servers, keys)


def observe(
    directory: Path,
    vip: str,
    downloads: int,
    has_timestamps: Callable[[int], bool],
    *,
    agents: bool = True,
    defended: bool = False,
) -> Observed:
    """Run the downloads through all events. `has_timestamps` says which clients, by index, use TCP timestamps.

    With `defended`, the switches answer all SYNs, as during a SYN flood.
    """
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan(downloads)
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        other = compile_with_smaller_trees(box.scratch)
        bed = fleet_testbed(parts, SETTINGS, box, SWITCHES, cookies=agents, in_service=IN_SERVICE)
        if defended:
            answer_syns(bed.edge)
        with bed as testbed:
            for index, host in testbed.clients.items():
                host.run(["sh", "-c", f"echo {int(has_timestamps(index))} > /proc/sys/net/ipv4/tcp_timestamps"])
            if defended:
                renew_syn_keys(testbed)
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            edge, outages = testbed.edge, Outages(testbed.edge, testbed.route_through, other)
            early_plan = make_early_plan(int(EARLY_LENGTH * PACE), "fin")
            early = EarlyDownloads(testbed, lambda file: over_tcp(file, vip, PACED), early_plan)
            early.drain(edge, TO_REMOVE, lambda: tcp_connections(testbed))
            seen: dict[str, Any] = {}

            def rotate() -> None:
                edge.rotate_key()
                if defended:
                    renew_syn_keys(testbed)

            def read_counters() -> None:
                seen["resets"] = [network_counters(h)["Tcp.OutRsts"] for h in testbed.servers.values()]
                seen["packets"] = scrape(METRICS).by("device", "frontage_vip_packets_total")
                syns = scrape(METRICS).by("kind", "frontage_syn_packets_total")
                seen["syns"] = {kind: int(count) for kind, count in syns.items()}
                seen["refused"] = int(scrape(METRICS).by("outcome", "frontage_steering_packets_total").get("second-hop", 0))

            events = Timeline()

            actions = [
                *((ADDED, lambda s=s: edge.add_server(s)) for s in SPARE),
                *((DRAINED, lambda s=s: edge.drain(s)) for s in TO_DRAIN),
                (REMOVED, lambda: early.remove(edge, TO_REMOVE, lambda: tcp_connections(testbed))),
                *outages.events(),
                (ROTATED, rotate),
                (END, read_counters),
            ]
            schedule = Schedule(events.schedule(EARLIEST, lambda: clients.elapsed(), actions))
            clients = Clients(testbed.clients, over_tcp(plan_file, vip, PACED), box.scratch / "clients.log")
            with Retransmissions(testbed) as retransmissions:
                schedule.run(clients)
        begin = clients.start_ns

        def described(outcomes: list[Outcome]) -> list[object]:
            return [(o.index, o.outcome, o.server, (o.started_ns - begin) / 1e9, (o.finished_ns - begin) / 1e9) for o in outcomes]

        return seen | {
            "requests": described(clients.outcomes),
            "early": described(early.clients.outcomes),
            "events": asdict(events),
            "retransmissions": [((at - begin) / 1e9, count) for at, count in retransmissions.seen],
        }

    result = Sandboxed(body, directory).result()
    for name in ("requests", "early"):
        result[name] = [Request(*values) for values in result[name]]
    result["events"] = Timeline(**result["events"])
    return Observed(**result)
