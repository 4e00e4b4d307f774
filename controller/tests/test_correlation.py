# SPDX-License-Identifier: Apache-2.0
"""One correlation id from a request to each P4Runtime write: in answers, problem details, the journal and the log."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import EXAMPLE
from frontage.api import access
from frontage.api.app import Shared, application
from frontage.api.offline import Offline
from frontage.changes.journal import Journal
from frontage.config import load
from frontage.cookie import CookieKey
from frontage.observe import causes, logs
from frontage.observe.causes import Pending
from frontage.p4.shown import is_secret
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired

pytestmark = pytest.mark.timeout(200)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log of this process, as JSON."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure(logs.Format.JSON, verbose=True, stream=stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture
async def offline(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API without a controller."""
    backend = Offline(Path(shutil.copy(EXAMPLE, tmp_path / "demo.yaml")))
    app = application(Shared(backend), access.local)
    transport = httpx.ASGITransport(app, client=("0", 1), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/v1") as client:
        client.backend = backend  # type: ignore[attr-defined]
        yield client


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_answers_return_the_id_of_the_request(offline: httpx.AsyncClient) -> None:
    answer = await offline.get("/vips", headers={"X-Request-ID": "deploy-17"})
    assert answer.headers["X-Request-ID"] == "deploy-17"
    problem = await offline.get("/servers/web9", headers={"X-Request-ID": "deploy-18"})
    assert (problem.status_code, problem.json()["request_id"]) == (404, "deploy-18")


async def test_trace_context_of_the_client_continues(offline: httpx.AsyncClient) -> None:
    answer = await offline.get("/vips", headers={"traceparent": PARENT})
    assert answer.headers["X-Request-ID"] == TRACE
    version, trace, parent, _ = answer.headers["traceparent"].split("-")
    assert (version, trace) == ("00", TRACE)
    assert re.fullmatch("[0-9a-f]{16}", parent)
    assert parent != "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Request-ID": 'two words" and a quote'},
        {"X-Request-ID": "x" * 129},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": PARENT.upper()},
    ],
)
async def test_invalid_ids_are_replaced(offline: httpx.AsyncClient, headers: dict[str, str]) -> None:
    first, second = [(await offline.get("/vips", headers=headers)).headers["X-Request-ID"] for _ in range(2)]
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second


async def test_unexpected_failure_has_problem_details_and_a_log_line(offline: httpx.AsyncClient, log: io.StringIO) -> None:
    def fail() -> str:
        raise RuntimeError("broken")

    offline.backend.changes.read = fail  # type: ignore[attr-defined]
    answer = await offline.get("/configuration", headers={"X-Request-ID": "r-1"})
    assert (answer.status_code, answer.json()["request_id"], answer.headers["X-Request-ID"]) == (500, "r-1", "r-1")
    assert "broken" not in answer.text
    (line,) = (line for line in parsed(log.getvalue()) if line["level"] == "error")
    assert line["request_id"] == "r-1"
    assert "RuntimeError: broken" in line["exception"]


async def test_work_of_several_requests_has_all_their_ids() -> None:
    pending = Pending()
    for identifier in ("one", "two", "one"):
        with causes.caused_by(causes.new({"x-request-id": identifier})):
            pending.add()
    with pytest.raises(RuntimeError), pending.resumed() as failed:
        raise RuntimeError
    with pending.resumed() as again:
        assert again.request_id == failed.request_id == "one,two"
    with pending.resumed() as audit:
        assert re.fullmatch("[0-9a-f]{32}", audit.request_id)


def test_text_lines_name_their_fields() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(logs._add_fields)
    handler.setFormatter(logs._TextFormatter())
    logger = logging.Logger("test")
    logger.addHandler(handler)
    with causes.caused_by(causes.new({"x-request-id": TRACE})), logs.with_fields(switch="edge 1"):
        logger.info("written", extra=logs.fields(updates=5, seconds=0.25, error=None))
    assert stream.getvalue().endswith(f' INFO written [request_id={TRACE} switch="edge 1" updates=5 seconds=0.25]\n')


def test_entries_with_key_material_are_hidden_in_messages() -> None:
    def state(secret: str) -> dict[str, object]:
        config = load(EXAMPLE.with_name("quic.yaml"))
        key = CookieKey(config.cookie_keys[-1].id, bytes.fromhex(secret))
        config = config.model_copy(update={"cookie_keys": (key,)})
        found = desired(config, allocate(config, Installed({})))
        return {f"{entry.table}{entry.match}": (entry.table, action) for entry, action in found.items()}

    one, other = state("00" * 16), state("5a" * 16)
    differing = {table for name, (table, action) in one.items() if other[name][1] != action}  # type: ignore[misc,index]
    # Clients see the static cookies themselves.
    assert {table for table in differing if not is_secret(table)} <= {"masking.static_cookie"}
    assert len(differing) > 8


@asynccontextmanager
async def frontage_up(file: Path) -> AsyncIterator[Path]:
    """Run `frontage up`, and yield its log."""
    path = file.with_name("log")
    command = (sys.executable, "-m", "frontage", "up", str(file), "--verbose")
    with path.open("wb") as log:
        environment = {**os.environ, "FRONTAGE_LOG_FORMAT": "json"}
        process = await asyncio.create_subprocess_exec(*command, stderr=log, env=environment)
    try:
        yield path
    finally:
        process.terminate()
        await process.wait()


async def frontage(*words: str) -> tuple[int | None, str]:
    """Run a command, and return its exit status and output."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "frontage", *words, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


async def logged(path: Path, text: str) -> None:
    """Wait for a line of the log. The line of a request is written after the answer."""
    while text not in path.read_text():
        await asyncio.sleep(0.1)


async def test_all_lines_of_an_apply_share_one_id(config_file: Path) -> None:
    secret = re.findall(r"secret: *\"?([0-9a-f]{16,})", config_file.read_text())
    assert secret
    new = config_file.with_name("new.yaml")
    new.write_text(config_file.read_text().replace("alpha: 0.5", "alpha: 0.25"))
    transport = httpx.AsyncHTTPTransport(uds=str(config_file.with_name(f".{config_file.name}.sock")))
    async with frontage_up(config_file) as path, httpx.AsyncClient(transport=transport, base_url="http://frontage/v1") as client:
        async with asyncio.timeout(150):
            await logged(path, "entries: ")
            assert (await client.post("/installation")).status_code == 200
            plan = (await client.post("/plans", json={"text": new.read_text()})).json()
            await logged(path, "POST /v1/plans: 200")
            begin = len(path.read_bytes())
            headers = {"X-Request-ID": "change-of-alpha", "traceparent": PARENT}
            body = {name: plan[name] for name in ("base", "text", "switches")}
            answer = await client.post("/plans/apply", json=body, headers=headers)
            assert answer.status_code == 200
            await logged(path, "POST /v1/plans/apply: 200")
            lines = parsed(path.read_bytes()[begin:].decode())
            status, output = await frontage("drain", "web9", "-c", str(config_file))
            _, as_json = await frontage("drain", "web9", "--json", "-c", str(config_file))
        everything = path.read_text()

    # Nothing else is going on, but requests to neighbors that do not exist.
    lines = [line for line in lines if not line["logger"].startswith("frontage.neighbors")]
    assert not [line for line in lines if (line.get("request_id"), line.get("trace_id")) != ("change-of-alpha", TRACE)]
    modules = {"frontage.api.correlation", "frontage.service.changes", "frontage.service.controller", "frontage.p4.calls"}
    assert modules <= {line["logger"] for line in lines}
    writes = [line for line in lines if line["message"].startswith("write: ")]
    assert writes
    for write in writes:
        assert (write["device"], write["device_id"], write["result"]) == ("switch", 1, "OK")
        assert write["updates"] > 0
        assert write["seconds"] > 0
    (change,) = (line for line in lines if line.get("verb") == "apply")
    entry = Journal(config_file).entry(change["change"])
    assert (entry.request_id, entry.result) == ("change-of-alpha", "installed")

    # A command prints the id of a request that failed, by which the log has it.
    assert status == 1
    found = re.search(r"unknown server \"web9\".* \(request ([0-9a-f]{32})\)", output)
    assert found is not None, output
    assert any(line.get("request_id") == found[1] and line.get("status") == 404 for line in parsed(everything))
    assert re.fullmatch("[0-9a-f]{32}", json.loads(as_json)["request_id"])
    assert not [text for text in secret if text in everything]


async def test_edit_of_the_file_has_an_id_of_its_own(config_file: Path) -> None:
    async with frontage_up(config_file) as path, asyncio.timeout(150):
        while "entries: " not in path.read_text():
            await asyncio.sleep(0.1)
        begin = len(path.read_bytes())
        config_file.write_text(config_file.read_text().replace("alpha: 0.5", "alpha: 0.25"))
        journal = Journal(config_file)
        while (last := journal.last()) is None or last.verb != "edit" or last.result != "installed":
            await asyncio.sleep(0.1)
        lines = parsed(path.read_bytes()[begin:].decode())
    assert {line["request_id"] for line in lines if line["message"].startswith("write: ")} == {last.request_id}
