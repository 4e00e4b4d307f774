# SPDX-License-Identifier: Apache-2.0
"""Nanoseconds per TCP acknowledgment: ``frontage.p4`` in process, beside katran's XDP program in the kernel.

Both balance one service on the same number of servers, and the acknowledgments belong to as many connections.
katran must be a source tree: set KATRAN to its path. Compiling it requires clang and the headers of libbpf.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from statistics import median

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

import libbpf
from libbpf import LRU_HASH, Object
from paths import ROOT, WORK
from pipeline import pipeline_speeds
from rows import Row, finish, row
from sites import SERVERS, VIP, frontage

NO_KATRAN = "no katran to compare with: set KATRAN to the path of its source tree"
CONNECTIONS = 1000
FIRST_PORT = 10_000
PORT = 80
XDP_TX = 3
RUNS = 5
PACKETS = 1_000_000
"""Per run."""
WARM_UP = 2 * CONNECTIONS
"""The first packet of each connection is not in katran's connection table."""

RING = 65_537
"""Places of a service's hash ring."""
CONNECTION_TABLE = 1_000_000
"""Connections per core."""
FLOW_KEY, FLOW_VALUE = 40, 16
"""Sizes of struct flow_key and struct real_pos_lru."""
STATISTICS = 16
"""Size of struct lb_stats: packets and bytes."""


def compile_program(source: Path) -> Path:
    """Compile katran with the code that prepares the next packet. Raises CalledProcessError or FileNotFoundError."""
    clang = shutil.which("clang")
    if clang is None:
        raise FileNotFoundError("clang is missing: install the package clang")
    if not (source / "katran" / "lib" / "bpf" / "balancer.bpf.c").is_file():
        raise FileNotFoundError(f"{source} does not contain katran/lib/bpf/balancer.bpf.c: set KATRAN to a source tree of katran")
    WORK.mkdir(parents=True, exist_ok=True)
    target = WORK / "katran.bpf.o"
    options = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-w", "-D__KERNEL__"]
    constants = [f"-DFIRST_PORT={FIRST_PORT}", f"-DCONNECTIONS={CONNECTIONS}"]
    # The headers of the C library need to know the architecture of the machine.
    machine = os.uname().machine
    includes = [f"-D__{machine}__", "-I", str(source), "-I", f"/usr/include/{machine}-linux-gnu"]
    subprocess.run(
        [clang, *options, *constants, *includes, "-c", str(ROOT / "bench" / "bpf" / "katran.bpf.c"), "-o", str(target)], check=True
    )
    return target


def configure(katran: Object) -> None:
    """Write a service with its servers, as katran's controller does. Servers are reached through IPv4 tunnels."""
    number = struct.Struct("=I")
    service = struct.pack("!4s12xHBx", socket.inet_aton(VIP), PORT, socket.IPPROTO_TCP)
    katran.update("vip_map", service, struct.pack("=II", 0, 0))
    katran.update("ctl_array", number.pack(0), bytes.fromhex("0200000001020000"))
    for server in range(1, SERVERS + 1):
        katran.update("reals", number.pack(server), struct.pack("!4s12xB3x", socket.inet_aton(f"10.0.0.{server}"), 0))
    servers = [1 + place % SERVERS for place in range(RING)]
    random.Random(1).shuffle(servers)
    for place, server in enumerate(servers):
        katran.update("ch_rings", number.pack(place), number.pack(server))
    for core in range(os.cpu_count() or 1):
        table = libbpf.create_map(LRU_HASH, f"connections{core}", FLOW_KEY, FLOW_VALUE, CONNECTION_TABLE)
        katran.update("lru_mapping", number.pack(core), number.pack(table))


def balanced(katran: Object) -> int:
    """Return the number of packets that katran has sent to servers so far."""
    cores = libbpf.possible_cores()
    counts = [katran.lookup("reals_stats", struct.pack("=I", server), cores * STATISTICS) for server in range(1, SERVERS + 1)]
    return sum(packets for count in counts for packets, _ in struct.iter_unpack("=QQ", count))


def nanoseconds(katran: Object) -> float:
    """Return the time that katran takes per acknowledgment. Raises RuntimeError if it did not forward all."""
    acknowledgment = TCP(
        sport=FIRST_PORT, dport=PORT, flags="A", seq=1, ack=1, options=[("NOP", None)] * 2 + [("Timestamp", (1, 1))]
    )
    packet = bytes(Ether(dst="02:00:00:00:01:01", src="02:00:00:00:02:01") / IP(src="198.18.0.1", dst=VIP) / acknowledgment)
    katran.test_run("katran", packet, WARM_UP)
    before = balanced(katran)
    times = []
    for _ in range(RUNS):
        done, nothing = (katran.test_run(program, packet, PACKETS) for program in ("katran", "nothing"))
        if done.return_value != XDP_TX or nothing.return_value != XDP_TX:
            raise RuntimeError(f"katran did not forward a packet: it returned {done.return_value}")
        times.append(done.nanoseconds - nothing.nanoseconds)
    if balanced(katran) - before != RUNS * PACKETS:
        raise RuntimeError(f"katran sent {balanced(katran) - before} of {RUNS * PACKETS} packets to servers")
    return median(times)


def measure() -> list[Row]:
    [speeds] = pipeline_speeds(frontage())
    ours = 1e9 / speeds["up"].packets_per_second
    source = os.environ.get("KATRAN")
    if source is None:
        print(NO_KATRAN, file=sys.stderr)
        return [row("katran_acknowledgment_ns", ours, "ns")]
    katran = Object(compile_program(Path(source)))
    configure(katran)
    return [row("katran_acknowledgment_ns", ours, "ns", "katran", nanoseconds(katran))]


if __name__ == "__main__":
    finish(measure)
