# SPDX-License-Identifier: Apache-2.0
"""The HTTP API: without a controller, and of running controllers over both kinds of sockets."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import EXAMPLE
from frontage.api import access
from frontage.api.access import Role
from frontage.api.app import Shared, application
from frontage.api.client import RequestError, local, remote
from frontage.api.events import BEHIND, Events
from frontage.api.offline import Offline
from frontage.service.changes import user_name
from frontage.service.daemon import Service
from frontage.stamps import stamp
from frontage.tokens import generate
from live import LIMIT, installed_service, until

LOCAL = ("0", 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(EXAMPLE, tmp_path / "demo.yaml"))


@pytest.fixture
async def offline(file: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API without a controller."""
    app = application(Shared(Offline(file)), access.local)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=LOCAL), base_url="http://test/v1") as client:
        yield client


async def test_objects_can_be_listed_and_filtered(offline: httpx.AsyncClient) -> None:
    async def names(path: str) -> list[str]:
        return [item["name"] for item in (await offline.get(path)).json()]

    assert await names("/vips") == ["shop", "shop6"]
    assert await names("/vips?policy=hash") == []
    assert await names("/servers?vip=shop&state=draining") == ["web4"]
    assert await names("/devices") == ["switch"]
    server = (await offline.get("/servers/web3")).json()
    assert (server["sid"], server["weight"], server["state"]) == (3, 2, "active")
    assert (await offline.get("/keys")).json() == [{"id": 1, "epoch": 1, "seals": True}]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("GET", "/servers/web9", None, 404, 'unknown server "web9": use one of: web1, web2'),
        ("PATCH", "/servers/web9", {"weight": 2}, 404, 'unknown server "web9"'),
        ("PATCH", "/servers/web1", {}, 422, "set state, weight or both"),
        ("PATCH", "/servers/web1", {"stat": "active"}, 422, "Extra inputs are not permitted"),
        ("PATCH", "/vips/shop", {"alpha": 2}, 422, "less than or equal to 1"),
        (
            "POST",
            "/servers",
            {"name": "web1", "vip": "shop", "address": "10.0.0.99", "port": 80},
            422,
            'duplicate server name "web1"',
        ),
        ("POST", "/servers", {"name": "web9", "vip": "shop", "address": "nowhere", "port": 80}, 422, "invalid IP address"),
        ("GET", "/routes/198.51.100.7", None, 503, "no controller is running: run `frontage up "),
        ("POST", "/installation", None, 503, "no controller is running"),
        ("GET", "/history/5", None, 404, "unknown change 5"),
        ("GET", "/nothing", None, 404, "Not Found"),
    ],
)
async def test_errors_are_problem_details(
    offline: httpx.AsyncClient, file: Path, method: str, path: str, body: Any, status: int, detail: str
) -> None:
    before = file.read_text()
    answer = await offline.request(method, path, json=body)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem["status"] == status
    assert detail in problem["detail"]
    assert file.read_text() == before


async def test_entity_tags(offline: httpx.AsyncClient) -> None:
    first = await offline.get("/servers/web1")
    tag = first.headers["ETag"]
    assert (await offline.get("/servers/web1", headers={"If-None-Match": tag})).status_code == 304
    # A change of another server does not matter.
    assert (await offline.patch("/servers/web2", json={"weight": 7})).status_code == 200
    assert (await offline.patch("/servers/web1", json={"weight": 5}, headers={"If-Match": tag})).status_code == 200
    stale = await offline.patch("/servers/web1", json={"weight": 6}, headers={"If-Match": tag})
    assert stale.status_code == 412
    assert "the server web1 has changed since you read it" in stale.json()["detail"]
    assert (await offline.get("/servers/web1")).json()["weight"] == 5
    assert (await offline.patch("/servers/web1", json={"weight": 6}, headers={"If-Match": "*"})).status_code == 200


async def test_replacing_the_configuration_requires_its_entity_tag(offline: httpx.AsyncClient, file: Path) -> None:
    found = await offline.get("/configuration")
    assert found.text == file.read_text()
    changed = found.text.replace("alpha: 0.5", "alpha: 0.25")
    missing = await offline.put("/configuration", content=changed)
    assert missing.status_code == 428
    tag = {"If-Match": found.headers["ETag"]}
    assert (await offline.put("/configuration", content=changed, headers=tag)).status_code == 200
    assert file.read_text() == changed
    assert (await offline.put("/configuration", content=changed, headers=tag)).status_code == 412
    wrong = await offline.put("/configuration", content=changed.replace("sid: 3", "sid: 2"), headers={"If-Match": "*"})
    assert wrong.status_code == 422
    (place,) = wrong.json()["problems"]
    assert (place["path"], place["what"]) == (["servers", 2, "sid"], "duplicate sid 2")
    assert file.read_text() == changed
    assert (await offline.put("/configuration", content=b"\xff", headers={"If-Match": "*"})).status_code == 422


async def test_an_invalid_file_can_be_replaced(offline: httpx.AsyncClient, file: Path) -> None:
    good = file.read_text()
    file.write_text("no: configuration")
    assert (await offline.patch("/servers/web1", json={"weight": 2})).status_code == 422
    assert (await offline.put("/configuration", content=good, headers={"If-Match": "*"})).status_code == 200
    assert file.read_text() == good


async def test_a_repeated_request_with_the_same_key_changes_once(offline: httpx.AsyncClient, file: Path) -> None:
    new = {"name": "web9", "vip": "shop", "address": "10.0.0.99", "port": 8080}
    key = {"Idempotency-Key": "add-web9"}
    first = await offline.post("/servers", json=new, headers=key)
    assert first.json()["number"] == 2
    again = await offline.post("/servers", json=new, headers=key)
    assert again.json() == first.json()
    other = await offline.post("/servers", json=new | {"port": 8081}, headers=key)
    assert other.status_code == 422
    assert "belongs to a different change" in other.json()["detail"]
    # Another process knows the key from the journal.
    app = application(Shared(Offline(file)), access.local)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=LOCAL), base_url="http://test/v1") as later:
        repeated = await later.post("/servers", json=new, headers=key)
        assert (repeated.status_code, repeated.json()["number"]) == (200, 2)
    assert file.read_text().count("web9") == 1


async def test_a_request_that_changed_nothing_can_be_repeated_with_its_key(offline: httpx.AsyncClient) -> None:
    new = {"name": "web2", "vip": "shop", "address": "10.0.0.99", "port": 8080, "sid": 99}
    key = {"Idempotency-Key": "add-web2"}
    assert (await offline.post("/servers", json=new, headers=key)).status_code == 422
    assert (await offline.delete("/servers/web2")).status_code == 200
    again = await offline.post("/servers", json=new, headers=key)
    assert (again.status_code, again.json()["number"]) == (200, 3)
    assert (await offline.post("/servers", json=new, headers=key)).json() == again.json()


async def test_history_and_undo(offline: httpx.AsyncClient, file: Path) -> None:
    before = file.read_text()
    await offline.patch("/servers/web2", json={"state": "draining"})
    await offline.patch("/vips/shop", json={"policy": "hash"})
    history = (await offline.get("/history")).json()
    assert [(change["number"], change["verb"]) for change in history] == [(3, "set-policy"), (2, "drain"), (1, "start")]
    assert [change["number"] for change in (await offline.get("/history?limit=1&before=3")).json()] == [2]
    shown = (await offline.get("/history/3")).json()
    assert shown["steps"][0]["fields"] == [{"name": "policy", "before": "cclb4", "after": "hash"}]
    undone = await offline.post("/history/2/undo")
    assert undone.json()["changed"] == "configuration before change 2 restored"
    assert file.read_text() == before
    first = await offline.post("/history/1/undo")
    assert first.status_code == 422
    assert "is the first configuration and cannot be undone" in first.json()["detail"]


async def test_undo_keeps_the_keys(offline: httpx.AsyncClient) -> None:
    await offline.patch("/servers/web2", json={"state": "draining"})
    await offline.post("/keys")
    assert (await offline.post("/history/2/undo")).status_code == 200
    assert [key["id"] for key in (await offline.get("/keys")).json()] == [1, 2]
    assert (await offline.get("/servers/web2")).json()["state"] == "active"


async def test_plans(offline: httpx.AsyncClient, file: Path) -> None:
    text = file.read_text().replace("alpha: 0.5", "alpha: 0.25")
    planned = (await offline.post("/plans", json={"text": text})).json()
    assert [(step["kind"], step["name"], step["effect"]) for step in planned["steps"]] == [("VIP", "shop", "new")]
    assert (planned["effect"], planned["without_servers"], planned["switches"]) == ("new", [], {})
    await offline.patch("/servers/web2", json={"state": "draining"})
    late = await offline.post("/plans/apply", json=planned)
    assert (late.status_code, late.json()["detail"]) == (409, "the configuration has changed since the plan: plan again")
    planned = (await offline.post("/plans", json={"text": text})).json()
    assert (await offline.post("/plans/apply", json=planned)).status_code == 200
    assert file.read_text() == text


async def test_check(offline: httpx.AsyncClient, file: Path) -> None:
    assert (await offline.post("/check", content=file.read_text())).json() == {"vips": 2, "servers": 5}
    assert (await offline.post("/check", content="vips: 3")).status_code == 422


async def test_the_openapi_document_is_served(offline: httpx.AsyncClient) -> None:
    document = (await offline.get("http://test/openapi.json")).json()
    assert document["info"]["title"] == "Frontage controller"
    assert "ProblemDetails" in document["components"]["schemas"]


# Events.


async def next_event(stream: AsyncIterator[str]) -> tuple[str, dict[str, Any]]:
    """Return the kind and the data of the next event."""
    kind = ""
    async for line in stream:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return kind, json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream has ended")


async def test_missed_events_arrive_after_a_reconnection() -> None:
    events = Events(lambda: {("server", "web1"): {"health": "healthy"}})
    first = events.stream(None)
    assert "id: 1" in await anext(first)
    events.compare({("server", "web1"): {"health": "failed"}, ("switch", "edge1"): {"phase": "installed"}})
    events.compare({("switch", "edge1"): {"phase": "installed"}})
    stream = events.stream("1")
    found = [await anext(stream) for _ in range(3)]
    assert [json.loads(event.splitlines()[2].removeprefix("data: ")) for event in found] == [
        {"name": "web1", "health": "failed"},
        {"name": "edge1", "phase": "installed"},
        {"name": "web1", "removed": True},
    ]
    for unknown in ("0", "99", "x"):
        assert "event: reset" in await anext(events.stream(unknown))


async def test_a_slow_client_is_disconnected_with_a_reason() -> None:
    events = Events(dict)
    stream = events.stream(None)
    await anext(stream)
    for number in range(BEHIND + 1):
        events.publish("server", {"name": str(number)})
    found = [event async for event in stream]
    assert len(found) == BEHIND + 1
    assert "event: disconnected" in found[-1]
    assert "read faster" in found[-1]
    assert not events._subscribers


# Running controllers.


async def test_local_clients_have_the_name_of_their_user(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        operation = (await client.send("PATCH", "/servers/web2", {"state": "draining"})).body
        assert (operation["state"], operation["installed"], operation["missing"]) == ("succeeded", True, [])
        change = (await client.send("GET", "/history?limit=1")).body[0]
        assert (change["author"], change["origin"], change["result"]) == (user_name(os.getuid()), "command", "installed")
        assert (await client.send("GET", "/routes/198.51.100.7")).body[0]["route"]["prefix"] == "198.51.100.0/24"


async def test_operations_show_their_progress(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        answer = await client.send("PATCH", "/servers/web2", {"state": "draining"}, headers={"Prefer": "respond-async"})
        path = f"/operations/{answer.body['id']}"
        async with asyncio.timeout(LIMIT):
            while (operation := (await client.send("GET", path)).body)["state"] == "running":
                await asyncio.sleep(0.02)
        assert (operation["state"], operation["changed"]) == ("succeeded", "server web2 is draining")
        assert operation in (await client.send("GET", "/operations")).body


async def test_events_of_a_running_controller(config_file: Path) -> None:
    async with installed_service(config_file) as service:
        transport = httpx.AsyncHTTPTransport(uds=os.fspath(service.control.path))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://frontage/v1", timeout=LIMIT) as client,
            client.stream("GET", "/events") as response,
        ):
            stream = response.aiter_lines()
            await anext(stream)
            await client.patch("/vips/shop", json={"policy": "hash"})
            kinds = []
            async with asyncio.timeout(LIMIT):
                while "configuration" not in kinds or kinds.count("operation") < 2:
                    kind, data = await next_event(stream)
                    kinds.append(kind)
            assert data


async def test_edits_of_the_file_are_in_the_history(config_file: Path) -> None:
    async with installed_service(config_file) as service:

        def found() -> list[tuple[str, str | None]]:
            return [(entry.verb, entry.result) for entry in service.changes.journal.entries()]

        await until(lambda: any(result for _, result in found()))
        assert found() == [("start", "installed")]
        config_file.write_text(config_file.read_text().replace("alpha: 0.5", "alpha: 0.25"))
        await until(lambda: len(found()) == 2 and all(result for _, result in found()))
        assert found() == [("start", "installed"), ("edit", "installed")]


async def test_a_plan_is_refused_if_the_switch_has_changed(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        text = config_file.read_text().replace("policy: cclb4 ", "policy: hash ")
        planned = (await client.send("POST", "/plans", {"text": text})).body
        planned["switches"]["switch"]["digest"] = "that of another state"
        with pytest.raises(RequestError, match="switch: the state of the switch has changed since the plan: plan again") as caught:
            await client.send("POST", "/plans/apply", planned)
        assert caught.value.status == 409


# Remote clients.


def with_api(file: Path, more: str = "") -> dict[Role, str]:
    """Add an API with tokens to a configuration, and return the tokens."""
    drawn = {role: generate(f"the-{role}", role) for role in Role}
    file.with_name("tokens.toml").write_text("\n".join(entry for _, entry in drawn.values()))
    file.write_text(file.read_text() + f"\napi:\n  listen: 127.0.0.1:0\n  tokens: tokens.toml\n{more}")
    return {role: token for role, (token, _) in drawn.items()}


def url(service: Service, scheme: str = "http") -> str:
    address = service.api.address
    assert address is not None
    return f"{scheme}://127.0.0.1:{address[1]}"


async def test_roles_of_remote_clients(config_file: Path) -> None:
    tokens = with_api(config_file)
    async with installed_service(config_file) as service:

        async def send(role: Role, method: str, path: str, body: Any = None) -> Any:
            async with remote(url(service), LIMIT, tokens[role]) as client:
                return (await client.send(method, path, body)).body

        async def status(role: Role, method: str, path: str, body: Any = None) -> int | None:
            with pytest.raises(RequestError) as caught:
                await send(role, method, path, body)
            return caught.value.status

        drain = ("PATCH", "/servers/web2", {"state": "draining"})
        assert (await send(Role.VIEWER, "GET", "/status"))["controller"]["phase"] == "installed"
        assert await status(Role.VIEWER, *drain) == 403
        assert (await send(Role.OPERATOR, *drain))["state"] == "succeeded"
        for secret in ("/configuration", "/keys/file"):
            assert await status(Role.OPERATOR, "GET", secret) == 403
            assert await send(Role.ADMIN, "GET", secret)
        change = (await send(Role.VIEWER, "GET", "/history?limit=1"))[0]
        assert (change["author"], change["origin"]) == ("the-operator", "127.0.0.1")
        async with httpx.AsyncClient(base_url=url(service)) as client:
            missing = await client.get("/v1/status")
            assert (missing.status_code, missing.headers["WWW-Authenticate"]) == (401, "Bearer")
            forged = await client.get("/v1/status", headers={"Authorization": "Bearer forged"})
            assert forged.status_code == 401
        # A token that is removed from the file is no longer valid.
        config_file.with_name("tokens.toml").write_text("")
        await until(lambda: not service.api._authentication._tokens._bearers)
        assert await status(Role.VIEWER, "GET", "/status") == 401


def certificate(folder: Path, name: str, host: str, days: int = 1, authority: str | None = None) -> None:
    """Write NAME.pem and NAME-key.pem, signed by ``authority`` or by themselves."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}-key.pem"]
    signer = ["-CA", f"{authority}.pem", "-CAkey", f"{authority}-key.pem"] if authority else []
    names = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=IP:{host}" if host[0].isdigit() else f"subjectAltName=DNS:{host}"]
    command = ["openssl", "req", "-x509", *key, *signer, "-days", str(days), *names, "-out", f"{name}.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=30)


async def test_tls_of_remote_clients(config_file: Path) -> None:
    folder = config_file.parent
    certificate(folder, "server", "127.0.0.1")
    certificate(folder, "other", "127.0.0.1")
    certificate(folder, "misnamed", "controller.example")
    tokens = with_api(config_file, "  tls: { certificate: server.pem, key: server-key.pem }\n")

    async def status(service: Service, authorities: str) -> str:
        async with remote(url(service, "https"), LIMIT, tokens[Role.VIEWER], folder / authorities) as client:
            return str((await client.send("GET", "/status")).body["controller"]["phase"])

    async with installed_service(config_file) as service:
        assert await status(service, "server.pem") == "installed"
        with pytest.raises(RequestError, match="CERTIFICATE_VERIFY_FAILED"):
            await status(service, "other.pem")
        # New certificates are used without a restart; a broken one is reported, and the last one stays.
        (folder / "server.pem").write_text("broken")
        await until(lambda: service.api.error is not None and "server.pem: cannot load a certificate" in service.api.error)
        for name, problem in (("misnamed", "IP address mismatch"), ("other", None)):
            shutil.copy(folder / f"{name}-key.pem", folder / "server-key.pem")
            shutil.copy(folder / f"{name}.pem", folder / "server.pem")
            await until(lambda: has_loaded(service))
            if problem is None:
                assert await status(service, f"{name}.pem") == "installed"
            else:
                with pytest.raises(RequestError, match=problem):
                    await status(service, f"{name}.pem")
        assert service.api.error is None


def has_loaded(service: Service) -> bool:
    """Return whether the API uses the certificate and key that are in the files now."""
    settings = service.api._settings
    assert settings is not None
    assert settings.tls is not None
    files = (settings.tokens, settings.tls.certificate, settings.tls.key)
    return service.api.error is None and service.api._stamps == (*(stamp(path) for path in files), None)


def test_contexts_refuse_old_versions(tmp_path: Path) -> None:
    from frontage.config.tls import Tls
    from frontage.tls import TlsError, server_context

    certificate(tmp_path, "server", "127.0.0.1")
    context = server_context(Tls(certificate=tmp_path / "server.pem", key=tmp_path / "server-key.pem"))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(TlsError, match=r"none\.pem: cannot load the authorities"):
        server_context(Tls(certificate=tmp_path / "server.pem", key=tmp_path / "server-key.pem", clients=tmp_path / "none.pem"))
