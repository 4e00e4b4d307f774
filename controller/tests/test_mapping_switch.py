# SPDX-License-Identifier: Apache-2.0
"""The computed mapping in a real switch, as `frontage up` runs it, with the dispatchers of two sites."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from pathlib import Path

from conftest import EXAMPLE, Switch, for_switch
from dispatchers import FakeDispatcher, running
from frontage.p4.entries import State
from frontage.service.daemon import Service
from frontage.state.blocks import region, steering
from frontage.state.reconcile import plan
from frontage.state.steering import EndUserMapping
from live import LIMIT, connected, only, serving, until

CLIENT = "2001:db8:c1::/48"


def sites_for(mapping: EndUserMapping, region: int) -> tuple[int, ...] | None:
    """Return the sites of films.example."""
    return mapping.choices.get((mapping.deployments.get(3, 0), region))


def with_mapping(folder: Path, switch: Switch, sites: list[FakeDispatcher]) -> Path:
    """Return the Artemis example with a computed mapping in place of the mapping file."""
    file = for_switch(EXAMPLE.with_name("artemis.yaml"), folder, switch)
    section = "end_users:\n  store: sqlite:///mapping.db\n  interval: 0.1\n"
    section += "  services: [{ name: films.example, id: 3, redundancy: 2 }]\n  dispatchers:\n"
    section += "".join(f"    - {{ site: {one.site}, url: '{one.url}' }}\n" for one in sites)
    section += "metrics: { address: '127.0.0.1:0' }\n"
    text, replaced = re.subn(r"^mapping: .*\n", section, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert replaced == 1
    file.write_text(text, encoding="utf-8")
    return file


async def installed(service: Service) -> State:
    """Return the mapping in the switch once everything is written."""
    await only(service).installed()
    session, pipeline = connected(only(service))
    # The controller has a change before the switch does.
    async with asyncio.timeout(LIMIT):
        while True:
            found = await plan(session, pipeline.schema, only(service).config, only(service).mapping)
            if len(found.difference) == 0:
                break
    return {key: action for key, action in found.installed.items() if key.table in steering.MAPPED}


async def test_switch_follows_measurements_and_site_failure(folder: Path, switch: Switch) -> None:
    with running(2) as sites:
        for one in sites:
            one.replica(one.site, "films.example")
        service = Service(with_mapping(folder, switch, sites))
        mapping = only(service).mapping
        async with serving(service), asyncio.timeout(LIMIT):
            await until(lambda: sites_for(mapping, 0) == (1, 2))
            sites[0].measure(CLIENT, 30_000)
            sites[1].measure(CLIENT, 10_000)
            # The samples of the two sites may arrive in different rounds.
            await until(lambda: sites_for(mapping, 1) == (2, 1))
            state = await installed(service)
            assert {key.table for key in state} == set(steering.MAPPED) - {region.CLIENT4}
            sites[1].stop()
            # A region that equals the default has no entry.
            await until(lambda: mapping.choices == {(mapping.deployments[3], 0): (1,)})
            assert steering.MAPPING not in {key.table for key in await installed(service)}
            assert service.endpoint is not None
            url = "http://{}:{}/metrics".format(*service.endpoint.address)
            page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            assert 'frontage_mapping_site_out{site="2"} 1.0' in page
            assert {site["id"]: site["out"] for site in (await service.sites())["sites"]} == {1: False, 2: True}
            assert "frontage_mapping_leads 1.0" in page
            assert "frontage_mapping_samples_total 2.0" in page


async def test_changed_section_restarts_the_mapping(folder: Path, switch: Switch) -> None:
    with running(2) as sites:
        for one in sites:
            one.replica(one.site, "films.example")
        file = with_mapping(folder, switch, sites)
        service = Service(file)
        mapping = only(service).mapping
        async with serving(service), asyncio.timeout(LIMIT):
            await until(lambda: sites_for(mapping, 0) == (1, 2))
            first = service.end_users.mapper
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace("id: 3, redundancy: 2", "id: 3, redundancy: 1"), encoding="utf-8")
            await until(lambda: sites_for(mapping, 0) == (1,))
            assert service.end_users.mapper is not first
            await installed(service)
            # Without the section, and without a file, there is no mapping.
            file.write_text(re.sub(r"end_users:\n(  .*\n)+", "", text), encoding="utf-8")
            await until(lambda: not mapping.choices)
            assert await installed(service) == {}
            assert service.end_users.mapper is None
