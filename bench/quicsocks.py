# SPDX-License-Identifier: Apache-2.0
"""Time that a QuicSocks proxy adds to a handshake, and its number of concurrent handshakes.

All processes use one loopback interface; client and proxy use the same unbound as resolver. Run it with `unshare --net`.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from paths import program
from rows import Row, finish, row

ROUNDS = 6
HANDSHAKES = 200
"""Handshakes of each kind in each round, one at a time."""
IN_FLIGHT = 10_000
STARTED = IN_FLIGHT + IN_FLIGHT // 10
"""Handshakes that start at once. It exceeds IN_FLIGHT because the first complete before the last start."""
ASSOCIATIONS = 100
CACHED_NAMES = "cached{}.films.example"
START_TIMEOUT = 20.0
"""Seconds for a server to start."""
METRICS = "http://[::1]:9464/metrics"

UNBOUND = """\
server:
    interface: ::1
    access-control: ::/0 allow
    chroot: ""
    username: ""
    directory: "{folder}"
    pidfile: "{folder}/unbound.pid"
    use-syslog: no
    do-daemonize: no
    module-config: "iterator"
    local-zone: "films.example." redirect
    local-data: "films.example. 3600 IN AAAA ::1"
remote-control:
    control-enable: no
"""
PROXY = f"""\
listen = ["[::1]:1080"]
resolvers = ["[::1]:53"]
metrics = "[::1]:9464"
allow = ["::1/128"]
[limits]
associations_per_client = {2 * ASSOCIATIONS}
flows_per_association = {STARTED}
bandwidth = "100gbit"
"""
SERVER = f"""\
listen = ["[::1]:443"]
certificate = "certificate.pem"
private_key = "key.pem"
max_unvalidated_handshakes = {2 * STARTED}
[[route]]
path = "/"
directory = "."
"""
CERTIFICATE = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out certificate.pem"
NAMES = [
    "-subj",
    "/CN=films.example",
    "-addext",
    "subjectAltName=DNS:*.films.example",
    "-addext",
    "basicConstraints=critical,CA:FALSE",
]
UNBOUND_PEER = "the same client without the proxy, with the same unbound as resolver"
ADDRESS_PEER = "the same client without the proxy, with a known address"


@contextlib.contextmanager
def start_servers() -> Iterator[Path]:
    """Run resolver, HTTP/3 server and proxy until the context ends; yield their folder."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        (folder / "unbound.conf").write_text(UNBOUND.format(folder=folder))
        (folder / "proxy.toml").write_text(PROXY)
        (folder / "server.toml").write_text(SERVER)
        subprocess.run(["openssl", *CERTIFICATE.split(), *NAMES], cwd=folder, capture_output=True, check=True)
        programs: list[tuple[int, list[str | Path]]] = [
            (53, ["unbound", "-d", "-c", folder / "unbound.conf"]),
            (443, [program("FRONTAGE_CCLB7_QUIC", "frontage-cclb7-quic"), folder / "server.toml"]),
            (1080, [program("FRONTAGE_QUICSOCKS", "frontage-quicsocks"), folder / "proxy.toml"]),
        ]
        for port, command in programs:
            running.enter_context(_process(folder, port, command))
        yield folder


@contextlib.contextmanager
def _process(folder: Path, port: int, command: Sequence[str | Path]) -> Iterator[None]:
    with (folder / f"{port}.log").open("w+b") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + START_TIMEOUT
            while not subprocess.run(["ss", "-Hltun", "sport", "=", f":{port}"], capture_output=True, check=True).stdout:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start: {(folder / f'{port}.log').read_text(errors='replace')}")
                time.sleep(0.02)
            yield
        finally:
            process.terminate()


def load(folder: Path, *options: str) -> dict[str, Any]:
    """Run handshakes and return the client's report, in which some may have failed."""
    command: list[str | Path] = [program("FRONTAGE_QUICSOCKS_LOAD", "frontage-quicsocks-load")]
    command += ["--ca", folder / "certificate.pem", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"frontage-quicsocks-load printed no report: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def one_by_one(folder: Path, *options: str) -> list[float]:
    """Run handshakes one at a time; return their durations in microseconds."""
    report = load(folder, *options, "--handshakes", str(HANDSHAKES))
    if report["failed"]:
        raise RuntimeError(f"handshakes failed: {report['failed']}")
    return [1000 * ms for ms in report["handshake_ms"]]


class Peak(threading.Thread):
    """A thread that polls the proxy's metrics for the highest number of concurrent flows, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.flows = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            with urllib.request.urlopen(METRICS) as response:
                match = re.search(r"^frontage_quicsocks_flows (\d+)", response.read().decode(), re.MULTILINE)
            self.flows = max(self.flows, int(match[1]) if match else 0)

    def stop(self) -> int:
        """Stop the thread and return the highest number of flows."""
        self._stopped.set()
        self.join()
        return self.flows


def measure() -> list[Row]:
    proxy = ("--proxy", "[::1]:1080")
    kinds = {"known": ("--address", "::1"), "resolved": ("--resolver", "[::1]:53"), "cached": proxy, "proxy": proxy}
    durations: dict[str, list[float]] = {kind: [] for kind in kinds}
    with start_servers() as folder:
        one_by_one(folder, *proxy, "--names", CACHED_NAMES)
        for number in range(ROUNDS):
            for kind in list(kinds) if number % 2 == 0 else reversed(kinds):
                # No cache contains these names, except for the kind "cached".
                names = CACHED_NAMES if kind == "cached" else f"{kind}{number}n{{}}.films.example"
                durations[kind] += one_by_one(folder, *kinds[kind], "--names", names)
        peak = Peak()
        peak.start()
        many = ["--handshakes", str(STARTED), "--concurrency", str(STARTED), "--associations", str(ASSOCIATIONS)]
        report = load(folder, *proxy, "--names", "many{}.films.example", "--timeout", "120", *many)
        flows = peak.stop()
    known, resolved, cached, proxied = (median(durations[kind]) for kind in kinds)
    return [
        row("quicsocks_handshake_p50", proxied, "us", UNBOUND_PEER, resolved),
        row("quicsocks_handshake_p50_known", cached, "us", ADDRESS_PEER, known),
        row("quicsocks_added_p50", proxied - resolved, "us"),
        row("quicsocks_added_p50_known", cached - known, "us"),
        row("quicsocks_in_flight", flows, "concurrent handshakes, maximum"),
        row("quicsocks_completed", len(report["handshake_ms"]), f"of {STARTED} handshakes started at once"),
        # All handshakes start at once, so the longest one ends last. After it, the load waits until all connections are closed.
        row(
            "quicsocks_rate",
            1000 * len(report["handshake_ms"]) / max(report["handshake_ms"]),
            "handshakes/s, client and server on the same cores",
        ),
    ]


if __name__ == "__main__":
    finish(measure)
