# SPDX-License-Identifier: Apache-2.0
"""Scores: the products by which CCLB4 weighs the load reports of servers (CloudCookie, equation 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from frontage import limits
from frontage.config.score_classes import score_classes, server_classes
from frontage.config.vips import Server, Vip
from frontage.cookie import IP6_SIGNAL

FLOW_UNIT = 16
"""The score of one flow at a server with the lowest weight of its VIP. It leaves room for fractions, and for 4,095 flows."""

MAX_SCORE = 0xFFFE


class Scores(NamedTuple):
    """The score of every code of N_AF and N_FF, for one score class."""

    af: tuple[int, ...]
    ff: tuple[int, ...]


def scores(alpha: float, share: Fraction) -> Scores:
    """Return the products of equation 1 for a server whose weight is ``1 / share`` times the lowest of its VIP."""
    af, ff = Fraction(alpha), 1 - Fraction(alpha)

    def row(factor: Fraction) -> tuple[int, ...]:
        unit = factor * share * FLOW_UNIT
        return tuple(min(int(unit * IP6_SIGNAL.decode(code) + Fraction(1, 2)), MAX_SCORE) for code in range(limits.SCORE_CODES))

    return Scores(row(af), row(ff))


_scores = cache(scores)


def server_scores(vips: Iterable[Vip], servers: Sequence[Server]) -> dict[int, Scores]:
    """Return the scores of each server now, by SID."""
    return {sid: _scores(*found) for sid, found in server_classes(vips, servers).items()}


def all_scores(vips: Iterable[Vip], servers: Sequence[Server]) -> list[Scores]:
    """Return the scores that servers have now or in slow start, each once."""
    return list(dict.fromkeys(_scores(*found) for found in score_classes(vips, servers)))
