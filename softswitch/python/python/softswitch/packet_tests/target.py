# SPDX-License-Identifier: Apache-2.0
"""Start a switch, and wait until its P4Runtime server accepts connections."""

import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .children import die_with_parent, stop
from .errors import RunError
from .network import switch_link

GRPC_HOST, GRPC_PORT = "127.0.0.1", 9559
"""Address of the P4Runtime server, in the namespace of the switch."""
GRPC = f"{GRPC_HOST}:{GRPC_PORT}"
_SHOWN_LOG = 2000
"""Characters at the end of a log that an error message shows."""


@dataclass(frozen=True)
class Target:
    """A switch with the options of simple_switch_grpc. `name` is "softswitch" or "bmv2"; `program` is its absolute path."""

    name: str
    program: str
    cpu_port: int = 510
    options: tuple[str, ...] = ()
    """Further options, after `--`."""
    coverage: Path | None = None
    """File of the coverage of softswitch."""
    start_timeout: float = 20.0
    """Seconds until its P4Runtime server must accept connections."""

    def start(self, ports: Iterable[int], json: Path | None, log: Path) -> subprocess.Popen[bytes]:
        """Start the switch with an interface for each port, and load a program if one is given. Its output goes to `log`."""
        command = [self.program, "--device-id", "0", "--no-p4" if json is None else str(json)]
        command += [word for port in ports for word in ("-i", f"{port}@{switch_link(port)}")]
        if self.coverage is not None:
            command += ["--coverage", str(self.coverage)]
        command += ["--", "--grpc-server-addr", GRPC, "--cpu-port", str(self.cpu_port), *self.options]
        with log.open("wb") as output:
            switch = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
        end = time.monotonic() + self.start_timeout
        while switch.poll() is None and time.monotonic() < end:
            with socket.socket() as sock:
                if sock.connect_ex((GRPC_HOST, GRPC_PORT)) == 0:
                    return switch
            time.sleep(0.02)
        stop(switch)
        raise RunError(f"{self.name}: did not start: correct the options of {' '.join(command)}\n{end_of_log(log)}")


def end_of_log(log: Path) -> str:
    """Return the last lines of a log."""
    return log.read_text(errors="replace")[-_SHOWN_LOG:]
