# SPDX-License-Identifier: Apache-2.0
"""`frontage up` places the records of the record servers that use the same configuration. All programs run as processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest

from conftest import EXAMPLE, ROOT
from frontage_records.client import RecordClient
from frontage_records.record import Consistency
from nats_cluster import Cluster
from records_engines import cluster

__all__ = ["cluster"]

SITE_2 = (
    ('site: { id: 1, vtep: "2001:db8:101::1" }', 'site: { id: 2, vtep: "2001:db8:102::1" }'),
    ('prefix: "2001:db8:102::/48"', 'prefix: "2001:db8:101::/48"'),
    ("[800, 1599]", "[1600, 2399]"),
    ("[0, 799]", "[2400, 3199]"),
    ("sid: ", "sid: 160"),
)
"""Changes to the example, which is site 1, for a valid configuration of site 2."""
FRONTAGE = Path(sys.executable).with_name("frontage")
SOFTSWITCH = ROOT / "target" / "release" / "softswitch"
PROGRAM = ROOT / "build" / "p4"


@contextmanager
def process(command: list[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, and kill it at the end."""
    with log.open("wb") as file:
        running = subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@asynccontextmanager
async def record_server(config: Path) -> AsyncIterator[str]:
    """Run `frontage records serve`, and return its URL."""
    log = config.with_suffix(".log")
    with process([FRONTAGE, "records", "serve", "-c", config], log) as running:
        while "/records/GUID" not in (text := log.read_text()):
            assert running.poll() is None, text
            await asyncio.sleep(0.05)
        yield text.split("records at ")[1].split("/records/GUID")[0]


def configuration(folder: Path, site: int, store: str) -> Path:
    """Write the configuration of a site: the example with a section `records`, whose clients in 127.0.2.0/24 are nearest to site 2."""
    text = EXAMPLE.with_name("artemis.yaml").read_text(encoding="utf-8").replace("../../build/p4", str(PROGRAM))
    text = text.replace("127.0.0.1:9559 ", f"unix:{folder}/switch.sock")
    if site == 2:
        for old, new in SITE_2:
            assert old in text
            text = text.replace(old, new)
    placement = "{ epoch: 2, min_replicas: 1, max_replicas: 1, requests: 50, share: 0.1, regions: { 127.0.2.0/24: 2 } }"
    text += f"\nrecords:\n  listen: 127.0.0.1:0\n  store: {store}\n  replicas: 1\n  placement: {placement}\n"
    file = folder / f"site-{site}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


async def request(region: aiohttp.ClientSession, url: str) -> None:
    """Read a record again and again."""
    while True:
        async with region.get(url) as answer:
            assert answer.status == 200
        await asyncio.sleep(0.01)


async def test_up_moves_records_to_their_demand(cluster: Cluster, tmp_path: Path) -> None:
    if not SOFTSWITCH.exists() or not (PROGRAM / "frontage.json").exists():
        pytest.skip("no switch: run `make setup`")
    await cluster.ready()
    (tmp_path / "artemis-mapping.json").write_bytes(EXAMPLE.with_name("artemis-mapping.json").read_bytes())
    files = {site: configuration(tmp_path, site, ",".join(cluster.urls)) for site in (1, 2)}
    switch = [SOFTSWITCH, "--no-p4", "--device-id", "1", "--", "--grpc-server-addr", f"unix:{tmp_path}/switch.sock", "--cpu-port"]
    with process([*switch, "510"], tmp_path / "switch.log"), process([FRONTAGE, "up", files[1]], tmp_path / "up.log") as up:
        async with record_server(files[1]) as first, record_server(files[2]) as second, RecordClient(first) as client:
            await client.put("films", {"n": 1}, consistency=Consistency.TOTAL_WRITES)
            await client.place("films", [1])
            at_site_2 = aiohttp.TCPConnector(local_addr=("127.0.2.7", 0))
            async with aiohttp.ClientSession(connector=at_site_2) as region, asyncio.TaskGroup() as tasks:
                requesting = tasks.create_task(request(region, f"{second}/records/films"))
                while await client.sites("films") != (2,):
                    assert up.poll() is None, (tmp_path / "up.log").read_text()
                    await asyncio.sleep(0.01)
                assert (await client.put("films", {"n": 2})).record.version == 2
                shown = await asyncio.create_subprocess_exec(
                    FRONTAGE, "records", "placement", "films", "--json", "-c", files[1], stdout=subprocess.PIPE
                )
                found = json.loads((await shown.communicate())[0])
                requesting.cancel()
            assert found["moves"] == {"done": 1}
            assert found["records"][0]["demand"][0]["region"] == 2, "most requests come from there"
    await cluster.clear()
