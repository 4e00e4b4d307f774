"""Demand in a real switch: what `frontage up` reads of its counters, and where that puts a service."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from finsy.proto import p4i, p4r
from rich.console import Console

from conftest import Switch
from dispatchers import running
from frontage.blocks import demand
from frontage.demand.moves import Stage
from frontage.demand.store import Told
from frontage.learning import MOST, Learned
from frontage.p4info import Schema
from frontage.service import Service
from frontage.show import render
from live import LIMIT, until
from test_mapping_switch import CLIENT, sites_for, with_mapping

SECTION = """
placement:
  epoch: 0.4
  services: [{ name: films.example }]
  sites: [{ site: 1, capacity: 100 }, { site: 2, capacity: 100 }]
  min_replicas: 1
  max_replicas: 1
  requests: 10
  share: 0.9
  drain: 0
"""
REGION = 1
FAR = "198.51.100.0/24"


async def add(service: Service, counts: Mapping[int, int]) -> None:
    """Count so many handshakes more of films' clients, by region: as packets would."""
    controller = service.controller
    session, pipeline = controller.session, controller.pipeline
    assert session is not None
    assert pipeline is not None
    counter_id = pipeline.schema.counter(demand.HANDSHAKES)
    base = demand.cells(controller.config)["films"].base
    have = await session.read_cells(counter_id, [base + region for region in counts])
    request = p4r.WriteRequest(device_id=session.device_id, election_id=p4r.Uint128(low=session.election_id))
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


async def test_counters_become_reports_and_reports_places(folder: Path, switch: Switch) -> None:
    with running(2) as sites:
        for one in sites:
            one.replica(one.site, "films.example")
            one.measure(CLIENT, 10_000 * one.site)
            one.measure(FAR, 10_000 * (3 - one.site))
        file = with_mapping(folder, switch, sites)
        file.write_text(file.read_text(encoding="utf-8").replace("redundancy: 2", "redundancy: 1") + SECTION, encoding="utf-8")
        service = Service(file)
        task = asyncio.create_task(service.run())
        try:
            async with asyncio.timeout(LIMIT):
                await until(lambda: len(set(service.controller.mapping.regions.values())) == 2)
                regions = {str(prefix): region for prefix, region in service.controller.mapping.regions.items()}
                await until(lambda: service.end_users.measurer is not None and service.end_users.measurer._read_at is not None)
                # Of what is not enough, nothing is told.
                await add(service, {regions[CLIENT]: 9})
                await until(lambda: sum(service.end_users.measurer.counters.handshakes.values()) == 9)  # type: ignore[union-attr]
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
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


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
