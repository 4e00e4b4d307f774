# SPDX-License-Identifier: Apache-2.0
"""Changes of a fleet during downloads over QUIC, by clients that we wrote and by third-party clients."""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from fleetevents import ADDED, DRAINED, END, KILLED, REMOVED, REPROGRAMMED, RETURNED, ROTATED, Timeline
from fleets import EARLY, EarlyDownloads, Outages, Request, compile_with_smaller_trees, make_early_plan
from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.servers import PACED
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.edges import Edges
from frontage_testbed.fleet.testbed import FleetTestbed
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from lostdatagrams import Captures
from pacedquic import PACE, PacedTestbed
from quicclients import Client
from quicrounds import from_new_ports, wait_until
from testbeds import Sandboxed, Schedule, deployment

LONG = "LONG" in os.environ

SETTINGS = Settings(servers=7, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN, TO_REMOVE = SERVERS[:6], SERVERS[6], SERVERS[0], SERVERS[1]
SWITCHES = 3

DOWNLOADS = 1000 if LONG else 150
OPENING = 6.0 if LONG else 3.0
"""Seconds within which the downloads begin."""
LENGTH = 120.0 if LONG else 66.0
"""Seconds of each download."""
EARLIEST = {
    ADDED: 7.0,
    DRAINED: 8.0,
    REMOVED: 9.0,
    KILLED: 11.0,
    RETURNED: 14.0,
    REPROGRAMMED: 17.0,
    ROTATED: 22.0,
    END: 26.0,
}
"""Earliest times of the events in seconds."""
LATE = LENGTH - 10.0
"""End of the short requests."""
EARLY_LENGTH = 8.0
"""Seconds of the downloads that begin before `TO_REMOVE` drains."""
STALL = 2.5
"""Seconds without a datagram after which a download stalls; nginx sends once a second."""

THIRD_PARTY = [Client("gtlsclient", True), Client("aioquic", True), Client("curl", False)]
EACH = 30 if LONG else 6
"""Downloads of each third-party client."""
START = 20.0
"""Seconds for which the third-party clients download before the others begin, at most."""


class QuicFleet(FleetTestbed, PacedTestbed):
    """A testbed in which several edge switches serve the QUIC VIP."""


@dataclass(frozen=True)
class Ended:
    """A download by a third-party client. The time is in seconds since the plan began."""

    client: str
    outcome: str
    """`ok`, or the end of the client's output."""
    finished: float


@dataclass(frozen=True)
class Observed:
    """Observations of the clients and the switches."""

    requests: list[Request]
    new_ports: list[int]
    """The indices of the requests whose client had not used their port shortly before."""
    early: list[str]
    """The outcomes of the downloads that began before the server that is removed was drained."""
    early_servers: list[str]
    """The servers that answered them."""
    third_party: list[Ended]
    packets: dict[str, int]
    """Packets of VIPs by switch."""
    events: Timeline
    lost: list[float]
    """When datagrams that did not arrive were sent."""
    silences: list[tuple[float, float]]
    """End and length of each stall of a download."""

    def downloads(self) -> list[Request]:
        """Return our clients' long requests."""
        return [request for request in self.requests if request.index < DOWNLOADS]

    def table(self) -> str:
        """Return what each event caused, as a table in Markdown."""
        broken = self.events.counts(r.finished for r in self.downloads() if r.outcome != "ok")
        others = self.events.counts(d.finished for d in self.third_party if d.outcome != "ok")
        lost = self.events.counts(self.lost)
        last_lost = self.events.until_last(self.lost)
        stalls = self.events.counts(end for end, _ in self.silences)
        last_stall = self.events.until_last(end for end, _ in self.silences)
        heads = f"| event | broken, of {DOWNLOADS} of ours | broken, of {len(self.third_party)} of others "
        heads += "| lost datagrams | seconds to the last one | stalls | seconds to the end of the last one |"
        rows = [f"| {e} | {broken[e]} | {others[e]} | {lost[e]} | {last_lost[e]} | {stalls[e]} | {last_stall[e]} |" for e in broken]
        return "\n".join([heads, "|---|---|---|---|---|---|---|", *rows])


class ThirdParty:
    """Downloads by third-party clients, one process each."""

    def __init__(self, testbed: QuicFleet, size: int) -> None:
        """Start the downloads, of `size` bytes."""
        self._original = testbed.scratch / "objects" / str(size)
        self._running: list[tuple[Client, Path, subprocess.Popen[bytes]]] = []
        self._ended: list[tuple[str, str, float]] = []
        hosts = list(testbed.clients.values())
        for number, client in enumerate(THIRD_PARTY * EACH):
            folder = testbed.scratch / f"third-party-{number}"
            folder.mkdir()
            command = client.command(size, folder, testbed.h3_client, PACED)
            with (folder / "log").open("wb") as log:
                process = hosts[number % len(hosts)].spawn(command, stdout=log, stderr=log)
            self._running.append((client, folder, process))

    def poll(self) -> None:
        """Note the downloads that have ended."""
        for one in list(self._running):
            client, folder, process = one
            if process.poll() is not None:
                self._running.remove(one)
                saved = folder / self._original.name
                whole = process.returncode == 0 and saved.exists() and saved.read_bytes() == self._original.read_bytes()
                outcome = "ok" if whole else (folder / "log").read_text(errors="replace")[-300:]
                self._ended.append((client.name, outcome, time.monotonic()))

    def finish(self, start_ns: int) -> list[Ended]:
        """Wait for all downloads, and return their ends."""

        def ended() -> bool:
            self.poll()
            return not self._running

        wait_until(ended, "the third-party clients end")
        return [Ended(client, outcome, at - start_ns / 1e9) for client, outcome, at in self._ended]


def make_plan() -> list[Arrival]:
    """Return the downloads, and ten short requests per second."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LATE - OPENING) * 10))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def make_testbed(parts: Deployment, box: Sandbox) -> QuicFleet:
    """Return the testbed, not yet up."""
    edge = Edges(
        [EdgeAddresses(i) for i in range(SWITCHES)],
        parts.switch,
        SETTINGS,
        controller=parts.controller,
        p4info=parts.p4 / "frontage.p4info.txtpb",
        json_file=parts.p4 / "frontage.json",
        directory=box.scratch / "edge",
        services=FILMS[:1],
        in_service=IN_SERVICE,
    )
    return QuicFleet(SETTINGS, box.scratch, edge, parts.quic_agent, parts.h3_client)


def observe(directory: Path) -> Observed:
    """Run the downloads through all events."""
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan, early_plan = make_plan(), make_early_plan(int(EARLY_LENGTH * PACE), "fin")
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        other = compile_with_smaller_trees(box.scratch)
        size = int((LENGTH + START) * PACE)
        with make_testbed(parts, box) as testbed:
            testbed.offer_objects({size, *(a.wire_size for a in plan)})
            testbed.wait_until_ready()
            edge, active = testbed.edge, testbed.agents.active_flows
            outages = Outages(edge, testbed.route_through, other)
            captures = Captures(testbed.clients.values(), testbed.servers.values(), box.scratch)
            early = EarlyDownloads(testbed, testbed.generator, early_plan)
            early.drain(edge, TO_REMOVE, active)
            third_party = ThirdParty(testbed, size)
            # The early downloads may have ended by then.
            wait_until(lambda: sum(active()) >= len(THIRD_PARTY) * EACH, "the third-party clients download")
            packets: dict[str, int] = {}
            events = Timeline()

            actions: list[tuple[str, Callable[[], object]]] = [
                (ADDED, lambda: edge.add_server(SPARE)),
                (DRAINED, lambda: edge.drain(TO_DRAIN)),
                (REMOVED, lambda: early.remove(edge, TO_REMOVE, active)),
                *outages.events(),
                (ROTATED, testbed.rotate_key),
                (END, lambda: packets.update(scrape(METRICS).by("device", "frontage_vip_packets_total"))),
            ]
            schedule = Schedule(events.schedule(EARLIEST, lambda: clients.elapsed(), actions))
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")
            begin = clients.start_ns
            schedule.run(clients, third_party.poll)
            ended = third_party.finish(begin)
            traffic = captures.end()
            count = len(plan) + len(early_plan) + len(ended)
            wait_until(lambda: len(testbed.logged()) == count, "the servers' logs are complete")
            answers = defaultdict(list)
            for _, client, name in testbed.logged():
                answers[client].append(name)
            addresses = [f"[{client.address6}]" for client in testbed.client_addresses]
            # An earlier request may have used the same port.
            servers = [
                answers[f"{addresses[o.index % SETTINGS.clients]}:{o.local_port}"].pop(0)
                for o in (*early.clients.outcomes, *sorted(clients.outcomes, key=lambda o: o.started_ns))
            ]
            shift = time.time() - time.monotonic() + begin / 1e9
        requests = sorted(clients.outcomes, key=lambda o: o.started_ns)
        return {
            "requests": [
                (o.index, o.outcome, server, (o.started_ns - begin) / 1e9, (o.finished_ns - begin) / 1e9)
                for o, server in zip(requests, servers[EARLY:], strict=True)
            ],
            "new_ports": sorted(
                from_new_ports(
                    (o.index, (o.started_ns - begin) / 1e9, (o.index % SETTINGS.clients, o.local_port)) for o in requests
                )
            ),
            "early": [o.outcome for o in early.clients.outcomes],
            "early_servers": servers[:EARLY],
            "third_party": [(e.client, e.outcome, e.finished) for e in ended],
            "packets": packets,
            "events": asdict(events),
            "lost": [at - shift for at in traffic.lost],
            "silences": [(end - shift, length) for end, length in traffic.silences(LENGTH / 2) if length > STALL],
        }

    result = Sandboxed(body, directory).result()
    result["requests"] = [Request(*values) for values in result["requests"]]
    result["third_party"] = [Ended(*values) for values in result["third_party"]]
    result["events"] = Timeline(**result["events"])
    return Observed(**result)
