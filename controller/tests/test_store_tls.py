# SPDX-License-Identifier: Apache-2.0
"""TLS and credentials between controllers and a real NATS server."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats.aio.client import Client

from authorities import Authority
from frontage.config.store import NatsStore, NatsTls
from frontage.store.connection import Connection
from frontage.store.errors import StoreError
from frontage_testbed.ports import reserve_ports
from replicas import BINARY

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(BINARY is None, reason="no nats-server: run `make build/nats-server`, or set NATS_SERVER"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificates of a server and a client, and with the credentials of a user."""
    found = tmp_path_factory.mktemp("nats")
    authority = Authority(found)
    authority.issue("server", "127.0.0.1")
    authority.issue("controller", "controller.example")
    authority.issue("expired", "controller.example", days=(-3, -1))
    authority.issue("misnamed", "192.0.2.1")
    Authority(found, "unknown").issue("stranger", "controller.example")
    (found / "credentials").write_text("frontage:open sesame\n")
    (found / "wrong").write_text("frontage:guess\n")
    return found


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    yield from nats_server(folder, "server")


def nats_server(folder: Path, certificate: str) -> Iterator[int]:
    """Run a server that requires certificates and a password of its clients, and yield its port."""
    (port,) = reserve_ports(1)
    (folder / f"{certificate}.conf").write_text(f"""
        listen: "127.0.0.1:{port}"
        jetstream {{ store_dir: "{folder / certificate}" }}
        authorization {{ user: frontage, password: "open sesame" }}
        tls {{
            cert_file: "{folder / certificate}.pem", key_file: "{folder / certificate}-key.pem"
            ca_file: "{folder / "ca.pem"}", verify: true
        }}
    """)
    assert BINARY is not None
    environment = os.environ | {"GOMAXPROCS": "1"}
    with subprocess.Popen([BINARY, "-c", folder / f"{certificate}.conf"], stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.kill()


def wait_for(port: int) -> None:
    """Wait until the server listens; the time limit of the test bounds it."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def settings(
    folder: Path, port: int, *, certificate: str = "controller", authorities: str = "ca", credentials: str = "credentials"
) -> NatsStore:
    own = (folder / f"{certificate}.pem", folder / f"{certificate}-key.pem") if certificate else (None, None)
    tls = NatsTls(authorities=folder / f"{authorities}.pem", certificate=own[0], key=own[1])
    return NatsStore(servers=(f"tls://127.0.0.1:{port}",), replicas=1, credentials=folder / credentials, tls=tls)


async def test_controller_uses_a_store_over_mutual_tls(folder: Path, port: int) -> None:
    connection = await Connection.open(settings(folder, port))
    try:
        await connection.put("key", b"value")
        assert (await connection.get("key") or (b"", 0))[0] == b"value"
        await connection.append(b"line", 1, "first")
        assert await connection.line(1) == b"line"
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"certificate": ""}, "the servers require a client certificate"),
        ({"certificate": "stranger"}, "the servers do not know the authority of this client's certificate"),
        ({"certificate": "expired"}, "expired.pem: the certificate expired on "),
        ({"authorities": "unknown"}, "the authority of the server's certificate is unknown"),
        ({"credentials": "wrong"}, "the servers reject the credentials"),
    ],
)
async def test_faults_of_the_connection_name_the_fix(folder: Path, port: int, options: dict[str, str], expected: str) -> None:
    with pytest.raises(StoreError) as caught:
        await Connection.open(settings(folder, port, **options))
    assert expected in str(caught.value)


async def test_client_that_ignores_the_timeout_gives_up(folder: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    select = Client._select_next_server

    async def ignore_cancellation(client: Client) -> None:
        try:
            await select(client)
        except asyncio.CancelledError:
            raise OSError("interrupted") from None

    monkeypatch.setattr(Client, "_select_next_server", ignore_cancellation)
    with pytest.raises(StoreError, match="the servers reject the credentials"):
        await Connection.open(settings(folder, port, credentials="wrong"))


async def test_misnamed_server_is_refused(folder: Path) -> None:
    for port in nats_server(folder, "misnamed"):
        with pytest.raises(StoreError, match="the server's certificate is for another name"):
            await Connection.open(settings(folder, port))
