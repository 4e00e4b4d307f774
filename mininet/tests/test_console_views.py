# SPDX-License-Identifier: Apache-2.0
"""The views of the console about several sites and about hand-off, in a real Chromium with a real controller."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from frontage_testbed.chromium import browser, is_installed
from frontage_testbed.manysites import MOVING, PLANNED, controller_of_many_sites
from frontage_testbed.programs import REPOSITORY
from test_console import opened, show, violations
from testbeds import needs_root

pytestmark = [
    pytest.mark.slow(seconds=25),
    pytest.mark.skipif(not is_installed(), reason="needs Chromium: install the package chromium"),
    pytest.mark.timeout(300),
]

WIDTHS = (1400, 400)


def test_sites_show_mapping_and_moves(tmp_path: Path) -> None:
    with controller_of_many_sites(tmp_path) as link, browser(1400, 900) as context:
        page = opened(context, link)
        show(page, "sites")
        expect(page.get_by_role("region", name="Sites")).to_contain_text("tokyo")
        row = page.locator(f"tr[data-service='{MOVING}']")
        expect(row).to_contain_text("frankfurt leaving")
        expect(row).to_contain_text("tokyo starting")
        expect(row).to_contain_text("decided in epoch 7, not active yet")
        expect(row).to_contain_text("add tokyo and remove frankfurt: begun")
        expect(page.locator(f"tr[data-service='{PLANNED}']")).to_contain_text("add sao-paulo")


def test_map_shows_sites_shares_and_moves(tmp_path: Path) -> None:
    with controller_of_many_sites(tmp_path) as link:
        for width in WIDTHS:
            with browser(width, 900, dark=width == WIDTHS[-1]) as context:
                check_map(opened(context, link), width)


def test_map_shows_sites_that_are_out_and_needs_locations(tmp_path: Path) -> None:
    with controller_of_many_sites(tmp_path) as link, browser(1400, 900) as context:
        page = opened(context, link)
        change_sites(page, {"out": True}, {"location": None})
        show(page, "sites")
        expect(page.locator(".site.out")).to_have_attribute("data-site", "frankfurt")
        expect(page.locator(".site")).to_have_count(4)
        expect(page.get_by_role("region", name="Map", exact=True)).to_contain_text("4 of 5 sites have a location")
        expect(page.get_by_role("row", name="frankfurt").first).to_contain_text("out")
        change_sites(page, *[{"location": None}] * 5)
        expect(page.get_by_role("region", name="Map", exact=True)).to_have_count(0)
        expect(page.get_by_role("region", name="Sites")).to_contain_text("this page shows a map")


def change_sites(page: Page, *changes: dict[str, object]) -> None:
    """Change the first sites in the answers of the controller."""

    def answer(route: Route) -> None:
        found = route.fetch()
        body = found.json()
        for site, change in zip(body["sites"], changes, strict=False):
            site |= change
        route.fulfill(response=found, json=body)

    page.route("**/v1/sites", answer)


def check_map(page: Page, width: int) -> None:
    show(page, "sites")
    picture = page.get_by_role("img", name=re.compile("^Map: "))
    # The shares are known once the controller has computed the mapping.
    expect(picture).to_have_accessible_name(re.compile(r"frankfurt \(here\), \d\d.%.*sao-paulo"))
    centres = {name: centre(page, name) for name in ("frankfurt", "tokyo", "montreal", "sao-paulo", "singapore")}
    by_longitude = sorted(centres, key=lambda name: centres[name][0])
    assert by_longitude == ["montreal", "sao-paulo", "frankfurt", "singapore", "tokyo"]
    by_latitude = sorted(centres, key=lambda name: centres[name][1])
    assert by_latitude == ["frankfurt", "montreal", "tokyo", "singapore", "sao-paulo"]
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > width / 2
    assert all(box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"] for x, y, _ in centres.values())
    assert max(centres, key=lambda name: centres[name][2]) == "frankfurt"
    expect(picture.locator(".site.own")).to_have_attribute("data-site", "frankfurt")
    expect(picture.locator(".move")).to_have_count(2)
    expect(picture.locator(".move.planned title")).to_have_text(f"{PLANNED}: montreal → sao-paulo, planned")
    expect(page.locator("figcaption")).to_contain_text(f"{MOVING}: frankfurt → tokyo")
    assert violations(page) == []


def centre(page: Page, site: str) -> tuple[float, float, float]:
    """Return the centre of a site's circle, and its radius, in pixels of the window."""
    box = page.locator(f".site[data-site='{site}'] circle:not(.ring)").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 2


@needs_root
def test_handoff_shows_packets_and_streams_of_real_servers(tmp_path: Path) -> None:
    with page_demo(tmp_path) as link:
        with browser(1400, 900) as context:
            page = opened(context, link)
            show(page, "handoff")
            rows = rows_of(page)
            expect(rows).to_have_count(2)
            columns = page.locator("main thead th").all_inner_texts()
            for row in (rows.nth(0), rows.nth(1)):
                cells = row.locator("th, td")
                # The client loads the page again and again.
                for column in ("packets", "completed", "streams/s"):
                    expect(cells.nth(columns.index(column))).to_have_text(re.compile("[1-9]"))
                for column in ("in progress", "aborted", "rejected", "resumed"):
                    expect(cells.nth(columns.index(column))).to_have_text(re.compile("^[0-9]"))
            expect(page.locator("main .note")).to_have_count(0)
            (balancer,) = servers(link, "films6")
            assert (balancer["agent"]["error"], balancer["agent"]["unmatched"]) == (None, [])
            assert all(real_server["streams"]["body_bytes"] > 0 for real_server in balancer["real_servers"])
        for width, dark in ((1400, True), (400, False), (400, True)):
            with browser(width, 900, dark=dark) as context:
                page = opened(context, link)
                show(page, "handoff")
                expect(rows_of(page)).to_have_count(2)
                assert violations(page) == []
                assert page.evaluate("document.documentElement.scrollWidth") <= width


def rows_of(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile("Real servers of ")).locator("tbody tr")


def servers(link: str, vip: str) -> list[dict[str, Any]]:
    """Return the servers of a sample, from the API that a link to the console logs in to."""
    address, _, token = link.partition("/console/#token=")
    request = urllib.request.Request(f"{address}/v1/samples/vips/{vip}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: list[dict[str, Any]] = json.load(answer)["servers"]
        return found


@contextmanager
def page_demo(folder: Path) -> Iterator[str]:
    """Run the demo with real servers until the caller is done, and return the address of the console that it prints."""
    environment = os.environ | {"QDSR": "1", "SERVERS": "3", "KEEP": "1", "FRONTAGE_DEMO_DIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "frontage_demo"], cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        printed = []
        for line in process.stdout:
            printed.append(line)
            if (found := re.search(r"Console: (\S+)", line)) is not None:
                yield found[1]
                break
        else:
            raise AssertionError("".join(printed))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
