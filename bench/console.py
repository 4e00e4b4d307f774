# SPDX-License-Identifier: Apache-2.0
"""The web console in Chromium with 50 VIPs and 4,096 servers.

Time from the request of the page to all rows of the overview and of a VIP, samples per second that each view shows, and the
memory of the page's objects after a minute.
"""

from __future__ import annotations

import time

from playwright.sync_api import Page

from api import controller
from frontage_testbed.chromium import browser
from rows import Row, finish, row

VIPS, SERVERS = 50, 4096
SECONDS = 20.0
"""Duration of each count of updates."""
LIMIT = 120_000.0


def updates(page: Page, path: str) -> float:
    """Return the samples per second that the page reads from a path."""
    seen = 0

    def count(response: object) -> None:
        nonlocal seen
        seen += getattr(response, "url", "").endswith(path)

    page.on("response", count)
    began = time.monotonic()
    page.wait_for_timeout(SECONDS * 1000)
    page.remove_listener("response", count)
    return seen / (time.monotonic() - began)


def run() -> list[Row]:
    found = []
    with controller(VIPS, SERVERS) as (url, token), browser(1400, 900) as context:
        page = context.pages[0]
        page.set_default_timeout(LIMIT)
        began = time.monotonic()
        page.goto(f"{url}/console/#token={token}")
        rows = page.get_by_label("VIPs", exact=True).locator("tbody tr")
        rows.nth(VIPS - 1).wait_for()
        found.append(row("console_first_view", time.monotonic() - began, "s"))
        found.append(row("console_overview_updates", updates(page, "/v1/samples"), "samples/s"))
        began = time.monotonic()
        page.evaluate("location.hash = '#/vips/v0'")
        page.locator("tr[data-server]").nth(SERVERS // VIPS - 1).wait_for()
        found.append(row("console_vip_view", time.monotonic() - began, "s"))
        found.append(row("console_vip_updates", updates(page, "/v1/samples/vips/v0"), "samples/s"))
        page.wait_for_timeout(SECONDS * 1000)
        session = context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"]
        found.append(row("console_memory", heap / 1e6, "MB"))
    return found


if __name__ == "__main__":
    finish(run)
