# SPDX-License-Identifier: Apache-2.0
"""The views of the console about several sites and about hand-off, in a real Chromium with a real controller."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from frontage.api.access import Role
from frontage.mapping.demand.moves import SiteStage, Stage
from frontage.mapping.store.store import Store
from frontage.tokens import generate
from frontage_testbed.chromium import browser, is_installed
from frontage_testbed.ports import reserve_ports
from frontage_testbed.programs import REPOSITORY
from test_console import opened, show
from testbeds import needs_root

pytestmark = [
    pytest.mark.slow(seconds=40),
    pytest.mark.skipif(not is_installed(), reason="needs Chromium: install the package chromium"),
    pytest.mark.timeout(300),
]

EXAMPLE = REPOSITORY / "controller" / "examples" / "artemis.yaml"
SERVICE = "films.example"


def test_sites_show_mapping_and_moves(tmp_path: Path) -> None:
    file = with_computed_mapping(tmp_path)
    with switch(tmp_path), controller(file) as link, browser(1400, 900) as context:
        page = opened(context, link)
        show(page, "sites")
        expect(page.get_by_role("region", name="Sites")).to_contain_text("tokyo")
        row = page.locator(f"tr[data-service='{SERVICE}']")
        expect(row).to_contain_text("frankfurt leaving")
        expect(row).to_contain_text("tokyo starting")
        expect(row).to_contain_text("decided in epoch 7, not active yet")
        expect(row).to_contain_text("add tokyo and remove frankfurt: begun")


def with_computed_mapping(folder: Path) -> Path:
    """Write the configuration of a site whose mapping is computed, and a store in which a service moves."""
    store = f"sqlite:///{folder}/mapping.db"
    token, entry = generate("operator", Role.OPERATOR)
    (folder / "tokens.toml").write_text(f"{entry}\n")
    (folder / "token").write_text(token)
    (port,) = reserve_ports(1)
    text = EXAMPLE.read_text().replace("127.0.0.1:9559 ", f"unix:{folder}/switch.sock").replace("../..", str(REPOSITORY))
    text = re.sub(r"(?m)^mapping:.*$", "", text)
    text += f"""
end_users: {{ store: "{store}" }}
placement:
  services: [{{ name: {SERVICE} }}]
  sites: [{{ site: 1, capacity: 100 }}, {{ site: 2, capacity: 100 }}]
  min_replicas: 1
  drain: 3600
api: {{ listen: "127.0.0.1:{port}", tokens: tokens.toml }}
"""
    file = folder / "artemis.yaml"
    file.write_text(text)
    write_move(store)
    return file


def write_move(store: str) -> None:
    """Write a move that has begun, as the placing controller writes it."""
    found, holder, now = Store(store, window=300.0), "1@test", time.time()
    lease = found.acquire_lease(holder, now, 0.0)
    assert lease is not None
    stages = {1: SiteStage(Stage.LEAVING, now), 2: SiteStage(Stage.STARTING, now)}
    change = {"added": [2], "removed": [1], "begun": True}
    document = {"service": SERVICE, "number": 7, "epoch": now, "handshakes_per_second": 12.0, "active": [1], "next": change}
    document |= {"move": {"shown": 6, "decided": 7, "active": None}, "since": 0, "heard": {}, "news": False, "asked": None}
    with found.publishing(holder, lease) as (connection, version):
        found.write_placement(connection, version, SERVICE, {}, stages)
        found.write_documents(connection, version, {SERVICE: document})
    found.close()


@contextmanager
def switch(folder: Path) -> Iterator[None]:
    words = [REPOSITORY / "target" / "release" / "softswitch", "--no-p4", "--device-id", "1", "--", "--cpu-port", "510"]
    with (folder / "switch.log").open("wb") as log:
        process = subprocess.Popen([*words, "--grpc-server-addr", f"unix:{folder}/switch.sock"], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def controller(file: Path) -> Iterator[str]:
    """Run a controller, and return the address of the console that logs in."""
    with (file.parent / "controller.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "frontage", "up", file], stdout=log, stderr=log)
    try:
        log_file = file.parent / "controller.log"
        while (found := re.search(r"serving the API at (\S+)", log_file.read_text())) is None:
            assert process.poll() is None, log_file.read_text()
            time.sleep(0.1)
        yield f"{found[1]}/console/#token={(file.parent / 'token').read_text()}"
    finally:
        process.kill()
        process.wait()


@needs_root
def test_handoff_shows_real_servers_of_the_demo(tmp_path: Path) -> None:
    with page_demo(tmp_path) as link, browser(1400, 900) as context:
        page = opened(context, link)
        show(page, "handoff")
        rows = page.get_by_role("group", name=re.compile("Real servers of ")).locator("tbody tr")
        expect(rows).to_have_count(2)
        for row in (rows.nth(0), rows.nth(1)):
            expect(row.locator("td").last).to_contain_text(re.compile(r"[1-9].* packets"))


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
