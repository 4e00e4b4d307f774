# SPDX-License-Identifier: Apache-2.0
"""Rate of a download over HTTP/3 on a path with losses, from frontage-cclb7-quic and from nginx."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import harmonic_mean

import nginx
from http3 import Server, start_testbed
from namespaces import enter, namespace, run
from paths import ROOT, program
from quic_nginx import PORT, serve_nginx
from rows import Row, finish, row

DELAY_MS, RATE_MBIT, LOSS, SEED = 8, 100, 0.03, 7
"""Delay and rate of the path in each direction, the share of packets to the client that are lost, and the seed of the losses."""
CONGESTION = ("cubic", "bbr")
"""Congestion controls of frontage-cclb7-quic."""
SIZE = 2_000_000
ROUNDS = 6
"""Number of rounds. A round has a download from each server, in alternating order."""
WIRE = ROOT / "mininet" / "src" / "frontage_testbed" / "data" / "wire.p4"


@contextlib.contextmanager
def lossy_link(folder: Path, clients: int) -> Iterator[None]:
    """Link both namespaces through a softswitch, whose links have delay, rate and loss."""
    wire = folder / "wire.json"
    subprocess.run([program("SOFTSWITCH_P4C", "softswitch-p4c"), "-o", wire, WIRE], check=True)
    with namespace() as between:
        inside = " ".join(enter(between))
        run(f"ip link add server type veth peer name to-server netns {between}")
        run(f"{inside} ip link add to-client type veth peer name client netns {clients}")
        # Without IPv6, the kernel between the servers and the clients does not send packets of its own.
        run(f"{inside} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for interface in ("lo", "to-server", "to-client"):
            run(f"{inside} ip link set {interface} up")
        limits = f"delay={DELAY_MS}ms,rate={RATE_MBIT}mbit"
        options = [
            "--seed",
            str(SEED),
            "-i",
            "2@to-server",
            "-i",
            "3@to-client",
            "--link",
            f"2:{limits}",
            "--link",
            f"3:{limits},loss={LOSS}",
        ]
        command: list[str | Path] = [
            *enter(between),
            program("SOFTSWITCH", "softswitch"),
            wire,
            *options,
            "--",
            "--grpc-server-addr",
            "127.0.0.1:9559",
        ]
        with (folder / "wire.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as switch:
            try:
                yield
            finally:
                switch.kill()


def rate(server: Server) -> float:
    """Return the rate of a download in Mbit/s, which includes the handshake.

    The client has its default windows: with those of the other benchmarks, each loss stops the download for a round trip.
    """
    before = time.monotonic()
    server.testbed.download(server.port, SIZE, 1, window=())
    return 8e-6 * SIZE / (time.monotonic() - before)


def measure() -> list[Row]:
    root = nginx.nginx_root()
    with start_testbed(lossy_link, [SIZE]) as testbed, contextlib.ExitStack() as servers:
        compared, peer = [], None
        for number, congestion in enumerate(CONGESTION):
            ours = testbed.cclb7_quic(congestion, PORT - number, cookie=True, fields=f'congestion = "{congestion}"\n')
            compared.append(servers.enter_context(ours))
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            peer = nginx.version(root)
            compared.append(servers.enter_context(serve_nginx(testbed, root)))
        rates: list[list[float]] = [[] for _ in compared]
        for number in range(ROUNDS):
            order = list(zip(compared, rates, strict=True))
            for server, own_rates in order if number % 2 == 0 else reversed(order):
                own_rates.append(rate(server))
        # Each download has the same size, so the harmonic mean is all bytes divided by the whole time.
        values = [harmonic_mean(own_rates) for own_rates in rates]
    names = [f"quic_server_rate_with_loss_{congestion}" for congestion in CONGESTION]
    return [row(name, value, "Mbit/s", peer, *values[len(names) :]) for name, value in zip(names, values, strict=False)]


if __name__ == "__main__":
    finish(measure)
