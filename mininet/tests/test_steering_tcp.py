# SPDX-License-Identifier: Apache-2.0
"""A TCP service at two sites: curl and nginx, with the kernel's TCP, over Artemis' testbed.

Anycast leads one of the two clients to the far site, whose switch steers its connections to the near one.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.artemis.programs import find
from frontage_demo.artemis.scenarios import Published, Scenario
from frontage_demo.artemis.siteconfig import TCP_SERVER_PORT
from frontage_demo.artemis.testbed import ArtemisTestbed
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.datacentre.servers import NGINX, OBJECTS, PACED, configured
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.wan.addresses import PORT
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=40)]

TOKYO, FRANKFURT = "ap-northeast-1", "eu-central-1"
SCENARIO = Scenario(
    "tcp", "TCP", (TOKYO, FRANKFURT), Published((0, 0, 0), (0, 0, 0), 0.5, 0.0), {"Japan": TOKYO, "Germany": FRANKFURT}
)
LIMIT = 60.0
SHORT, LONG = 1_000, 600_000
PACE = 100_000
"""The rate of a paced response in bytes per second, so that a long one lasts several seconds."""


class Pages:
    """nginx with the agent at each site."""

    def __init__(self, testbed: ArtemisTestbed, box: Sandbox, agent: Path) -> None:
        self._testbed = testbed
        self._processes = []
        for location in SCENARIO.sites:
            folder = box.scratch / location
            objects = folder / "objects"
            objects.mkdir(parents=True)
            for size in (SHORT, LONG):
                (objects / str(size)).write_bytes(location[:1].encode() * size)
            host = testbed.server(location)
            command = [
                agent,
                "attach",
                "--netns",
                f"/proc/{host.pid}/ns/net",
                "--interface",
                "eth0",
                "--port",
                str(TCP_SERVER_PORT),
            ]
            command += ["--pin-dir", box.bpf / location, "--look-ahead", "10000b", "--bandwidth", "100mbit"]
            subprocess.run(command, check=True, timeout=LIMIT)
            configuration = folder / "nginx.conf"
            configuration.write_text(configured(folder, location, folder, port=TCP_SERVER_PORT, pace=PACE))
            with (folder / "log").open("wb") as log:
                self._processes.append(host.spawn([NGINX, "-c", configuration, "-e", folder / "log"], stdout=log, stderr=log))

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def url(self, path: str) -> str:
        return f"http://[{self._testbed.service_address}]:{PORT}{path}"

    def get(self, client: str) -> str:
        """Return the site that serves a new connection."""
        command = ["curl", "--silent", "--fail", "--retry", "20", "--retry-connrefused", "--max-time", "20", "--head"]
        head = self._testbed.client(client).run([*command, self.url(f"{OBJECTS}/{SHORT}")], timeout=LIMIT).stdout
        return next(line.split()[1] for line in head.splitlines() if line.lower().startswith("x-server"))

    def open(self, client: str, file: Path) -> "subprocess.Popen[bytes]":
        """Begin a paced download, and return its process once data has arrived."""
        command = ["curl", "--silent", "--fail", "--no-buffer", "--output", file, self.url(f"{PACED}/{LONG}")]
        process = self._testbed.client(client).spawn(command)
        deadline = time.monotonic() + LIMIT
        while not file.exists() or not file.stat().st_size:
            assert time.monotonic() < deadline and process.poll() is None, f"{client}: the download does not begin"
            time.sleep(0.05)
        return process


def played(testbed: ArtemisTestbed, pages: Pages, scratch: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {"routes": {name: testbed.routes[location] for name, location in SCENARIO.clients.items()}}
    seen["first"] = {client: pages.get(client) for client in SCENARIO.clients}
    # A client without timestamps does not echo a cookie, so the mapping alone leads all of its segments.
    for client in SCENARIO.clients:
        testbed.client(client).run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_timestamps"])
    seen["without timestamps"] = {client: pages.get(client) for client in SCENARIO.clients}
    for client in SCENARIO.clients:
        testbed.client(client).run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_timestamps"])
    # During downloads, Frankfurt leaves the mapping. Its connections stay.
    files = {client: scratch / f"{client}.bin" for client in SCENARIO.clients}
    processes = {client: pages.open(client, file) for client, file in files.items()}
    testbed.remap({FRANKFURT}, 1)
    testbed.site(FRANKFURT).write(testbed.mapping({FRANKFURT}), 1)
    testbed.site(FRANKFURT).apply()
    seen["unfinished"] = [client for client, process in processes.items() if process.poll() is None]
    seen["moved"] = {client: pages.get(client) for client in SCENARIO.clients}
    seen["rc"] = {client: process.wait(LIMIT) for client, process in processes.items()}
    seen["content"] = {client: [sorted(set(file.read_bytes().decode())), file.stat().st_size] for client, file in files.items()}
    seen["steered"] = {location: testbed.site(location).outcomes() for location in SCENARIO.sites}
    return seen


def test_tcp_connections_stay_at_the_site_where_they_began(tmp_path: Path) -> None:
    try:
        programs = find()
    except DeploymentError as error:
        pytest.skip(str(error))
    agent = deployment(Settings()).agent

    def body(box: Sandbox) -> dict[str, Any]:
        with ArtemisTestbed(SCENARIO, programs, box.scratch / "testbed", seed=1, tcp=True) as testbed:
            pages = Pages(testbed, box, agent)
            try:
                return played(testbed, pages, box.scratch)
            finally:
                pages.stop()

    seen = Sandboxed(body, tmp_path).result()
    print(seen)
    (far,) = set(seen["routes"].values())
    near = dict(SCENARIO.clients)
    assert seen["first"] == near
    assert seen["without timestamps"] == near
    assert sorted(seen["unfinished"]) == sorted(near)
    assert seen["moved"] == dict.fromkeys(near, TOKYO)
    assert seen["rc"] == dict.fromkeys(near, 0)
    assert seen["content"] == {client: [[location[:1]], LONG] for client, location in near.items()}
    assert seen["steered"][far]["steered-site"] > 0
    assert seen["steered"][far]["steered-cookie"] > 0
