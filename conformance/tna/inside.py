# SPDX-License-Identifier: Apache-2.0
"""Runs one PTF test with its own switch, in the namespaces that `ptf` created. Not for direct use.

Takes a file with a `Job` as JSON. The status is 0 if the test passes. Imports only the standard library.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

READY = "bfrt-grpc-server-addr="
"""The line that the switch prints when its BfRuntime server listens."""
START_TIMEOUT = 60
"""Seconds within which the switch must be ready."""

ETH_P_ALL = 3
LARGEST_FRAME = 1 << 16


@dataclass(frozen=True)
class Job:
    switch: list[str]
    ptf: list[str]
    ports: list[int]
    internal: list[int]
    """The ports whose packets come back."""
    limit: float
    """Seconds after which PTF is stopped."""
    environment: dict[str, str]
    """Variables that PTF has in addition to those of this process."""
    load: list[str]
    """Command that loads programs into the switch before PTF starts; empty if the switch has its program."""


def add_ports(ports: list[int]) -> None:
    """Make a pair of interfaces for each port: swN for the switch, and ptfN for PTF."""
    lines = ["link set lo up"]
    for port in ports:
        lines.append(f"link add sw{port} type veth peer name ptf{port}")
        lines += [f"link set {name}{port} addrgenmode none up" for name in ("sw", "ptf")]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def reflect(interface: str) -> None:
    """Send each frame that arrives at an interface back, until the process ends."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as reflector:
        reflector.bind((interface, 0))
        while True:
            frame, (_, _, kind, *_) = reflector.recvfrom(LARGEST_FRAME)
            if kind != socket.PACKET_OUTGOING:
                reflector.send(frame)


@contextmanager
def running_switch(command: list[str], log: Path) -> Iterator[None]:
    """Run the switch, and wait until it is ready."""
    with log.open("wb") as file:
        switch = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        end = time.monotonic() + START_TIMEOUT
        while READY not in log.read_text(errors="replace"):
            if switch.poll() is not None or time.monotonic() > end:
                sys.exit("the switch did not start")
            time.sleep(0.05)
        yield
        if switch.poll() is not None:
            sys.exit(f"the switch stopped with status {switch.returncode}")
    finally:
        switch.kill()
        switch.wait()


def main(file: str) -> int:
    job = Job(**json.loads(Path(file).read_text()))
    add_ports(job.ports)
    for port in job.internal:
        Thread(target=reflect, args=(f"ptf{port}",), daemon=True).start()
    with running_switch(job.switch, Path("switch.log")), Path("test.log").open("wb") as log:
        environment = os.environ | job.environment
        if job.load and subprocess.run(job.load, env=environment, stdout=log, stderr=log, check=False).returncode != 0:
            sys.exit("the programs were not loaded")
        try:
            done = subprocess.run(
                job.ptf,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=job.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            sys.exit(f"stopped after {job.limit:.0f} s")
    return 0 if done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
