# SPDX-License-Identifier: Apache-2.0
"""The running mapping against the real `frontage-dispatcher`, if it is built."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from conftest import ROOT
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.control.mapper import Mapper
from frontage.mapping.demand.reports import Report
from frontage.mapping.services import Service
from frontage.mapping.settings import EndUsers, ManagedDispatcher, Placement

LIMIT = 30.0


def binary() -> str:
    builds = [ROOT / "target" / kind / "frontage-dispatcher" for kind in ("release", "debug")]
    found = os.environ.get("FRONTAGE_DISPATCHER") or next((str(b) for b in builds if b.exists()), None)
    if found is None or shutil.which(found) is None:
        pytest.skip("no dispatcher: build frontage-dispatcher, or set FRONTAGE_DISPATCHER to it")
    return found


class Process:
    """One dispatcher on its own loopback address, because the tunnel port is fixed."""

    def __init__(self, site: int, folder: Path):
        self.site = site
        self._address = f"127.{64 + (os.getpid() >> 8) % 64}.{os.getpid() % 256}.{site}"
        with socket.create_server((self._address, 0)) as free:
            self.url = f"http://{self._address}:{free.getsockname()[1]}"
        self._file = folder / f"dispatcher-{site}.toml"
        self._file.write_text(
            f'control = "{self.url.removeprefix("http://")}"\nthreads = 1\n[tunnel]\nlisten = "{self._address}:4789"\n'
            f'peers = ["127.0.0.{100 + site}"]\n',
            encoding="ascii",
        )
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._file.with_suffix(".log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(binary(), str(self._file), stdout=log, stderr=log)
        async with asyncio.timeout(LIMIT):
            while not await asyncio.to_thread(self._answers):
                assert self._process.returncode is None, self._file.with_suffix(".log").read_text()
                await asyncio.sleep(0.02)

    def _answers(self) -> bool:
        try:
            self.ask("GET", "/replicas")
        except OSError:
            return False
        return True

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data, {"Content-Type": "application/json"}, method=method), timeout=LIMIT) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def beat(self, sid: int, name: str, *, accepting: bool = True, rtts: dict[str, int] | None = None) -> None:
        heard = [{"prefix": prefix, "rtt_us": rtt, "count": 2} for prefix, rtt in (rtts or {}).items()]
        body = {"services": [name], "address": f"127.0.1.{sid}", "load": 0.2, "accepting": accepting, "ttl": 600, "rtts": heard}
        self.ask("PUT", f"/replicas/{sid}", body)

    def sizes(self) -> tuple[int, int, int]:
        """Return the numbers of entries: (services, clients, mapping)."""
        table = self.ask("GET", "/table")
        return table["services"], table["clients"], table["mapping"]


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[list[Process]]:
    all_ = [Process(site, tmp_path) for site in (1, 2, 3)]
    try:
        for one in all_:
            await one.start()
        yield all_
    finally:
        for one in all_:
            await one.stop()


def mapper_of(folder: Path, all_: list[Process], *, probes_per_second: float, placement: Placement | None = None) -> Mapper:
    dispatchers = tuple(ManagedDispatcher(site=one.site, url=one.url) for one in all_)
    settings = EndUsers(store=f"sqlite:///{folder}/mapping.db", dispatchers=dispatchers, probes_per_second=probes_per_second)
    vteps = {site: ip_address(f"127.0.0.{100 + site}") for site in (1, 2, 3)}
    return Mapper(settings, vteps, (Service("films.example", 3, 2),), site=1, placement=placement)


async def test_dispatcher_accepts_tables_and_differences(tmp_path: Path, three: list[Process]) -> None:
    mapper = mapper_of(tmp_path, three, probes_per_second=0)
    await mapper.register()
    for one in three:
        rtts = {"198.51.100.0/24": 10_000 * one.site, "2001:db8:c1::/48": 10_000 * (4 - one.site)}
        one.beat(one.site, "films.example", rtts=rtts)
    await mapper.step(1000.0)
    assert [one.sizes() for one in three] == [(1, 0, 1)] * 3
    await mapper.step(1002.0)
    # Each site has two regions, one of which needs no entry because its choice is the default.
    assert {one.sizes()[:2] for one in three} == {(1, 2)}
    assert all(one.error is None for one in mapper.dispatchers), [one.error for one in mapper.dispatchers]
    three[0].beat(1, "films.example", accepting=False)
    three[1].beat(22, "books.example")
    await mapper.step(1004.0)
    assert [one.sizes()[0] for one in three] == [2, 2, 2]
    three[1].ask("DELETE", "/replicas/22")
    await mapper.step(1006.0)
    assert [one.sizes()[0] for one in three] == [1, 1, 1]
    assert [one.replaced for one in mapper.dispatchers] == [1, 1, 1]
    # One dispatcher dies and loses its table; it gets the whole table when it is back.
    await three[2].stop()
    await mapper.step(1008.0)
    assert mapper.counters.sites_out == {3}
    await three[2].start()
    await mapper.step(1010.0)
    assert [one.replaced for one in mapper.dispatchers] == [1, 1, 2]
    assert mapper.dispatchers[2].version == mapper.tables.content
    mapper.store.close()


async def test_dispatcher_probes_other_sites(tmp_path: Path, three: list[Process]) -> None:
    mapper = mapper_of(tmp_path, three, probes_per_second=10)
    await mapper.register()
    await mapper.step(1000.0)
    assert mapper.prober.under_way is not None
    await mapper.prober.under_way
    if any("CAP_NET_RAW" in (one.error or "") for one in mapper.dispatchers) or not mapper.prober.probes:
        pytest.skip("no raw sockets: run as root")
    await mapper.step(1002.0)
    found = mapper.store.rtts([parse("127.0.0.0/24")])
    assert [(site, source) for _, site, source, *_ in found] == [(1, "active"), (2, "active"), (3, "active")]
    mapper.store.close()


async def test_service_leaves_site_where_handshakes_wait(tmp_path: Path, three: list[Process]) -> None:
    about = {"epoch": 100.0, "min_replicas": 1, "max_replicas": 1, "requests": 10, "share": 0.5}
    about |= {"services": [{"name": "films.example"}], "sites": [{"site": site, "capacity": 100.0} for site in (1, 2, 3)]}
    mapper = mapper_of(tmp_path, three, probes_per_second=0, placement=Placement.model_validate(about))
    await mapper.register()
    near = "198.51.100.0/24"
    for one in three:
        one.beat(one.site, "films.example")
    await mapper.step(1000.0)
    for one in three:
        one.beat(one.site, "films.example", rtts={near: 10_000 * one.site})
    await mapper.step(1002.0)

    async def decided(now: float) -> set[int]:
        demand = {mapper.tables.clients[parse(near)]: 500}
        mapper.store.add_reports(1, [Report("films.example", 500, 50.0, demand)], now)
        await mapper.step(now)
        return {site for site, place in mapper.store.placements()["films.example"].items() if place.stage.wanted}

    assert await decided(1110.0) == {1}
    # Heartbeats are summed until they are read: four handshakes, 27.5 ms on average.
    for rtt in (20_000, 35_000):
        three[0].beat(1, "films.example", rtts={near: rtt})
    await mapper.step(1112.0)
    assert await decided(1220.0) == {2}
    assert mapper.store.documents()["films.example"]["load_latency_us"] == {"1": 17_500.0, "2": 0.0, "3": 0.0}
    mapper.store.close()
