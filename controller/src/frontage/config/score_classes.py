# SPDX-License-Identifier: Apache-2.0
"""The score classes of CCLB4 that a configuration needs (CloudCookie, equation 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from frontage.config.vips import START_SHARES, Server, Vip


class ScoreClass(NamedTuple):
    """Alpha, and the lowest weight of a VIP divided by that of a server. The scores of the server depend on both."""

    alpha: float
    share: Fraction


def score_classes(vips: Iterable[Vip], servers: Sequence[Server]) -> list[ScoreClass]:
    """Return the score classes of servers, and those that they have in slow start."""
    vips = list(vips)
    starts = {vip.name: START_SHARES if vip.slow_start and vip.policy.weighs_loads else () for vip in vips}
    found: dict[ScoreClass, None] = {}
    for server, whole in _whole_classes(vips, servers):
        for percent in (100, *starts[server.vip]):
            found[_at(whole, percent)] = None
    return list(found)


def server_classes(vips: Iterable[Vip], servers: Sequence[Server]) -> dict[int, ScoreClass]:
    """Return the score class of each server now, by SID."""
    vips = list(vips)
    weighs = {vip.name: vip.policy.weighs_loads for vip in vips}
    return {server.sid: _at(whole, server.share if weighs[server.vip] else 100) for server, whole in _whole_classes(vips, servers)}


def _whole_classes(vips: Iterable[Vip], servers: Sequence[Server]) -> Iterator[tuple[Server, ScoreClass]]:
    """Yield each server with its score class outside of slow start."""
    lightest: dict[str, int] = {}
    for server in servers:
        lightest[server.vip] = min(server.weight, lightest.get(server.vip, server.weight))
    alphas = {vip.name: vip.effective_alpha for vip in vips}
    known: dict[tuple[str, int], ScoreClass] = {}
    for server in servers:
        key = server.vip, server.weight
        if key not in known:
            known[key] = ScoreClass(alphas[server.vip], Fraction(lightest[server.vip], server.weight))
        yield server, known[key]


def _at(whole: ScoreClass, percent: int) -> ScoreClass:
    return whole if percent == 100 else ScoreClass(whole.alpha, whole.share * 100 / percent)
