# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that restart: no two callers get the same, and connections cannot take them."""

import subprocess
import sys

from frontage_testbed.ports import RANGE, reserve_ports

RESERVE = "from frontage_testbed.ports import reserve_ports; print(*reserve_ports(500)); input()"


def test_processes_get_different_ports_outside_the_kernels_range() -> None:
    others = [
        subprocess.Popen([sys.executable, "-c", RESERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ports = reserve_ports(500)
    for other in others:
        assert other.stdout is not None
        ports += map(int, other.stdout.readline().split())
    for other in others:
        other.communicate("\n")
    assert len(set(ports)) == len(ports) == 2000
    assert max(ports) < int(RANGE.read_text().split()[0])
