"""A world whose servers speak QUIC: `frontage-cclb7-quic` on every host, with the keys that the switch has."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from .addresses import COOKIE_PREFIX, QUIC_PORT, QUIC_SERVER_PORT
from .agents import NoAgents
from .configuration import LOOK_AHEAD
from .edge import EdgeSwitch
from .nodes import NodeError
from .settings import Settings
from .world import READY_TIMEOUT, World

CONFIGURATION = """\
listen = ["[::]:{server_port}", "0.0.0.0:{server_port}"]
certificate = "certificate.pem"
private_key = "key.pem"
access_log = "{directory}/{name}.json"

[cookie]
sid = {sid6}
sid_v4 = {sid4}
server_prefix = "{server_prefix}"
cookie_prefix = "{cookie_prefix}"
port = {port}
keys = "keys.toml"
bandwidth = "{bandwidth}kbit"
look_ahead = "{look_ahead}kB"

[[route]]
path = "/"
directory = "../objects"
"""


class QuicWorld(World):
    """A context manager: inside it, HTTP/3 requests to the QUIC VIPs are answered."""

    def __init__(self, settings: Settings, scratch: Path, edge: EdgeSwitch, binary: Path) -> None:
        super().__init__(settings, scratch, edge, NoAgents())
        self._binary = binary
        self._directory = scratch / "quic"
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def key_file(self) -> Path:
        """The keys that the servers read."""
        return self._directory / "keys.toml"

    def answers(self) -> dict[str, int]:
        """How many requests each server has answered, by its name."""
        logs = {s.name: self._directory / f"{s.name}.json" for s in self.server_addresses}
        return {name: len(log.read_text().splitlines()) for name, log in logs.items()}

    def _start_servers(self) -> None:
        self._directory.mkdir()
        self._make_certificate()
        self.edge.write_keys(self.key_file)
        for server in self.server_addresses:
            host = self.servers[server.index]
            host.run(["ip", "-6", "route", "add", "local", server.quic_prefix, "dev", "lo"])
            configuration = self._directory / f"{server.name}.toml"
            configuration.write_text(
                CONFIGURATION.format(
                    name=server.name,
                    directory=self._directory,
                    server_port=QUIC_SERVER_PORT,
                    port=QUIC_PORT,
                    sid6=server.sid6,
                    sid4=server.sid4,
                    server_prefix=server.quic_prefix,
                    cookie_prefix=COOKIE_PREFIX,
                    bandwidth=self.settings.server_rate // 1000,
                    look_ahead=LOOK_AHEAD // 1000,
                )
            )
            with (self._directory / f"{server.name}.log").open("wb") as log:
                self._processes.append(host.spawn([self._binary, configuration], stdout=log, stderr=log))

    def _make_certificate(self) -> None:
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-subj", "/CN=films", "-keyout", "key.pem", "-out", "certificate.pem"]
        done = subprocess.run(command, cwd=self._directory, capture_output=True, text=True)
        if done.returncode != 0:
            raise NodeError(f"openssl made no certificate: {done.stderr.strip()}")

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()

    def wait_until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until the edge switch is programmed and every server listens."""
        self.edge.wait_until_installed()
        deadline = time.monotonic() + timeout
        for server in self.server_addresses:
            sockets = ["ss", "-Hlun", "sport", "=", f":{QUIC_SERVER_PORT}"]
            while len(self.servers[server.index].run(sockets).stdout.splitlines()) < 2:
                if time.monotonic() > deadline:
                    raise NodeError(
                        f"{server.name} does not listen within {timeout:g} s; logs are in {self._directory}"
                    )
                time.sleep(0.05)

    def rotate_key(self) -> None:
        """Rotate as docs/quic.md has it: the switch first, then the servers."""
        self.edge.rotate_key()
        self.edge.write_keys(self.key_file)
        self.reload_keys()

    def reload_keys(self) -> None:
        """Have every server read its keys again."""
        for process in self._processes:
            process.send_signal(signal.SIGHUP)
