# SPDX-License-Identifier: Apache-2.0
"""An unmodified Chromium learns from an HTTPS record that a service has HTTP/3, and is steered by its address."""

import time
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.artemis.names import ZONE
from frontage_demo.artemis.programs import find
from frontage_demo.artemis.scenarios import Published, Scenario
from frontage_demo.artemis.testbed import ArtemisTestbed
from frontage_testbed import chromium
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.load import browsers
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.wan.addresses import PORT
from testbeds import Sandboxed, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=30)]

TOKYO, FRANKFURT = "ap-northeast-1", "eu-central-1"
# Anycast leads one of the two clients to the far site.
SCENARIO = Scenario(
    "https", "HTTPS", (TOKYO, FRANKFURT), Published((0, 0, 0), (0, 0, 0), 0.5, 0.0), {"Japan": TOKYO, "Germany": FRANKFURT}
)
PAGE = "<!doctype html><title>films</title><p>Films of the day</p>"
LIMIT = 60.0


def opened(testbed: ArtemisTestbed, client: str, scratch: Path) -> dict[str, Any]:
    """Open the page in a new browser of a client, and return what it shows and which sites served it."""
    resolver = scratch / f"{client}.conf"
    resolver.write_text(f"nameserver {testbed.resolver(client)}\n")
    site = browsers.Site(ZONE, ZONE, PORT, testbed.directory / "certificate.pem", learns_quic=True)
    command = [*browsers.chromium(chromium.PROGRAM, scratch / f"{client}.profile", site), "--dump-dom", f"https://{ZONE}/page.html"]
    before = {location: requests(testbed, location) for location in SCENARIO.sites}
    done = testbed.client(client).run([*browsers.with_resolver(resolver), *command], timeout=LIMIT)
    deadline = time.monotonic() + LIMIT
    while not (served := [location for location in SCENARIO.sites if requests(testbed, location) > before[location]]):
        assert time.monotonic() < deadline, done.stdout
        time.sleep(0.1)
    return {"page": done.stdout, "sites": served}


def requests(testbed: ArtemisTestbed, location: str) -> int:
    """Return how often the replica of a site served the page."""
    log = testbed.site(location).access_log
    return log.read_text().count("/page.html") if log.exists() else 0


def test_chromium_follows_the_https_record(tmp_path: Path) -> None:
    if not chromium.is_installed():
        pytest.skip("Chromium is missing: apt-get install chromium")
    try:
        programs = find()
    except DeploymentError as error:
        pytest.skip(str(error))

    def body(box: Sandbox) -> dict[str, Any]:
        with ArtemisTestbed(SCENARIO, programs, box.scratch / "testbed", seed=1) as testbed:
            (testbed.directory / "objects" / "page.html").write_text(PAGE)
            return {client: opened(testbed, client, box.scratch) for client in SCENARIO.clients}

    seen = Sandboxed(body, tmp_path).result()
    print(seen)
    for client, location in SCENARIO.clients.items():
        # The service has no VIP of TCP, so the browser shows the page only if it began with HTTP/3.
        assert "<p>Films of the day</p>" in seen[client]["page"]
        assert seen[client]["sites"] == [location]
