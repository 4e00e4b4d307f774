# SPDX-License-Identifier: Apache-2.0
"""The load generator against a server with every detectable kind of misbehaviour."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from frontage_testbed.load import loadgen
from frontage_testbed.load.loadgen import LoadGenerator
from frontage_testbed.load.objects import pattern
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.workload import Arrival

SIZE = 300_000
BODY = pattern()[:SIZE]
HEADER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Server: s7\r\n\r\n"
Behaviour = Callable[[socket.socket], None]


@contextmanager
def server(behave: Behaviour) -> Iterator[tuple[str, int]]:
    """Serve each connection in a thread: read the request, then call `behave`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += connection.recv(4096)
            with contextlib.suppress(ConnectionResetError):
                behave(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def run(behave: Behaviour, capsys: pytest.CaptureFixture[str], closing: str = "fin", count: int = 1) -> list[Outcome]:
    plan = [Arrival(i, 0.01 * i, 0, SIZE, SIZE, closing) for i in range(count)]
    with server(behave) as address:
        LoadGenerator(plan, address, time.monotonic_ns(), "/objects").run()
    return [Outcome.from_line(line) for line in capsys.readouterr().out.splitlines()]


def behave_well(connection: socket.socket) -> None:
    connection.sendall(HEADER % SIZE + BODY)
    connection.recv(1)


def in_small_pieces(connection: socket.socket) -> None:
    data = HEADER % SIZE + BODY
    for at in range(200):
        connection.sendall(data[at : at + 1])
    connection.sendall(data[200:])
    connection.recv(1)


def reset(connection: socket.socket) -> None:
    connection.sendall(HEADER % SIZE + BODY[:1000])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def refuse(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


def stop_early(connection: socket.socket) -> None:
    connection.sendall(HEADER % SIZE + BODY[:1000])


def announce_other_length(connection: socket.socket) -> None:
    connection.sendall(HEADER % (SIZE + 1) + BODY)


def send_too_much(connection: socket.socket) -> None:
    connection.sendall(HEADER % SIZE + BODY + pattern()[SIZE : SIZE + 10])
    connection.recv(1)


def damage(connection: socket.socket) -> None:
    connection.sendall(HEADER % SIZE + BODY[:5000] + b"?" + BODY[5001:])
    connection.recv(1)


def be_silent(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("behave", [behave_well, in_small_pieces])
@pytest.mark.parametrize("closing", ["fin", "rst", "idle"])
def test_complete_response_is_ok(behave: Behaviour, closing: str, capsys: pytest.CaptureFixture[str]) -> None:
    (outcome,) = run(behave, capsys, closing)
    assert (outcome.outcome, outcome.server, outcome.received) == ("ok", "s7", SIZE)
    assert 0 < outcome.started_ns < outcome.connected_ns <= outcome.first_byte_ns <= outcome.finished_ns


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        (reset, "ECONNRESET"),
        (refuse, "status 503"),
        (stop_early, "short"),
        (announce_other_length, "length"),
        (send_too_much, "long"),
        (damage, "corrupt"),
    ],
)
def test_failed_response_has_reason(behave: Behaviour, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    (outcome,) = run(behave, capsys)
    assert outcome.outcome == reason


def test_stalled_response_times_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(loadgen, "STALL_LIMIT", 0.3)
    (outcome,) = run(be_silent, capsys)
    assert outcome.outcome == "timeout"
    assert outcome.fct >= 0.3


def test_refused_connection_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    LoadGenerator([Arrival(0, 0.0, 0, 1, 1, "fin")], address, time.monotonic_ns(), "/objects").run()
    assert Outcome.from_line(capsys.readouterr().out).outcome == "ECONNREFUSED"


def test_requests_do_not_wait_for_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    count = 20
    requested = threading.Barrier(count)

    def respond_after_all_requests(connection: socket.socket) -> None:
        requested.wait(timeout=20)
        behave_well(connection)

    outcomes = run(respond_after_all_requests, capsys, count=count)
    assert [o.outcome for o in outcomes] == ["ok"] * count
