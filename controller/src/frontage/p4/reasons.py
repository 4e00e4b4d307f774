# SPDX-License-Identifier: Apache-2.0
"""Names of counter indices, read from ``drop.p4`` and ``outcome.p4`` of the P4 program.

A wheel contains these two files; a checkout has them in ``p4src/include``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from frontage.cookie import IP6_SIGNAL, RPT_UNIT_US
from frontage.limits import RANK_BANDS

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[4] / "p4src" / "include")
_DEFINE = re.compile(r"^#define (?P<kind>[A-Z]+)_(?P<name>\w+) (?P<number>\d+) // (?P<text>.+)$", re.MULTILINE)


class Reason(NamedTuple):
    """The meaning of a counter index."""

    name: str
    text: str


def drops() -> dict[int, Reason]:
    """Return the drop reasons: the indices of ``FrontageIngress.drops`` and ``FrontageEgress.egress_drops``."""
    return _read("drop.p4", "DROP")


def outcomes() -> dict[int, Reason]:
    """Return the outcomes of packets to VIPs: the indices of ``FrontageIngress.outcomes``."""
    return _read("outcome.p4", "OUTCOME")


def claims() -> dict[int, Reason]:
    """Return the results of insertions into the connection table and the handshake table: the indices of their counters."""
    return _read("outcome.p4", "CLAIM")


def segments() -> dict[int, Reason]:
    """Return what happens to the maximum segment size of SYNs and SYN-ACKs: the indices of ``FrontageIngress.mss.segments``."""
    return _read("outcome.p4", "MSS")


def limit_kinds() -> dict[int, Reason]:
    """Return the kinds of limits: with the id of the VIP, the indices of the packets that limits refused."""
    return _read("outcome.p4", "LIMIT")


def syn_kinds() -> dict[int, Reason]:
    """Return the kinds of packets of the defence against SYN floods: with the id of the VIP, the indices of their counter."""
    return _read("outcome.p4", "SYNS")


def bands() -> dict[int, Reason]:
    """Return the bands of eight ranks, named by their lowest RPT in microseconds: the indices of AIFO's refusals."""
    least = [IP6_SIGNAL.decode(8 * band) * RPT_UNIT_US for band in range(RANK_BANDS)]
    return {band: Reason(str(rpt), f"remaining processing time of {rpt} us or more") for band, rpt in enumerate(least)}


@cache
def _read(file: str, kind: str) -> dict[int, Reason]:
    path = next((folder / file for folder in _FOLDERS if (folder / file).exists()), None)
    if path is None:
        raise FileNotFoundError(f"{file}: not found in {' or '.join(map(str, _FOLDERS))}: install the package again")
    return {
        int(match["number"]): Reason(match["name"].lower().replace("_", "-"), match["text"])
        for match in _DEFINE.finditer(path.read_text(encoding="utf-8"))
        if match["kind"] == kind and match["name"] != "NONE"
    }
