# SPDX-License-Identifier: Apache-2.0
"""Cost of CloudCookies for a QUIC server.

Runs of frontage-cclb7-quic with and without [cookie] alternate. The code of the signals is also measured alone, per packet.
"""

from __future__ import annotations

from statistics import median, quantiles

from http3 import SIZES, Run, Testbed, start_testbed
from rows import Row, finish, rates, row

ROUNDS = 60
CYCLES = 2
"""Cycles of a round. A cycle has four runs: without, with, with and without [cookie], so a drift affects both alike."""
WITHOUT = "the same server without [cookie]"


def rounds(testbed: Testbed, size: int, requests: int) -> list[tuple[Run, Run]]:
    """Return the median run without and with [cookie] of each round.

    Each round starts new servers, because the addresses of a process in memory change its speed by some per cent.
    """
    result = []
    for _ in range(ROUNDS):
        with testbed.cclb7_quic("plain", 4433, cookie=False) as plain, testbed.cclb7_quic("cookie", 4434, cookie=True) as cookie:
            for server in (plain, cookie):
                server.measure(size, requests)  # fills the caches
            runs: tuple[list[Run], list[Run]] = ([], [])
            for server in (plain, cookie, cookie, plain) * CYCLES:
                runs[server is cookie].append(server.measure(size, requests))
        result.append((_median(runs[0]), _median(runs[1])))
    return result


def _median(runs: list[Run]) -> Run:
    """Return the medians of several runs, which exclude runs that other processes disturbed."""
    return Run(int(median(run.core_ns for run in runs)), int(median(run.packets for run in runs)))


def compare(name: str, measured: list[tuple[Run, Run]]) -> list[Row]:
    ours, theirs = (median(both[n].core_ns / both[n].packets for both in measured) for n in (1, 0))
    # Compare the same downloads: the number of packets may differ.
    more = [100 * (cookie.core_ns / plain.core_ns - 1) for plain, cookie in measured]
    low, middle, high = quantiles(more, n=4)
    return [
        row(f"quic_signals_{name}_core_time", ours, "ns/packet", WITHOUT, theirs),
        row(f"quic_signals_{name}_overhead", middle, "% of core time"),
        row(f"quic_signals_{name}_overhead_low", low, "% of core time"),
        row(f"quic_signals_{name}_overhead_high", high, "% of core time"),
    ]


def measure() -> list[Row]:
    own = rates("signals")
    rows = [row(f"quic_signals_own_{which}", value, "ns/packet") for which, value in own.items()]
    with start_testbed() as testbed:
        for name, (size, requests) in SIZES.items():
            rows += compare(name.replace(" ", ""), rounds(testbed, size, requests))
    return rows


if __name__ == "__main__":
    finish(measure)
