# SPDX-License-Identifier: Apache-2.0
"""The requests of one client host, sent by a process in the host's namespace over the kernel's own TCP.

The load is open-loop: a request starts at its planned time, whatever the state of earlier ones, and uses a new
connection. The flow completion time runs from the call that sends the SYN to the last byte of the body, on the monotonic
clock, which all namespaces share.

A single epoll loop serves all connections, because it costs the least per byte: at tens of requests per second the
process must leave the machine's cores to the switch and the servers.

Runs as `python -m frontage_testbed.load.loadgen` and writes one line per finished request to standard output (see
`outcome.Outcome`).
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import heapq
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .objects import Content
from .outcome import OK, Outcome
from .workload import Arrival, read_plan

READ_SIZE = 256 * 1024
STALL_LIMIT = 30.0
"""Seconds without progress after which a request has failed; far more than a few retransmission timeouts."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class _Request:
    arrival: Arrival
    sock: socket.socket
    started: int
    to_send: bytes
    server: str = ""
    connected: int = 0
    first_byte: int = 0
    header: bytearray = field(default_factory=bytearray)
    length: int = -1
    """Content-Length; -1 until the header is complete."""
    received: int = 0
    last_progress: float = 0.0


class LoadGenerator:
    """Replays a plan against one address."""

    def __init__(self, plan: list[Arrival], target: tuple[str, int], start_ns: int, path: str) -> None:
        self._plan = plan
        self._target = target
        self._family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
        self._start_ns = start_ns
        self._path = path
        self._buffer = bytearray(READ_SIZE)
        self._view = memoryview(self._buffer)
        self._content = Content(READ_SIZE)
        self._epoll = select.epoll()
        self._active: dict[int, _Request] = {}
        self._stalls: list[tuple[float, int]] = []
        self._idle: list[socket.socket] = []

    def run(self) -> None:
        """Start every request of the plan and wait until all have finished."""
        position = 0
        while position < len(self._plan) or self._active:
            now = time.monotonic_ns()
            while position < len(self._plan) and self._due(position) <= now:
                self._begin(self._plan[position])
                position += 1
            wait = 1.0
            if position < len(self._plan):
                wait = min(wait, max(0.0, (self._due(position) - time.monotonic_ns()) / 1e9))
            for fd, events in self._epoll.poll(wait):
                request = self._active.get(fd)
                if request is not None:
                    self._serve(request, events)
            self._fail_stalled()

    def _due(self, position: int) -> int:
        return self._start_ns + int(self._plan[position].time * 1e9)

    def _begin(self, arrival: Arrival) -> None:
        sock = socket.socket(self._family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        text = f"GET {self._path}/{arrival.wire_size} HTTP/1.1\r\nHost: vip\r\nUser-Agent: frontage-demo\r\n\r\n"
        request = _Request(arrival, sock, time.monotonic_ns(), text.encode(), last_progress=time.monotonic())
        self._active[sock.fileno()] = request
        error = sock.connect_ex(self._target)
        if error not in (0, errno.EINPROGRESS):
            self._finish(request, errno.errorcode.get(error, str(error)))
            return
        self._epoll.register(sock.fileno(), select.EPOLLOUT)
        heapq.heappush(self._stalls, (request.last_progress + STALL_LIMIT, sock.fileno()))

    def _serve(self, request: _Request, events: int) -> None:
        try:
            if request.to_send:
                if error := request.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, "connect")
                request.connected = request.connected or time.monotonic_ns()
                request.to_send = request.to_send[request.sock.send(request.to_send) :]
                if not request.to_send:
                    self._epoll.modify(request.sock.fileno(), select.EPOLLIN)
            elif events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._receive(request)
        except BlockingIOError:
            pass
        except OSError as error:
            self._finish(request, errno.errorcode.get(error.errno or 0, str(error)))

    def _receive(self, request: _Request) -> None:
        count = request.sock.recv_into(self._buffer)
        now = time.monotonic_ns()
        if count == 0:
            self._finish(request, "short")
            return
        request.last_progress = now / 1e9
        request.first_byte = request.first_byte or now
        body = self._view[:count]
        if request.length < 0:
            request.header += body
            end = request.header.find(b"\r\n\r\n")
            if end < 0:
                if len(request.header) > 16384:
                    self._finish(request, "header")
                return
            body = memoryview(bytes(request.header[end + 4 :]))
            problem = self._read_header(request, request.header[:end].decode("latin-1"))
            if problem:
                self._finish(request, problem)
                return
        if not self._content.matches(request.received, body):
            self._finish(request, "corrupt")
            return
        request.received += len(body)
        if request.received == request.length:
            self._finish(request, OK, now)
        elif request.received > request.length:
            self._finish(request, "long")

    @staticmethod
    def _read_header(request: _Request, text: str) -> str:
        status, *lines = text.split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        request.server = fields.get("x-server", "")
        code = status.split(" ", 2)[1] if " " in status else status
        if code != "200":
            return f"status {code}"
        request.length = int(fields.get("content-length", "-1"))
        return "" if request.length == request.arrival.wire_size else "length"

    def _finish(self, request: _Request, outcome: str, now: int = 0) -> None:
        """Report the request and close its connection as the plan says."""
        sock = request.sock
        del self._active[sock.fileno()]
        with contextlib.suppress(OSError):
            self._epoll.unregister(sock.fileno())
        local_port = sock.getsockname()[1]
        if outcome == OK and request.arrival.closing == "idle":
            self._idle.append(sock)
        else:
            if request.arrival.closing == "rst":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            sock.close()
        due = self._start_ns + int(request.arrival.time * 1e9)
        line = Outcome(
            index=request.arrival.index,
            outcome=outcome,
            server=request.server,
            due_ns=due,
            started_ns=request.started,
            connected_ns=request.connected,
            first_byte_ns=request.first_byte,
            finished_ns=now or time.monotonic_ns(),
            received=request.received,
            local_port=local_port,
        ).to_line()
        sys.stdout.write(line)
        sys.stdout.flush()

    def _fail_stalled(self) -> None:
        """Fail requests without progress; their deadlines are updated lazily."""
        now = time.monotonic()
        while self._stalls and self._stalls[0][0] <= now:
            _, fd = heapq.heappop(self._stalls)
            request = self._active.get(fd)
            if request is None:
                continue
            deadline = request.last_progress + STALL_LIMIT
            if deadline <= now:
                self._finish(request, "timeout")
            else:
                heapq.heappush(self._stalls, (deadline, fd))


def main() -> None:
    """Entry point of the client process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--client", type=int, required=True, help="index of the client whose arrivals to replay")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True, help="directory of the objects, without the closing slash")
    parser.add_argument("--start-ns", type=int, required=True, help="monotonic time at which the plan begins")
    args = parser.parse_args()
    arrivals = [a for a in read_plan(args.plan) if a.client == args.client]
    LoadGenerator(arrivals, (args.address, args.port), args.start_ns, args.path).run()


if __name__ == "__main__":
    main()
