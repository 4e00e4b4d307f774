# SPDX-License-Identifier: Apache-2.0
"""Clients of the API that identify themselves by certificates, and servers that fetch their keys."""

from __future__ import annotations

import asyncio
import shlex
import ssl
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from authorities import Authority
from conftest import QUIC_EXAMPLE, Switch
from frontage.api.client import Answer, RequestError, remote
from frontage.cli.follow_keys import FollowError, KeyFollower
from frontage.service import key_holders
from frontage.service.daemon import Service
from live import LIMIT, installed_service, until

GRANTS = """
[[certificates]]
name = "viewer.example"
may = "viewer"

[[certificates]]
name = "operator.example"
may = "operator"

[[certificates]]
name = "film1.example"
server = "film1"

[[certificates]]
name = "film2.example"
server = "film2"
"""
NAMES = ("viewer", "operator", "film1", "film2", "real3", "stranger")

Send = Callable[..., Awaitable[Any]]


@pytest.fixture
def secured(folder: Path, switch: Switch) -> Path:
    """A configuration whose API knows clients by their certificates."""
    return secure(QUIC_EXAMPLE, folder, switch)


def secure(example: Path, folder: Path, switch: Switch, more: str = "") -> Path:
    """Write the configuration ``example`` with an API that knows clients by their certificates, and ``more`` grants."""
    authority = Authority(folder)
    authority.issue("server", "127.0.0.1")
    for name in NAMES:
        authority.issue(name, f"{name}.example")
    (folder / "grants.toml").write_text(GRANTS + more)
    text = example.read_text().replace("127.0.0.1:9559", switch.address)
    text = text.replace("../../build", str(example.parents[2] / "build"))
    tls = "{ certificate: server.pem, key: server-key.pem, clients: ca.pem }"
    file = folder / "quic.yaml"
    file.write_text(f"{text}\napi:\n  listen: 127.0.0.1:0\n  certificates: grants.toml\n  tls: {tls}\n")
    return file


def sender(service: Service, folder: Path, name: str | None) -> Send:
    """Return a function that sends requests with the certificate ``name``."""
    address = service.api.address
    assert address is not None

    async def send(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        own = None if name is None else (folder / f"{name}.pem", folder / f"{name}-key.pem")
        async with remote(f"https://127.0.0.1:{address[1]}", LIMIT, None, folder / "ca.pem", own) as client:
            return await client.send(method, path, body, headers=headers)

    return send


async def refusal(send: Send, *request: Any) -> tuple[int | None, str]:
    with pytest.raises(RequestError) as caught:
        await send(*request)
    return caught.value.status, str(caught.value)


async def test_certificates_have_roles(secured: Path) -> None:
    folder = secured.parent
    async with installed_service(secured) as service:
        viewer, operator = sender(service, folder, "viewer"), sender(service, folder, "operator")
        drain = ("PATCH", "/servers/film2", {"state": "draining"})
        assert (await viewer("GET", "/status")).body["controller"]["phase"] == "installed"
        assert (await refusal(viewer, *drain))[0] == 403
        assert (await operator(*drain)).body["state"] == "succeeded"
        change = (await viewer("GET", "/history?limit=1")).body[0]
        assert (change["author"], change["origin"]) == ("certificate:operator.example", "127.0.0.1")
        (found,) = (await viewer("GET", "/status")).body["certificates"]
        assert (found["use"], found["error"], 0 < found["days_left"] <= 1) == ("api", None, True)
        status, why = await refusal(sender(service, folder, "stranger"), "GET", "/status")
        assert (status, "no role for the certificate of stranger.example" in why) == (401, True)
        assert (await refusal(sender(service, folder, None), "GET", "/status"))[0] == 401
        # A name that is removed from the file loses its access.
        (folder / "grants.toml").write_text(GRANTS.replace("viewer.example", "other.example"))
        await until(lambda: service.api._authentication._certificates is not None
                    and service.api._authentication._certificates.grant(["viewer.example"]) is None)  # fmt: skip
        assert (await refusal(viewer, "GET", "/status"))[0] == 401


async def test_unusable_certificates_are_refused_with_the_fix(secured: Path) -> None:
    folder = secured.parent
    authority = Authority(folder, "unknown")
    authority.issue("untrusted", "viewer.example")
    async with installed_service(secured) as service:
        status, why = await refusal(sender(service, folder, "untrusted"), "GET", "/status")
        assert status is None
        assert "compare its authority with api.tls.clients" in why
        address = service.api.address
        assert address is not None
        for authorities, host, expected in (
            ("unknown.pem", "127.0.0.1", "specify its authority with --authorities"),
            ("ca.pem", "localhost", "use a name in the certificate of the server"),
        ):
            with pytest.raises(RequestError, match=expected):
                async with remote(f"https://{host}:{address[1]}", LIMIT, "x", folder / authorities) as client:
                    await client.send("GET", "/status")
        Authority(folder, "late").issue("expired", "viewer.example", days=(-3, -1))
        with pytest.raises(RequestError, match=r"expired\.pem: the certificate expired on .*: renew it"):
            await sender(service, folder, "expired")("GET", "/status")
        # A new authority takes the place of the old one, whose clients are then refused.
        (folder / "ca.pem").write_bytes((folder / "unknown.pem").read_bytes())
        authority.issue("server", "127.0.0.1")
        await until(lambda: service.api._context is not None and "CN=unknown" in _authorities(service.api._context))
        assert (await sender(service, folder, "untrusted")("GET", "/status")).body["api"]["error"] is None
        assert (await refusal(sender(service, folder, "viewer"), "GET", "/status"))[0] is None


def _authorities(context: ssl.SSLContext) -> str:
    return ";".join("=".join(("CN", one["subject"][0][0][1])) for one in context.get_ca_certs())  # type: ignore[index]


async def test_a_server_reads_only_its_own_keys(secured: Path) -> None:
    folder = secured.parent
    async with installed_service(secured) as service:
        film1, film2 = sender(service, folder, "film1"), sender(service, folder, "film2")
        text = (await film1("GET", "/servers/film1/keys")).body
        assert "id = 1" in text
        for send, path in ((film2, "/servers/film1/keys"), (sender(service, folder, "operator"), "/servers/film1/keys")):
            status, why = await refusal(send, "GET", path)
            assert (status, "these keys require the certificate of film1" in why) == (403, True)
        for path in ("/status", "/keys/file", "/configuration", "/keys/holders"):
            assert (await refusal(film1, "GET", path))[0] == 403
        assert (await refusal(film2, "PUT", "/servers/film1/keys/held", {"id": 9}))[0] == 403


async def test_rotation_waits_for_servers_and_names_the_late(secured: Path) -> None:
    folder = secured.parent
    async with installed_service(secured) as service:
        film1, film2, operator = (sender(service, folder, name) for name in ("film1", "film2", "operator"))
        first = await film1("GET", "/servers/film1/keys")
        for name, send in (("film1", film1), ("film2", film2)):
            await send("PUT", f"/servers/{name}/keys/held", {"id": 1})
        waiting = asyncio.create_task(film1("GET", "/servers/film1/keys?wait=60", None, {"If-None-Match": first.etag}))
        await operator("POST", "/keys")
        async with asyncio.timeout(LIMIT):
            answer = await waiting
        assert "id = 2" in answer.body
        # The switch has had the key when the server gets it.
        assert [key.id for key in service.key_holders.published().keys] == [1, 2]
        await film1("PUT", "/servers/film1/keys/held", {"id": 2})
        found = (await operator("GET", "/keys/holders?wait=0.5")).body
        assert found == {"newest": 2, "servers": {"film1": 2, "film2": 1}, "late": ["film2"]}
        status, why = await refusal(operator, "POST", "/keys")
        assert (status, why.startswith("servers that do not have key 2 yet: film2")) == (409, True)
        assert (await operator("POST", "/keys?force=true")).body["installed"]
        (metric,) = service.key_holders.metrics()
        assert {sample.labels["server"]: sample.value for sample in metric.samples} == {"film1": 2, "film2": 1}


async def test_real_servers_get_keys_before_their_load_balancer(
    folder: Path, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = '[[certificates]]\nname = "real3.example"\nserver = "real3"\n'
    file = secure(QUIC_EXAMPLE.with_name("qdsr.yaml"), folder, switch, grant)
    async with installed_service(file) as service:
        send = {name: sender(service, folder, name) for name in ("film1", "film2", "real3", "operator")}

        async def newest(name: str) -> int:
            return int((await send[name]("GET", f"/servers/{name}/keys")).body.count("[[keys]]"))

        for name in ("film1", "film2", "real3"):
            assert await newest(name) == 1
            await send[name]("PUT", f"/servers/{name}/keys/held", {"id": 1})
        await send["operator"]("POST", "/keys")
        # The real server real3 responds for film2 only.
        assert [await newest(name) for name in ("film1", "film2", "real3")] == [2, 1, 2]
        await send["real3"]("PUT", "/servers/real3/keys/held", {"id": 2})
        assert await newest("film2") == 2
        # A real server that is down does not keep its load balancer from new keys.
        await send["real3"]("PUT", "/servers/real3/keys/held", {"id": 1})
        assert await newest("film2") == 1
        monkeypatch.setattr(key_holders, "REAL_SERVER_LEAD", 0.0)
        assert await newest("film2") == 2


async def test_the_command_follows_keys(secured: Path) -> None:
    folder = secured.parent
    output, reloads = folder / "keys.toml", folder / "reloads"
    async with installed_service(secured) as service:
        address = service.api.address
        assert address is not None
        options = ["--server", f"https://127.0.0.1:{address[1]}", "--authorities", "ca.pem"]
        options += ["--certificate", "film1.pem", "--key", "film1-key.pem"]
        reload = shlex.join(["sh", "-c", f"cat {output} >> {reloads}"])
        command = [sys.executable, "-m", "frontage", *options, "follow-keys", "film1", "-o", str(output), "--reload", reload]
        process = await asyncio.create_subprocess_exec(*command, cwd=folder)
        try:
            await until(lambda: service.key_holders.holders()["film1"] == 1)
            assert stat.S_IMODE(output.stat().st_mode) == 0o600
            operator = ["--certificate", "operator.pem", "--key", "operator-key.pem", "rotate-key", "--wait", "1"]
            rotation = await asyncio.create_subprocess_exec(
                *command[:7], *operator, "--force", cwd=folder, stderr=asyncio.subprocess.PIPE
            )
            _, messages = await rotation.communicate()
            # The other server does not fetch keys.
            assert b"do not have key 2 yet: film2" in messages.replace(b"film1, film2", b"film2")
            await until(lambda: service.key_holders.holders()["film1"] == 2)
            assert reloads.read_text().count("id = 2") == 1
        finally:
            process.terminate()
            await process.wait()


def test_a_server_that_does_not_read_the_keys_does_not_acknowledge(tmp_path: Path) -> None:
    sent: list[tuple[str, str]] = []
    readable = tmp_path / "readable"

    def send(method: str, path: str, _body: Any, _headers: dict[str, str]) -> Answer:
        sent.append((method, path))
        return Answer('[[keys]]\nid = 5\nsecret = "00"\n', '"version"')

    follower = KeyFollower("film1", tmp_path / "keys.toml", f"test -e {readable}", send)
    for _ in range(2):
        with pytest.raises(FollowError, match=r"--reload: test -e .* failed: status 1: start the server"):
            follower.step()
    assert {method for method, _ in sent} == {"GET"}
    readable.touch()
    follower.step()
    assert sent[-1] == ("PUT", "/servers/film1/keys/held")
