# SPDX-License-Identifier: Apache-2.0
"""Scores: the products by which CCLB4 weighs the load reports of servers (CloudCookie, equation 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from frontage import limits
from frontage.config.vips import Server, Vip
from frontage.cookie import IP6_SIGNAL

FLOW_UNIT = 16
"""The score of one flow at a server with the lowest weight of its VIP. It leaves room for fractions, and for 4,095 flows."""

MAX_SCORE = 0xFFFE


class Scores(NamedTuple):
    """A score class: the score of every code of N_AF and N_FF."""

    af: tuple[int, ...]
    ff: tuple[int, ...]


def scores(alpha: float, share: Fraction) -> Scores:
    """Return the products of equation 1 for a server whose weight is ``1 / share`` times the lowest of its VIP."""
    af, ff = Fraction(alpha), 1 - Fraction(alpha)

    def row(factor: Fraction) -> tuple[int, ...]:
        unit = factor * share * FLOW_UNIT
        return tuple(min(int(unit * IP6_SIGNAL.decode(code) + Fraction(1, 2)), MAX_SCORE) for code in range(limits.SCORE_CODES))

    return Scores(row(af), row(ff))


def server_scores(vips: Iterable[Vip], servers: Sequence[Server]) -> dict[int, Scores]:
    """Return the scores of each server, by SID."""
    lightest: dict[str, int] = {}
    for server in servers:
        lightest[server.vip] = min(server.weight, lightest.get(server.vip, server.weight))
    alphas = {vip.name: vip.effective_alpha for vip in vips}
    known: dict[tuple[float, Fraction], Scores] = {}
    result: dict[int, Scores] = {}
    for server in servers:
        pair = alphas[server.vip], Fraction(lightest[server.vip], server.weight)
        if pair not in known:
            known[pair] = scores(*pair)
        result[server.sid] = known[pair]
    return result
