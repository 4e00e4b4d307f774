# SPDX-License-Identifier: Apache-2.0
"""The network between clients, name servers and sites: one softswitch that runs `data/wan.p4`.

Every unordered pair of locations has a delay line: a port in loopback mode whose link delays by half of the pair's
round-trip time. Every packet passes the delay line of its two locations, so each path has the delay measured between its
ends.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from itertools import combinations_with_replacement
from pathlib import Path

from finsy.proto import p4r

from frontage.p4.entries import Action, Key, State
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session

from ..nodes import NodeError, spawn
from ..processes import end as end_process
from .addresses import PLAIN_PREFIX, SERVICE_PREFIX, WAN_MAC, Host, SiteAddresses
from .latency import Latencies
from .topology import wan_interface

GRPC = "127.0.0.1:9500"
FIRST_DELAY_LINE = 128
"""The constant of the same name in wan.p4."""
CONNECT_TIMEOUT = 180.0
PROGRAM = Path(__file__).parent / "data" / "wan.p4"


class Wan:
    """The network's switch and its routes."""

    def __init__(
        self,
        *,
        switch: Path,
        compiler: Path,
        directory: Path,
        latencies: Latencies,
        hosts: Sequence[Host],
        sites: Sequence[SiteAddresses],
        seed: int,
        loss: Mapping[tuple[str, str], float],
    ) -> None:
        """`loss` maps pairs of locations, in alphabetical order, to the loss rate in each direction."""
        self._switch = switch
        self._compiler = compiler
        self._directory = directory
        self._seed = seed
        self._ends = [host.attachment for host in hosts] + [end for site in sites for end in site.attachments]
        self._hosts = hosts
        self._sites = {site.location: site for site in sites}
        locations = sorted({end.location for end in self._ends})
        pairs = list(combinations_with_replacement(locations, 2))
        self._lines = {pair: FIRST_DELAY_LINE + number for number, pair in enumerate(pairs)}
        self._links = {
            self._lines[pair]: f"delay={round(latencies.rtt(*pair) / 2 * 1e6)}ns"
            + (f",loss={share:.9f}" if (share := loss.get(pair, 0)) else "")
            for pair in pairs
        }
        self._loop = asyncio.new_event_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._session: Session | None = None
        self._pipeline: Pipeline | None = None
        self._anycast: State = {}

    def start(self) -> None:
        """Compile the program, start the switch and install all routes except anycast ones."""
        self._directory.mkdir()
        self._pipeline = self._compile()
        command: list[str | Path] = [self._switch, "--no-p4", "--device-id", "1", "--seed", str(self._seed)]
        for end in self._ends:
            command += ["-i", f"{end.port}@{wan_interface(end.port)}"]
        for line, link in self._links.items():
            command += ["--loopback", str(line), "--link", f"{line}:{link}"]
        with (self._directory / "wan.log").open("wb") as log:
            self._process = spawn([*command, "--", "--grpc-server-addr", GRPC], log)
        self._loop.run_until_complete(self._connect())
        self._write(p4r.Update.INSERT, self._fixed())

    async def _connect(self) -> None:
        assert self._pipeline is not None
        self._session = Session(GRPC, 1)
        await self._session.take(self._pipeline, CONNECT_TIMEOUT)

    def _compile(self) -> Pipeline:
        json, info = self._directory / "wan.json", self._directory / "wan.p4info.txtpb"
        command: list[str | Path] = [self._compiler, "-o", json, "--p4runtime-files", info, PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NodeError(f"wan.p4 does not compile: {done.stderr.strip()}")
        return Pipeline.load(info, json)

    def route_anycast(self, routes: Mapping[str, str], regional: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Replace the anycast routes: `routes` maps the locations of clients to those of sites.

        `regional` maps locations of clients to the prefix of their region, and to the location of the site to which it leads.
        """
        led = {client: [(prefix, site) for prefix in (SERVICE_PREFIX, PLAIN_PREFIX)] for client, site in routes.items()}
        for client, route in (regional or {}).items():
            led[client].append(route)
        wanted = {}
        for host in self._hosts:
            for prefix, site in led.get(host.location, ()):
                wanted[Key("WanIngress.anycast", (host.port, _lpm(prefix)))] = Action("leave_by", (self._sites[site].port,))
        self._write(p4r.Update.DELETE, {k: a for k, a in self._anycast.items() if k not in wanted})
        self._write(p4r.Update.MODIFY, {k: a for k, a in wanted.items() if k in self._anycast})
        self._write(p4r.Update.INSERT, {k: a for k, a in wanted.items() if k not in self._anycast})
        self._anycast = wanted

    def _fixed(self) -> State:
        state: State = {}
        for source in self._ends:
            state[Key("WanIngress.neighbor", (source.port,))] = Action("deliver", (_mac(source.mac), _mac(WAN_MAC)))
            for prefix in source.prefixes:
                state[Key("WanIngress.unicast", (_lpm(prefix),))] = Action("leave_by", (source.port,))
            for destination in self._ends:
                line = self._lines[min(source.location, destination.location), max(source.location, destination.location)]
                state[Key("WanIngress.delay_line", (source.port, destination.port))] = Action("wait_in", (line,))
        return state

    def _write(self, kind: int, state: State) -> None:
        assert self._session is not None and self._pipeline is not None
        self._loop.run_until_complete(self._session.write(self._pipeline.schema, kind, list(state.items())))

    def stop(self) -> None:
        """Stop the switch."""
        if self._session is not None:
            self._loop.run_until_complete(_close(self._session))
        end_process(self._process)
        self._loop.close()


async def _close(session: Session) -> None:
    await session.close()
    # gRPC leaves tasks behind that must end before the loop closes.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _lpm(prefix: str) -> tuple[int, int]:
    network = ip_network(prefix)
    return int(network.network_address), network.prefixlen


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)
