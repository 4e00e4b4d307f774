# SPDX-License-Identifier: Apache-2.0
"""Demand in a real switch: the counters that `frontage up` reads, and the resulting placement."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from finsy.proto import p4r
from rich.console import Console

from conftest import Switch
from dispatchers import FakeDispatcher, running
from frontage.cli.show import render
from frontage.mapping.demand.moves import Stage
from frontage.mapping.demand.reports import SiteReports
from frontage.mapping.store.store import Store
from frontage.p4.digests import MAX_MESSAGES, MAX_SIGNALLED_MESSAGES, DigestMessages
from frontage.service.daemon import Service
from frontage.service.health import Phase
from frontage.state.blocks import demand
from live import LIMIT, connected, only, serving, until
from test_mapping_switch import CLIENT, sites_for, with_mapping

EPOCH = 0.4
"""Seconds."""
SECTION = f"""
placement:
  epoch: {EPOCH}
  services: [{{ name: films.example }}]
  sites: [{{ site: 1, capacity: 100 }}, {{ site: 2, capacity: 100 }}]
  min_replicas: 1
  max_replicas: 1
  requests: 10
  share: 0.9
  drain: 0
"""
FAR = "198.51.100.0/24"


async def add(service: Service, counts: Mapping[int, int], primary: int | None = None) -> None:
    """Add handshakes of clients of films by region to the switch's counters, as packets would.

    ``primary``: the election id of another controller that is primary.
    """
    controller = only(service)
    session, pipeline = connected(controller)
    counter_id = pipeline.schema.counter(demand.HANDSHAKES)
    base = demand.cells(controller.config)["films"].base
    have = await session.read_cells(counter_id, [base + region for region in counts])
    request = p4r.WriteRequest(device_id=session.device_id, election_id=p4r.Uint128(low=primary or session.election_id))
    for region, count in counts.items():
        entry = request.updates.add(type=p4r.Update.MODIFY).entity.counter_entry
        entry.counter_id, entry.index.index = counter_id, base + region
        entry.data.packet_count = have[base + region].packets + count
    await session._stub.Write(request)


def reported(service: Service) -> Mapping[int, SiteReports]:
    mapper = service.end_users.mapper
    assert mapper is not None
    return mapper.store.reports().get("films.example", {})


def active(service: Service) -> set[int]:
    mapper = service.end_users.mapper
    assert mapper is not None
    places = mapper.store.placements().get("films.example", {})
    return {site for site, place in places.items() if place.stage.wanted and place.stage is Stage.ACTIVE}


@contextmanager
def two_sites() -> Iterator[list[FakeDispatcher]]:
    """Two sites with a replica each; the client is nearer to the first."""
    with running(2) as sites:
        for one in sites:
            one.replica(one.site, "films.example")
            one.measure(CLIENT, 10_000 * one.site)
        yield sites


def placed(folder: Path, switch: Switch, sites: list[FakeDispatcher]) -> Path:
    """Return the configuration of a service that runs at one of two sites by its demand."""
    file = with_mapping(folder, switch, sites)
    file.write_text(file.read_text(encoding="utf-8").replace("redundancy: 2", "redundancy: 1") + SECTION, encoding="utf-8")
    return file


def requests(store: Store) -> int:
    """Return the handshakes in the reports of site 1."""
    return store.reports()["films.example"][1].requests


def counted(service: Service) -> int:
    """Return the handshakes that this controller has read."""
    measurer = service.end_users.measurer
    return sum(measurer.counters.handshakes.values()) if measurer is not None else 0


def reading(service: Service) -> bool:
    """Return whether the counters have been read once, so that deltas are known."""
    measurer = service.end_users.measurer
    return measurer is not None and measurer.read_at is not None


async def test_counters_lead_to_reports_and_reports_to_placement(folder: Path, switch: Switch) -> None:
    with two_sites() as sites:
        for one in sites:
            one.measure(FAR, 10_000 * (3 - one.site))
        file = placed(folder, switch, sites)
        service = Service(file)
        async with serving(service), asyncio.timeout(LIMIT):
            await until(lambda: len(set(only(service).mapping.regions.values())) == 2)
            regions = {str(prefix): region for prefix, region in only(service).mapping.regions.items()}
            await until(lambda: reading(service))
            # Too few handshakes give no report.
            await add(service, {regions[CLIENT]: 9})
            await until(lambda: counted(service) == 9)
            assert reported(service) == {}
            await add(service, {regions[CLIENT]: 91, 0: 100})
            await until(lambda: reported(service)[1].requests == 200 if reported(service) else False)
            assert reported(service)[1].regions.keys() == {0, regions[CLIENT]}
            await until(lambda: active(service) == {1})
            await until(lambda: sites_for(only(service).mapping, 0) == (1,))
            # The switch restarts, and its counters with it.
            switch.stop()
            switch.start()
            await until(lambda: only(service).health.pipelines_set == 2 and only(service).primary)
            await only(service).installed()
            await add(service, {regions[FAR]: 150})
            await until(lambda: reported(service)[1].requests == 350)
            await until(lambda: active(service) == {2})
            await until(lambda: sites_for(only(service).mapping, 0) == (2,))
            status = await service.status()
            assert status["demand"] == {"films": {regions[FAR]: 150}}
            console = Console(record=True, width=200)
            render(console, status)
            assert f"region {regions[FAR]}: 150" in console.export_text()
            assert service.endpoint is not None
            url = "http://{}:{}/metrics".format(*service.endpoint.address)
            page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            assert f'frontage_demand_handshakes_total{{region="{regions[FAR]}",service="films.example"}} 150.0' in page
            assert "frontage_placement_reconfigurations_total 2.0" in page
            # Without the section the service runs wherever it has replicas.
            file.write_text(file.read_text(encoding="utf-8").replace(SECTION, ""), encoding="utf-8")
            await until(lambda: sites_for(only(service).mapping, 0) == (1,) and service.end_users.measurer is None)


async def test_counts_before_the_store_opens_are_reported_later(folder: Path, switch: Switch) -> None:
    with two_sites() as sites:
        file = placed(folder, switch, sites)
        file.write_text(file.read_text(encoding="utf-8").replace("sqlite:///", "sqlite:///later/"), encoding="utf-8")
        service = Service(file)
        async with serving(service), asyncio.timeout(LIMIT):
            await until(lambda: reading(service))
            await add(service, {0: 60})
            await until(lambda: counted(service) == 60)
            measurer = service.end_users.measurer
            assert measurer is not None
            await until(lambda: measurer.counters.error is not None)
            assert "the store is not open yet" in str(measurer.counters.error)
            assert service.end_users.mapper is None
            (folder / "later").mkdir()
            await until(lambda: service.end_users.mapper is not None and 1 in reported(service))
            assert reported(service)[1].requests == 60
            await until(lambda: service.end_users.measurer.counters.error is None)  # type: ignore[union-attr]
            # The clients' regions are known now, and the service runs near them.
            await until(lambda: len(set(only(service).mapping.regions.values())) == 1)
            await add(service, {next(iter(only(service).mapping.regions.values())): 100})
            await until(lambda: reported(service)[1].requests == 160)
            await until(lambda: active(service) == {1})


async def test_standby_that_takes_over_reports_nothing_twice(folder: Path, switch: Switch) -> None:
    with two_sites() as sites:
        file = placed(folder, switch, sites)
        words = [sys.executable, "-m", "frontage", "up", str(file), "--election-id", "7"]
        with (folder / "primary.log").open("wb") as log:
            primary = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        store = Store(f"sqlite:///{folder}/mapping.db")
        try:
            async with asyncio.timeout(LIMIT):
                await until(lambda: len(store.present_sites().get("films.example", ())) == 2)
                async with serving(Service(file, election_id=3)) as standby:
                    await until(lambda: only(standby).health.phase is Phase.STANDBY and standby.end_users.measurer is not None)
                    session, pipeline = connected(only(standby))
                    while await session.installed_pipeline() != pipeline.cookie:
                        await asyncio.sleep(EPOCH)
                    # The primary's first reading is the basis: earlier handshakes are not reported.
                    count = 25
                    while not store.reports():
                        count *= 2
                        await add(standby, {0: count}, primary=7)
                        await asyncio.sleep(EPOCH)
                    # All batches but the last are smaller together than it. So it has been reported, and no report is under way.
                    await until(lambda: requests(store) >= count)
                    before = requests(store)
                    await add(standby, {0: 50}, primary=7)
                    await until(lambda: requests(store) == before + 50)
                    assert (reading(standby), counted(standby)) == (False, 0)
                    primary.kill()
                    await primary.wait()
                    await until(lambda: only(standby).primary and reading(standby))
                    # Handshakes reported by the other controller are not reported again; new ones are.
                    assert counted(standby) == 0
                    await add(standby, {0: 70})
                    await until(lambda: counted(standby) == 70)
                    await until(lambda: requests(store) == before + 120)
        finally:
            if primary.returncode is None:
                primary.kill()
                await primary.wait()
            store.close()


def test_digests_are_stored_up_to_limit() -> None:
    learned = DigestMessages()

    def learned_of(count: int, list_id: int) -> p4r.DigestList:
        found = p4r.DigestList(digest_id=7, list_id=list_id)
        for _ in range(count):
            members = found.data.add().struct.members
            members.add().bitstring, members.add().bitstring = b"\x06", b"\x20\x01\x0d\xb8\x00\x77"
        return found

    learned.add(learned_of(2, 1))
    learned.add(learned_of(0, 2))
    learned.add(learned_of(MAX_MESSAGES, 3))
    assert learned.messages == [(6, 0x20010DB80077)] * 2
    # Digests that were not stored are not acknowledged.
    assert learned.lists == [(7, 1), (7, 2)]


def test_signalled_digests_beyond_the_limit_are_acknowledged() -> None:
    learned = DigestMessages()
    for list_id in range(2):
        found = p4r.DigestList(digest_id=8, list_id=list_id)
        for _ in range(MAX_SIGNALLED_MESSAGES):
            found.data.add().struct.members.add().bitstring = b"\x01"
        learned.add(found, is_signalled=True)
    assert len(learned.messages) == MAX_SIGNALLED_MESSAGES
    assert learned.lists == [(8, 0), (8, 1)]
