# SPDX-License-Identifier: Apache-2.0
"""QUIC servers fetch cookie keys themselves over mutual TLS: no download breaks, and a server that was away catches up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.certificate import issue_certificate, make_authority
from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.datacentre.edge import METRICS, EdgeSwitch
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from quicclients import Client
from quicrounds import BROKEN, SIZE, Rounds, drops, wait_until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=60)]

CLIENTS = (Client("gtlsclient", follows=True), Client("aioquic", follows=True), Client("curl", follows=False))
SETTINGS = Settings(servers=3, clients=len(CLIENTS), policies=("cclb4",), bottleneck_rate=16_000_000, queue_delay=0.1)
ROUNDS = ("everybody", "without one", "catching up", "everybody again")
API = "https://localhost:9480"


class FollowingTestbed(QuicTestbed):
    """A testbed whose servers have key files of their own, which `frontage follow-keys` keeps current."""

    def __init__(self, settings: Settings, scratch: Path, edge: EdgeSwitch, parts: Deployment) -> None:
        super().__init__(settings, scratch, edge, parts.quic_agent, parts.h3_client)
        self._frontage = parts.controller
        self._followers: dict[int, subprocess.Popen[bytes]] = {}

    def own_keys(self, server: ServerAddresses) -> Path:
        return self.key_file.with_name(f"{server.name}-keys.toml")

    def _start(self, server: ServerAddresses, program: Path, configuration: str) -> None:
        shutil.copy(self.key_file, self.own_keys(server))
        super()._start(server, program, configuration.replace('"keys.toml"', f'"{self.own_keys(server).name}"'))

    def serve_api(self) -> None:
        """Have the controller serve its API to the servers' certificates."""
        folder = self.edge.config.parent
        make_authority(folder)
        grants = []
        for name in ("localhost", *(server.name for server in self.server_addresses)):
            issue_certificate(folder, name)
        for server in self.server_addresses:
            grants.append(f'[[certificates]]\nname = "{server.name}"\nserver = "{FILMS[0].server_name(server)}"\n')
        (folder / "grants.toml").write_text("\n".join(grants))
        tls = "{ certificate: localhost.pem, key: localhost.key, clients: ca.pem }"
        more = f"\napi:\n  listen: 127.0.0.1:9480\n  certificates: grants.toml\n  tls: {tls}\n"
        self.edge.write_configuration(self.edge.config.read_text() + more)

    def follow(self, server: ServerAddresses) -> None:
        """Start to follow the keys of a server."""
        reload = f"kill -HUP {self.server_pids[server.index]}"
        where = ["follow-keys", FILMS[0].server_name(server), "--output", self.own_keys(server), "--reload", reload]
        with (self.scratch / f"{server.name}-follower.log").open("ab") as log:
            command = [self._frontage, *self.identity(server), *where]
            self._followers[server.index] = subprocess.Popen(command, cwd=self.edge.config.parent, stdout=log, stderr=log)

    def identity(self, server: ServerAddresses) -> list[str]:
        """Return the options with which a server's machine identifies itself."""
        own = ["--certificate", f"{server.name}.pem", "--key", f"{server.name}.key"]
        return ["--server", API, "--authorities", "ca.pem", *own]

    def leave(self, server: ServerAddresses) -> None:
        """Stop to follow the keys of a server."""
        follower = self._followers.pop(server.index)
        follower.terminate()
        follower.wait()

    def held(self) -> dict[str, int]:
        """Return the newest key of each server, by name."""
        metrics = scrape(METRICS)
        servers = {server.name: FILMS[0].server_name(server) for server in self.server_addresses}
        return {name: int(metrics.total("frontage_server_key_id", server=server)) for name, server in servers.items()}

    def fetched_by_another(self) -> str:
        """Return the answer to the first server's certificate for the keys of the second."""
        first, second = self.server_addresses[:2]
        files = ["--cacert", "ca.pem", "--cert", f"{first.name}.pem", "--key", f"{first.name}.key"]
        url = f"{API}/v1/servers/{FILMS[0].server_name(second)}/keys"
        done = subprocess.run(["curl", "-s", *files, url], cwd=self.edge.config.parent, capture_output=True, text=True, timeout=30)
        return done.stdout

    def __exit__(self, *error: object) -> None:
        for server in self.server_addresses:
            if server.index in self._followers:
                self.leave(server)
        super().__exit__(*error)


def rotations(testbed: FollowingTestbed, rounds: Rounds) -> dict[str, Any]:
    """Rotate keys during downloads: with all servers, while one is away, and after it has caught up during others."""
    edge, away = testbed.edge, testbed.server_addresses[0]
    names = {server.name for server in testbed.server_addresses}
    found: dict[str, Any] = {"foreign": testbed.fetched_by_another()}

    def everybody() -> None:
        edge.frontage("rotate-key")
        assert testbed.held() == dict.fromkeys(names, 2), "the command waits for the servers"

    def without_one() -> None:
        testbed.leave(away)
        edge.frontage("rotate-key", "--wait", "2")
        wait_until(lambda: testbed.held() == dict.fromkeys(names, 3) | {away.name: 2}, "all other servers have the key")

    def catch_up() -> None:
        testbed.follow(away)
        wait_until(lambda: testbed.held() == dict.fromkeys(names, 3), "the server has caught up")

    def again() -> None:
        edge.frontage("rotate-key")

    for name, act in zip(ROUNDS, (everybody, without_one, catch_up, again), strict=True):
        found[name] = {"downloads": rounds.meanwhile(act), "drops": drops(testbed)}
        if name == "without one":
            try:
                edge.frontage("rotate-key")
            except RuntimeError as error:
                found["refusal"] = str(error)
    found["held"] = testbed.held()
    return found


def test_servers_fetch_rotated_keys(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)
    if missing := {client.missing for client in CLIENTS} - {None}:
        pytest.skip(f"missing HTTP/3 clients: {', '.join(sorted(missing))}")

    def body(box: Sandbox) -> object:
        edge = parts.edge(SETTINGS, box, services=FILMS)
        with FollowingTestbed(SETTINGS, box.scratch, edge, parts) as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()
            testbed.serve_api()
            for server in testbed.server_addresses:
                testbed.follow(server)
            wait_until(lambda: set(testbed.held().values()) == {1}, "all servers have the first key")
            return rotations(testbed, Rounds(testbed, CLIENTS))

    result = Sandboxed(body, tmp_path).result()
    assert "require the certificate of" in result["foreign"] and "secret" not in result["foreign"], result["foreign"]
    for name in ROUNDS:
        for done in result[name]["downloads"]:
            assert (done["status"], done["right"], done["wrong"]) == (0, True, []), (name, done)
        assert not BROKEN & result[name]["drops"].keys(), (name, result[name]["drops"])
    assert "do not have key 3 yet" in result["refusal"], result.get("refusal")
    assert set(result["held"].values()) == {4}
