"""Demand in a real switch: what `frontage up` reads of its counters, and where that puts a service."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from finsy.proto import p4i, p4r
from rich.console import Console

from conftest import Switch
from dispatchers import StandIn, running
from frontage.cli.show import render
from frontage.mapping.demand.moves import Stage
from frontage.mapping.demand.reports import Told
from frontage.mapping.store.store import Store
from frontage.p4.digests import MOST, Learned
from frontage.p4.p4info import Schema
from frontage.service.daemon import Service
from frontage.service.health import Phase
from frontage.state.blocks import demand
from live import LIMIT, connected, serving, until
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
    """Count so many handshakes more of films' clients, by region: as packets would. ``primary``: the election id of another
    controller, which has the switch."""
    controller = service.controller
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


def told(service: Service) -> Mapping[int, Told]:
    mapper = service.end_users.mapper
    assert mapper is not None
    return mapper.store.told().get("films.example", {})


def active(service: Service) -> set[int]:
    mapper = service.end_users.mapper
    assert mapper is not None
    places = mapper.store.places().get("films.example", {})
    return {site for site, place in places.items() if place.stage.wanted and place.stage is Stage.ACTIVE}


@contextmanager
def two_sites() -> Iterator[list[StandIn]]:
    """Each with a replica; the client is nearer to the first."""
    with running(2) as sites:
        for one in sites:
            one.replica(one.site, "films.example")
            one.measure(CLIENT, 10_000 * one.site)
        yield sites


def placed(folder: Path, switch: Switch, sites: list[StandIn]) -> Path:
    """The configuration of a service that is at one of two sites by its demand."""
    file = with_mapping(folder, switch, sites)
    file.write_text(file.read_text(encoding="utf-8").replace("redundancy: 2", "redundancy: 1") + SECTION, encoding="utf-8")
    return file


def requests(store: Store) -> int:
    """Handshakes that site 1 has told of."""
    return store.told()["films.example"][1].requests


def counted(service: Service) -> int:
    """Handshakes that this controller has read."""
    measurer = service.end_users.measurer
    return sum(measurer.counters.handshakes.values()) if measurer is not None else 0


def reading(service: Service) -> bool:
    """Whether it has read the counters once, and so knows what is new."""
    measurer = service.end_users.measurer
    return measurer is not None and measurer._read_at is not None


async def test_counters_become_reports_and_reports_places(folder: Path, switch: Switch) -> None:
    with two_sites() as sites:
        for one in sites:
            one.measure(FAR, 10_000 * (3 - one.site))
        file = placed(folder, switch, sites)
        service = Service(file)
        async with serving(service), asyncio.timeout(LIMIT):
            await until(lambda: len(set(service.controller.mapping.regions.values())) == 2)
            regions = {str(prefix): region for prefix, region in service.controller.mapping.regions.items()}
            await until(lambda: reading(service))
            # Of what is not enough, nothing is told.
            await add(service, {regions[CLIENT]: 9})
            await until(lambda: counted(service) == 9)
            assert told(service) == {}
            await add(service, {regions[CLIENT]: 91, 0: 100})
            await until(lambda: told(service)[1].requests == 200 if told(service) else False)
            assert told(service)[1].regions.keys() == {0, regions[CLIENT]}
            await until(lambda: active(service) == {1})
            await until(lambda: sites_for(service.controller.mapping, 0) == (1,))
            # The switch begins anew, and so do its counters.
            switch.stop()
            switch.start()
            await until(lambda: service.controller.health.pipelines_set == 2 and service.controller.primary)
            await service.controller.installed()
            await add(service, {regions[FAR]: 150})
            await until(lambda: told(service)[1].requests == 350)
            await until(lambda: active(service) == {2})
            await until(lambda: sites_for(service.controller.mapping, 0) == (2,))
            status = await service._status()
            assert status["demand"] == {"films": {regions[FAR]: 150}}
            console = Console(record=True, width=200)
            render(console, status)
            assert f"region {regions[FAR]}: 150" in console.export_text()
            assert service.endpoint is not None
            url = "http://{}:{}/metrics".format(*service.endpoint.address)
            page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            assert f'frontage_demand_handshakes_total{{region="{regions[FAR]}",service="films.example"}} 150.0' in page
            assert "frontage_placement_reconfigurations_total 2.0" in page
            # Without the section it is wherever it has replicas.
            file.write_text(file.read_text(encoding="utf-8").replace(SECTION, ""), encoding="utf-8")
            await until(lambda: sites_for(service.controller.mapping, 0) == (1,) and service.end_users.measurer is None)


async def test_what_is_counted_before_there_is_a_store_is_told_when_there_is_one(folder: Path, switch: Switch) -> None:
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
            assert "there is no store yet" in str(measurer.counters.error)
            assert service.end_users.mapper is None
            (folder / "later").mkdir()
            await until(lambda: service.end_users.mapper is not None and 1 in told(service))
            assert told(service)[1].requests == 60
            await until(lambda: service.end_users.measurer.counters.error is None)  # type: ignore[union-attr]
            # And it goes on: who the clients are is known now, and the service is where they are.
            await until(lambda: len(set(service.controller.mapping.regions.values())) == 1)
            await add(service, {next(iter(service.controller.mapping.regions.values())): 100})
            await until(lambda: told(service)[1].requests == 160)
            await until(lambda: active(service) == {1})


async def test_a_standby_that_takes_over_tells_nothing_twice(folder: Path, switch: Switch) -> None:
    with two_sites() as sites:
        file = placed(folder, switch, sites)
        words = [sys.executable, "-m", "frontage", "up", str(file), "--election-id", "7"]
        with (folder / "primary.log").open("wb") as log:
            primary = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        store = Store(f"sqlite:///{folder}/mapping.db")
        try:
            async with asyncio.timeout(LIMIT):
                await until(lambda: len(store.present().get("films.example", ())) == 2)
                async with serving(Service(file, election_id=3)) as standby:
                    await until(lambda: standby.controller.health.phase is Phase.STANDBY and standby.end_users.measurer is not None)
                    session, pipeline = connected(standby.controller)
                    while await session.installed_pipeline() != pipeline.cookie:
                        await asyncio.sleep(EPOCH)
                    # The primary's first reading takes the cells as they are: what comes before that is not told.
                    count = 25
                    while not store.told():
                        count *= 2
                        await add(standby, {0: count}, primary=7)
                        await asyncio.sleep(EPOCH)
                    # All before the last are fewer than it together: it is among those that were told, so nothing is on its way.
                    await until(lambda: requests(store) >= count)
                    before = requests(store)
                    await add(standby, {0: 50}, primary=7)
                    await until(lambda: requests(store) == before + 50)
                    assert (reading(standby), counted(standby)) == (False, 0)
                    primary.kill()
                    await primary.wait()
                    await until(lambda: standby.controller.primary and reading(standby))
                    # What the other one had told is not told again, and what comes now is.
                    assert counted(standby) == 0
                    await add(standby, {0: 70})
                    await until(lambda: counted(standby) == 70)
                    await until(lambda: requests(store) == before + 120)
        finally:
            if primary.returncode is None:
                primary.kill()
                await primary.wait()
            store.close()


def test_digests_are_taken_as_far_as_there_is_room() -> None:
    info = p4i.P4Info()
    info.digests.add().preamble.id, info.digests[0].preamble.name = 7, "new_client_t"
    schema, learned = Schema(info), Learned()

    def told_of(count: int, list_id: int, digest_id: int = 7) -> p4r.DigestList:
        found = p4r.DigestList(digest_id=digest_id, list_id=list_id)
        for _ in range(count):
            members = found.data.add().struct.members
            members.add().bitstring, members.add().bitstring = b"\x06", b"\x20\x01\x0d\xb8\x00\x77"
        return found

    learned.add(schema, told_of(2, 1))
    learned.add(schema, told_of(1, 2, digest_id=9))
    learned.add(schema, told_of(MOST, 3))
    assert learned.messages == [("new_client_t", (6, 0x20010DB80077))] * 2
    # What was not taken is not acknowledged.
    assert learned.lists == [(7, 1)]
