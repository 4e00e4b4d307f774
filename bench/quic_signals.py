# SPDX-License-Identifier: Apache-2.0
"""What CloudCookies cost a QUIC server: frontage-cclb7-quic with its [cookie] beside the same without, in turns, and what the signals' own
code takes a packet."""

from __future__ import annotations

from statistics import median, quantiles

from http3 import SIZES, Lab, Turn, lab
from rows import Row, finish, rates, row

ROUNDS = 60
TURNS = 2
"""A round's, of four each, without, with, with, without: what drifts hits both alike."""
WITHOUT = "the same server without [cookie]"


def rounds(here: Lab, size: int, requests: int) -> list[tuple[Turn, Turn]]:
    """Both halves of each round, the server without [cookie] first. A round has servers of its own: where a process happens to lie in
    memory makes some per cent, too."""
    result = []
    for _ in range(ROUNDS):
        with here.ours("plain", 4433, cookie=False) as plain, here.ours("cookie", 4434, cookie=True) as cookie:
            for server in (plain, cookie):
                server.turn(size, requests)  # fills what is cached
            halves: tuple[list[Turn], list[Turn]] = ([], [])
            for server in (plain, cookie, cookie, plain) * TURNS:
                halves[server is cookie].append(server.turn(size, requests))
        result.append((_middle(halves[0]), _middle(halves[1])))
    return result


def _middle(turns: list[Turn]) -> Turn:
    """So that a turn in which the machine did something else does not count."""
    return Turn(int(median(turn.core_ns for turn in turns)), int(median(turn.packets for turn in turns)))


def compare(name: str, measured: list[tuple[Turn, Turn]]) -> list[Row]:
    ours, theirs = (median(both[n].core_ns / both[n].packets for both in measured) for n in (1, 0))
    # Of the same downloads, whatever packets they came in.
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
    with lab() as here:
        for name, (size, requests) in SIZES.items():
            rows += compare(name.replace(" ", ""), rounds(here, size, requests))
    return rows


if __name__ == "__main__":
    finish(measure)
