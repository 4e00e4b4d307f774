# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures of docs/console.md: `python -m frontage_demo.screenshots --docs docs`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from frontage_testbed.chromium import browser
from frontage_testbed.datacentre.deployment import DeploymentError, find
from frontage_testbed.datacentre.livenetwork import LiveNetwork, live_network
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.manysites import controller_of_many_sites
from frontage_testbed.nodes import NodeError

SETTINGS = Settings(servers=8, policies=("hash",), load=0.8)
VIP = "web"
WATCHED = 20_000.0
"""Milliseconds for which charts fill before a picture."""
AFTER = 12_000.0
"""Milliseconds after a change of the policy."""
SETTLED = 5_000.0
"""Milliseconds after which the switch has caught up after tracing packets."""


def take(network: LiveNetwork, folder: Path) -> None:
    """Take the pictures of a data centre."""
    with browser(1400, 900) as context:
        page = context.pages[0]
        page.goto(network.link)
        page.wait_for_timeout(WATCHED)
        _picture(page, folder / "overview.png")
        _show(page, f"vips/{VIP}")
        page.wait_for_timeout(WATCHED)
        page.get_by_role("combobox", name="Policy").select_option("cclb4")
        page.get_by_role("button", name="Apply to new connections").click()
        page.wait_for_timeout(AFTER)
        page.get_by_role("button", name="Drain s3-web").click()
        page.wait_for_timeout(AFTER)
        _picture(page, folder / "vip.png")
        _show(page, "flow")
        page.get_by_label("Address, client:port").fill("198.51.100.7:40000")
        page.get_by_role("combobox", name="VIP", exact=True).select_option(VIP)
        page.get_by_role("button", name="Explain").click()
        page.get_by_text("belongs to SID").wait_for()
        _picture(page, folder / "flow.png")
        _show(page, "packet")
        page.get_by_label("To the VIP").select_option(VIP)
        page.get_by_role("button", name="Follow", exact=True).click()
        page.get_by_role("region", name="What happened").wait_for()
        page.wait_for_timeout(SETTLED)
        page.set_viewport_size({"width": 1400, "height": 1500})
        page.screenshot(path=folder / "packet.png")
        page.set_viewport_size({"width": 1400, "height": 900})
        _show(page, "history")
        page.locator(".toggle").first.click()
        page.locator(".toggle").nth(1).click()
        page.wait_for_timeout(500)
        _picture(page, folder / "history.png")
    with browser(400, 860, dark=True) as context:
        page = context.pages[0]
        page.goto(network.link)
        page.wait_for_timeout(WATCHED)
        page.screenshot(path=folder / "overview-phone.png")
        _show(page, f"vips/{VIP}")
        page.wait_for_timeout(AFTER)
        page.screenshot(path=folder / "vip-phone.png")


def take_sites(link: str, folder: Path) -> None:
    """Take the picture of several sites, with the console that ``link`` opens."""
    with browser(1400, 900) as context:
        page = context.pages[0]
        page.goto(link)
        _show(page, "sites")
        page.locator("figcaption").wait_for()
        page.wait_for_timeout(SETTLED)
        page.screenshot(path=folder / "sites.png")


def _show(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = `#/${view}` }", view)


def _picture(page: Page, file: Path) -> None:
    page.screenshot(path=file, full_page=True)


def main() -> int:
    """Run a controller of several sites and a data centre, and take the pictures."""
    arguments = argparse.ArgumentParser(prog="frontage_demo.screenshots", description=__doc__)
    arguments.add_argument("--docs", type=Path, required=True, help="the pictures are in console/ below this folder")
    docs: Path = arguments.parse_args().docs
    try:
        pictures = docs / "console"
        pictures.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder, controller_of_many_sites(Path(folder)) as link:
            take_sites(link, pictures)
        with tempfile.TemporaryDirectory() as folder, live_network(SETTINGS, find(SETTINGS), Path(folder)) as network:
            take(network, pictures)
    except (DeploymentError, NodeError) as error:
        print(f"frontage screenshots: {error}", file=sys.stderr)
        return 2
    print(f"wrote {docs / 'console'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
