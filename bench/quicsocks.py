# SPDX-License-Identifier: Apache-2.0
"""What a QuicSocks proxy adds to a handshake's time, and how many handshakes it has under way. All is on one loopback interface:
client and proxy ask the same unbound. To be run by `unshare --net`."""

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
"""Of each kind in each round, one after the other."""
IN_FLIGHT = 10_000
BEGUN = IN_FLIGHT + IN_FLIGHT // 10
"""At once: by the time that the last have begun the first are over."""
ASSOCIATIONS = 100
REMEMBERED = "remembered{}.films.example"
PATIENCE = 20.0
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
flows_per_association = {BEGUN}
bandwidth = "100gbit"
"""
SERVER = f"""\
listen = ["[::1]:443"]
certificate = "certificate.pem"
private_key = "key.pem"
max_unvalidated_handshakes = {2 * BEGUN}
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
UNBOUND_PEER = "the same client without the proxy, which asks the same unbound"
ADDRESS_PEER = "the same client without the proxy, which knows the address and asks nobody"


@contextlib.contextmanager
def lab() -> Iterator[Path]:
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
            deadline = time.monotonic() + PATIENCE
            while not subprocess.run(["ss", "-Hltun", "sport", "=", f":{port}"], capture_output=True, check=True).stdout:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start: {(folder / f'{port}.log').read_text(errors='replace')}")
                time.sleep(0.02)
            yield
        finally:
            process.terminate()


def load(folder: Path, *options: str) -> dict[str, Any]:
    """What came of handshakes; some may have failed."""
    command: list[str | Path] = [program("FRONTAGE_QUICSOCKS_LOAD", "frontage-quicsocks-load")]
    command += ["--ca", folder / "certificate.pem", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"no handshakes: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def one_by_one(folder: Path, *options: str) -> list[float]:
    """Microseconds that handshakes took, each begun when the last was complete."""
    report = load(folder, *options, "--handshakes", str(HANDSHAKES))
    if report["failed"]:
        raise RuntimeError(f"handshakes failed: {report['failed']}")
    return [1000 * ms for ms in report["handshake_ms"]]


class Peak(threading.Thread):
    """The most flows that the proxy had at a time, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.flows = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.1):
            with urllib.request.urlopen(METRICS) as answer:
                found = re.search(r"^frontage_quicsocks_flows (\d+)", answer.read().decode(), re.MULTILINE)
            self.flows = max(self.flows, int(found[1]) if found else 0)

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.flows


def measure() -> list[Row]:
    proxy = ("--proxy", "[::1]:1080")
    ways = {"known": ("--address", "::1"), "asked": ("--resolver", "[::1]:53"), "cached": proxy, "proxy": proxy}
    found: dict[str, list[float]] = {way: [] for way in ways}
    with lab() as folder:
        one_by_one(folder, *proxy, "--names", REMEMBERED)
        for number in range(ROUNDS):
            for way in list(ways) if number % 2 == 0 else reversed(ways):
                # Names that nobody remembers, but for those that the proxy does.
                names = REMEMBERED if way == "cached" else f"{way}{number}n{{}}.films.example"
                found[way] += one_by_one(folder, *ways[way], "--names", names)
        peak = Peak()
        peak.start()
        began = time.monotonic()
        many = ["--handshakes", str(BEGUN), "--concurrency", str(BEGUN), "--associations", str(ASSOCIATIONS)]
        done = load(folder, *proxy, "--names", "many{}.films.example", "--timeout", "120", *many)
        seconds = time.monotonic() - began
        flows = peak.stop()
    known, asked, cached, through = (median(found[way]) for way in ways)
    return [
        row("quicsocks_handshake_p50", through, "us", UNBOUND_PEER, asked),
        row("quicsocks_handshake_p50_known", cached, "us", ADDRESS_PEER, known),
        row("quicsocks_added_p50", through - asked, "us"),
        row("quicsocks_added_p50_known", cached - known, "us"),
        row("quicsocks_in_flight", flows, "handshakes at a time, at most"),
        row("quicsocks_completed", len(done["handshake_ms"]), f"of {BEGUN} handshakes begun at once"),
        row("quicsocks_rate", len(done["handshake_ms"]) / seconds, "handshakes/s, client and server on the same cores"),
    ]


if __name__ == "__main__":
    finish(measure)
