"""Scores: how CCLB4 weighs what servers report, as tables of products (CloudCookie, equation 1)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from frontage import limits
from frontage.config import Config
from frontage.cookie import IP6_SIGNAL

FLOW_UNIT = 16
"""What one flow weighs in a score at the VIP's lowest weight: room for fractions below, for 4,095 flows above."""

MAX_SCORE = 0xFFFE


class Scores(NamedTuple):
    """One score class: the score of every code of N_AF and of N_FF."""

    af: tuple[int, ...]
    ff: tuple[int, ...]


def scores(alpha: float, share: Fraction) -> Scores:
    """The products of equation 1, for a server whose weight is ``1 / share`` times the VIP's lowest."""
    af, ff = Fraction(alpha), 1 - Fraction(alpha)

    def row(factor: Fraction) -> tuple[int, ...]:
        unit = factor * share * FLOW_UNIT
        return tuple(min(int(unit * IP6_SIGNAL.decode(code) + Fraction(1, 2)), MAX_SCORE) for code in range(limits.SCORE_CODES))

    return Scores(row(af), row(ff))


def server_scores(config: Config) -> dict[int, Scores]:
    """The scores that each server (by SID) is judged with."""
    lightest: dict[str, int] = {}
    for server in config.servers:
        lightest[server.vip] = min(server.weight, lightest.get(server.vip, server.weight))
    alphas = {vip.name: vip.effective_alpha for vip in config.vips}
    known: dict[tuple[float, Fraction], Scores] = {}
    result: dict[int, Scores] = {}
    for server in config.servers:
        pair = alphas[server.vip], Fraction(lightest[server.vip], server.weight)
        if pair not in known:
            known[pair] = scores(*pair)
        result[server.sid] = known[pair]
    return result
