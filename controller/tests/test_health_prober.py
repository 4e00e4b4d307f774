# SPDX-License-Identifier: Apache-2.0
"""The prober as a process, against servers on the loopback interface: verdicts, source ports, and its own connectivity."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from frontage.checks.messages import Ping, Report, Target, decode_order, decode_report, encode_order, encode_report
from frontage.checks.process import ProberError, ProberProcess
from frontage.checks.servers import Verdict
from frontage.checks.sockets import TURNS

pytest.importorskip("h11")

SOURCE, SERVER = "127.0.0.2", "127.0.0.1"
ANSWERED, SILENT = Ping(SOURCE, SERVER), Ping(SOURCE, "198.51.100.1")
"""Pings that are answered, and that are not: the loopback interface does not lead to the second address."""
LIMIT = 60.0

Handler = Callable[[bytes], bytes | None]
"""Returns the response to a request, or None to stay silent."""


def target(port: int, **fields: Any) -> Target:
    kind = fields.pop("kind", "tcp")
    basics = {"source": SOURCE, "address": SERVER, "sid": 7, "interval": 0.1, "timeout": 5.0, "jitter": 0.1}
    return Target(id=1, kind=kind, port=port, **{**basics, **fields})


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[int]]]:
    """Yield the port of a server, and the source ports of its connections."""
    peers: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername")[1])
        try:
            response = handler(await reader.readuntil(b"\r\n\r\n"))
            if response is None:
                await reader.read()
            else:
                writer.write(response)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, SERVER, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], peers
    finally:
        server.close()


@asynccontextmanager
async def probing(*targets: Target, pings: tuple[Ping, ...] = (ANSWERED,)) -> AsyncIterator[AsyncIterator[Report]]:
    async with asyncio.timeout(LIMIT), ProberProcess() as process:
        process.order(encode_order(targets, pings))
        yield process.reports(LIMIT)


async def verdict_of(one: Target, *, pings: tuple[Ping, ...] = (ANSWERED,)) -> tuple[Verdict, str | None]:
    """Return the first result of a check."""
    async with probing(one, pings=pings) as reports:
        async for report in reports:
            for result in report.results:
                return result.verdict, result.error
    raise AssertionError("no result")


def response(status: int, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Reason\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


async def test_tcp_check_passes_if_the_server_accepts() -> None:
    async with serving(lambda _: None) as (port, _):
        assert await verdict_of(target(port)) == (Verdict.PASSED, None)


async def test_tcp_check_of_a_closed_port_fails() -> None:
    async with serving(lambda _: None) as (port, _):
        pass
    assert await verdict_of(target(port)) == (Verdict.FAILED, "connection refused")


async def test_source_port_names_the_server_and_turns_rotate() -> None:
    async with serving(lambda _: None) as (port, peers), probing(target(port, sid=0xABC)) as reports:
        async for _ in reports:
            if len(set(peers)) == TURNS:
                break
    assert {peer & 0xFFF for peer in peers} == {0xABC}
    assert {peer >> 15 for peer in peers} == {1}


@pytest.mark.parametrize(
    ("answer", "fields", "verdict", "error"),
    [
        (response(200), {}, Verdict.PASSED, None),
        (response(302), {}, Verdict.PASSED, None),
        (response(503), {}, Verdict.FAILED, "status 503"),
        (response(204), {"status": (200, 200)}, Verdict.FAILED, "status 204"),
        (response(200, b"all ready"), {"body": "ready"}, Verdict.PASSED, None),
        (response(200, b"starting"), {"body": "ready"}, Verdict.FAILED, 'the body does not contain "ready"'),
        (b"", {}, Verdict.FAILED, "the server closed the connection without a response"),
        (b"SSH-2.0-server\r\n\r\n", {}, Verdict.FAILED, "invalid HTTP response: illegal status line: "),
        (None, {"timeout": 0.2}, Verdict.FAILED, "no answer within 0.2 s"),
    ],
    ids=lambda value: "" if isinstance(value, bytes | dict) else None,
)
async def test_http_check(answer: bytes | None, fields: dict[str, Any], verdict: Verdict, error: str | None) -> None:
    async with serving(lambda _: answer) as (port, _):
        found = await verdict_of(target(port, kind="http", **fields))
    assert found[0] is verdict
    assert found[1] == error or (error is not None and (found[1] or "").startswith(error))


async def test_http_request_names_path_and_host() -> None:
    requests: list[bytes] = []

    def record(request: bytes) -> bytes:
        requests.append(request)
        return response(200)

    async with serving(record) as (port, _):
        await verdict_of(target(port, kind="http", path="/health?deep=1", host="shop.example"))
    lines = requests[0].split(b"\r\n")
    assert lines[0] == b"GET /health?deep=1 HTTP/1.1"
    assert b"Host: shop.example:%d" % port in lines


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a self-signed certificate, cert.pem, and its key, key.pem."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=shop.example"]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return folder


async def test_https_check_verifies_the_certificate_if_asked_to(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    async with serving(lambda _: response(200), context) as (port, _):
        strict = await verdict_of(target(port, kind="https", host="shop.example"))
        lax = await verdict_of(target(port, kind="https", host="shop.example", verify=False))
    assert strict[0] is Verdict.FAILED
    assert (strict[1] or "").startswith("TLS: self")
    assert lax == (Verdict.PASSED, None)


SCRIPT = """
import os, socket, sys
address, port = os.environ["FRONTAGE_ADDRESS"], int(os.environ["FRONTAGE_PORT"])
source = os.environ["FRONTAGE_SOURCE_ADDRESS"], int(os.environ["FRONTAGE_SOURCE_PORT"])
with socket.socket() as connection:
    connection.bind(source)
    connection.connect((address, port))
"""


@pytest.mark.parametrize(
    ("command", "fields", "verdict", "error"),
    [
        ((sys.executable, "-c", SCRIPT), {}, Verdict.PASSED, None),
        (("sh", "-c", "echo first >&2; echo it is away >&2; exit 3"), {}, Verdict.FAILED, "sh ended with status 3: it is away"),
        (("sleep", "60"), {"timeout": 0.2}, Verdict.FAILED, "no answer within 0.2 s"),
        (("/nonexistent/check",), {}, Verdict.UNKNOWN, "/nonexistent/check: No such file or directory"),
    ],
    ids=["passes", "fails", "hangs", "is missing"],
)
async def test_script_check(command: tuple[str, ...], fields: dict[str, Any], verdict: Verdict, error: str | None) -> None:
    async with serving(lambda _: None) as (port, peers):
        found = await verdict_of(target(port, kind="script", command=command, sid=0x123, **fields))
    assert found == (verdict, error)
    assert {peer & 0x8FFF for peer in peers} <= {0x8123}


@asynccontextmanager
async def grpc_serving(statuses: dict[str, int]) -> AsyncIterator[int]:
    """Yield the port of a gRPC server with the health of its services."""

    async def check_health(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        name = request[2:].decode()
        if name not in statuses:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return bytes([8, statuses[name]])

    handlers = {"Check": grpc.unary_unary_rpc_method_handler(check_health)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
    port = server.add_insecure_port(f"{SERVER}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


async def test_grpc_check() -> None:
    pytest.importorskip("h2")
    async with grpc_serving({"": 1, "shop.Orders": 2}) as port:
        assert await verdict_of(target(port, kind="grpc")) == (Verdict.PASSED, None)
        orders = await verdict_of(target(port, kind="grpc", service="shop.Orders"))
        assert orders == (Verdict.FAILED, "the server is NOT_SERVING")
        other = await verdict_of(target(port, kind="grpc", service="films"))
        assert other == (Verdict.FAILED, "gRPC status 5: unknown service")
    async with serving(lambda _: response(200)) as (port, _):
        verdict, error = await verdict_of(target(port, kind="grpc"))
        assert verdict is Verdict.FAILED, error


@asynccontextmanager
async def http3_serving(folder: Path, status: int, body: bytes) -> AsyncIterator[int]:
    """Yield the port of an HTTP/3 server with one response."""
    from aioquic.asyncio import QuicConnectionProtocol, serve
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Server(QuicConnectionProtocol):  # type: ignore[misc]
        def quic_event_received(self, event: Any) -> None:
            self.http = getattr(self, "http", None) or H3Connection(self._quic)
            for one in self.http.handle_event(event):
                if isinstance(one, HeadersReceived):
                    self.http.send_headers(one.stream_id, [(b":status", str(status).encode())])
                    self.http.send_data(one.stream_id, body, end_stream=True)
                    self.transmit()

    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = await serve(SERVER, 0, configuration=configuration, create_protocol=Server)
    try:
        yield server._transport.get_extra_info("sockname")[1]
    finally:
        server.close()


async def test_http3_check(certificate: Path) -> None:
    pytest.importorskip("aioquic")
    fields: dict[str, Any] = {"kind": "http3", "host": "shop.example", "verify": False}
    async with http3_serving(certificate, 200, b"all ready") as port:
        assert await verdict_of(target(port, **fields, body="ready")) == (Verdict.PASSED, None)
        assert await verdict_of(target(port, **fields)) == (Verdict.PASSED, None)
        missing = await verdict_of(target(port, **fields, body="steady"))
        assert missing == (Verdict.FAILED, 'the body does not contain "steady"')
        verdict, error = await verdict_of(target(port, **{**fields, "verify": True}))
        assert verdict is Verdict.FAILED
        assert (error or "").startswith("QUIC: ")
    async with http3_serving(certificate, 503, b"") as port:
        assert await verdict_of(target(port, **fields)) == (Verdict.FAILED, "status 503")
    verdict, error = await verdict_of(target(port, **fields, timeout=0.3))
    assert verdict is Verdict.FAILED


@pytest.mark.parametrize("kind", ["tcp", "http"])
async def test_local_error_says_nothing_about_the_server(kind: str) -> None:
    one = target(80, kind=kind, source="192.0.2.77")
    verdict, error = await verdict_of(one, pings=(Ping("192.0.2.77", SERVER),))
    assert (verdict, error) == (Verdict.UNKNOWN, "cannot assign requested address")


@pytest.mark.parametrize("kind", ["tcp", "http"])
async def test_failure_without_answered_pings_says_nothing_about_the_server(kind: str) -> None:
    async with serving(lambda _: None) as (port, _):
        pass
    verdict, error = await verdict_of(target(port, kind=kind), pings=(SILENT,))
    assert verdict is Verdict.UNKNOWN
    assert (error or "").startswith("connection refused, but ")


async def test_prober_reports_whether_the_switch_answers_pings() -> None:
    for ping, is_answered in ((ANSWERED, True), (SILENT, False)):
        async with probing(pings=(ping,)) as reports:
            async for report in reports:
                if SOURCE in report.links and (report.links[SOURCE] is None) == is_answered:
                    break


async def test_new_order_replaces_the_targets() -> None:
    async with serving(lambda _: None) as (port, _), asyncio.timeout(LIMIT), ProberProcess() as process:
        process.order(encode_order([target(port)], [ANSWERED]))
        seen: set[int] = set()
        reports = process.reports(LIMIT)
        async for report in reports:
            seen |= {result.id for result in report.results}
            if seen:
                break
        other = Target(**{**{name: getattr(target(port), name) for name in Target.__slots__}, "id": 2})
        process.order(encode_order([other], [ANSWERED]))
        later: list[int] = []
        async for report in reports:
            later += [result.id for result in report.results]
            if later.count(2) == 5:
                break
        first = later.index(2)
        assert 1 not in later[first + 1 :]


async def test_end_of_the_prober_is_an_error() -> None:
    async with ProberProcess() as process:
        process.order(b"no order\n")
        with pytest.raises(ProberError, match="ended with status 1"):
            async for _ in process.reports(LIMIT):
                pass


def test_messages_are_equal_after_encoding_and_decoding() -> None:
    order = [target(80, kind="https", path="/health", body="ready", verify=False)], [ANSWERED]
    assert decode_order(encode_order(*order)) == order
    report = decode_report(b'{"results": [[1, "failed", "status 503", 1.5, 2.5]], "links": {"127.0.0.2": null}}')
    assert decode_report(encode_report(report)) == report
