# SPDX-License-Identifier: Apache-2.0
"""The demo with real servers: its pictures, its report, and a run."""

import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from frontage_demo.page import report
from frontage_demo.page.loads import Fetched, Load
from frontage_demo.page.pictures import COUNT, Object, draw, index
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.programs import REPOSITORY
from test_report import WellFormed
from testbeds import deployment, needs_root

SERVERS = ("s1", "s2", "s3")
"""The balancer and its real servers."""
SETTINGS = Settings(servers=3, clients=1, protocol="quic")


def make_load(form: str, sender: str, client: str = "noq") -> Load:
    """Return a load of a page with four pictures, half of which `sender` sent."""
    names = ["index.html", "s2/01.png", "s3/02.png", "s2/03.png", "s3/04.png"]
    paths = [f"/{form}/{name}" for name in names]
    objects = tuple(Fetched(path, i / 1e2, i / 50, i / 10, 1000 * i, True, "h3") for i, path in enumerate(paths))
    senders = {path: sender if "s2" in path else "s1" for path in paths}
    bodies = Counter(dict.fromkeys(SERVERS, 0))
    for fetched in objects:
        bodies[senders[fetched.path]] += fetched.bytes
    return Load(client, form, objects, senders, bodies, {name: count + 77 for name, count in bodies.items()})


def chunks(png: bytes) -> list[bytes]:
    kinds, at = [], 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        body, checksum = png[at + 4 : at + 8 + length], png[at + 8 + length : at + 12 + length]
        assert zlib.crc32(body) == int.from_bytes(checksum)
        kinds.append(body[:4])
        at += 12 + length
    return kinds


def test_pictures_depend_on_seed_only() -> None:
    first = draw(1, SERVERS[1:])
    assert first == draw(1, SERVERS[1:]) != draw(2, SERVERS[1:])
    assert len(first) == len({picture.path for picture in first}) == COUNT
    bytes_of: Counter[str] = Counter()
    for picture in first:
        assert chunks(picture.body) == [b"IHDR", b"IDAT", b"IEND"]
        bytes_of[picture.path.partition("/")[0]] += len(picture.body)
    assert bytes_of.keys() == set(SERVERS[1:])
    assert max(bytes_of.values()) < 1.5 * min(bytes_of.values()), "real servers have similar amounts to send"


def test_page_references_its_pictures() -> None:
    page = index([Object("s2/01.png", b""), Object("s3/02.png", b"")]).body.decode()
    assert re.findall(r'<img src="([^"]+)"', page) == ["s2/01.png", "s3/02.png"]
    assert "{" + "pictures}" not in page


def test_report_shows_senders() -> None:
    loads = [make_load("direct", "s2"), make_load("proxied", "s1")]
    page = report.render(SETTINGS, loads, ["Firefox"], b"RIFF")
    WellFormed().feed(page.replace("<img ", "<br "))
    assert not re.search(r'(?:src|href)="(?!data:)|@import|url\(', page)
    assert "All 10 objects of 2 page loads arrived unchanged" in page
    assert "2 of 4 pictures came from real servers" in page
    for text in (
        "<td>4</td>",
        "Firefox",
        "/direct/s2/03.png: 3000 bytes from s2",
        "/proxied/s2/03.png: 3000 bytes from s1",
    ):
        assert text in page
    # Two drawings of paths, one of shares, and a waterfall for each load.
    assert page.count("<svg") == 2 + 1 + len(loads)


def test_report_shows_failures() -> None:
    load = make_load("direct", "s1")
    objects = (*load.objects[:-1], replace(load.objects[-1], whole=False))
    loads = [replace(load, objects=objects), make_load("proxied", "s1")]
    page = report.render(SETTINGS, loads, [], None)
    assert "1 of 10 objects did not arrive unchanged" in page
    assert "no picture was delegated" in page
    WellFormed().feed(report.render(SETTINGS, loads[:1], [], None))


@needs_root
@pytest.mark.slow(seconds=16)
def test_real_servers_send_pictures_of_one_page(tmp_path: Path) -> None:
    deployment(SETTINGS)
    environment = os.environ | {"FRONTAGE_DEMO_DIR": str(tmp_path), "QDSR": "1", "SEED": "5"}
    command = [sys.executable, "-m", "frontage_demo"]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    page = (tmp_path / "report.html").read_text()
    WellFormed().feed(page.replace("<img ", "<br "))
    for load in result["loads"]:
        assert load["failures"] == 0
        by_sender: Counter[str] = Counter(dict.fromkeys(load["bodies"], 0))
        for fetched in load["objects"]:
            by_sender[load["senders"][fetched["path"]]] += fetched["bytes"]
            assert 0 <= fetched["asked"] <= fetched["first"] <= fetched["end"]
        assert by_sender == load["bodies"], "the servers' metrics match the balancer's log and the client's bytes"
        for name, sent in load["bodies"].items():
            assert load["wire"][name] >= sent, "the switch counted the sender's packets"
            assert f"<td>{sent / 1e3:.0f}</td>" in page
        for fetched in load["objects"]:
            assert f"{fetched['path']}: {fetched['bytes']} bytes from {load['senders'][fetched['path']]}" in page
    direct, proxied = result["loads"][-2:]
    assert (direct["form"], proxied["form"]) == ("direct", "proxied")
    _, *real_servers = direct["bodies"]
    # On a busy machine the paths are established only after some requests, which the balancer then answers.
    assert any(direct["bodies"][name] for name in real_servers), "real servers send pictures to noq"
    assert not any(proxied["bodies"][name] for name in real_servers)
