# SPDX-License-Identifier: Apache-2.0
"""The table of the measurement, and its place in docs/health.md."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from .measure import CHECK, RATE, REQUEST_TIMEOUT, SETTINGS, SLOWNESS, Repetition

BEGIN, END = "<!-- detection: written by make detection -->", "<!-- end of detection -->"

_DESCRIPTIONS = {
    "killed": "process killed: connection refused",
    "cut off": "link of the server down",
    "stopped": "process stopped: accepts, but does not respond",
    "unavailable": "status 503",
    "slow": f"slow: responds after up to {SLOWNESS:g} s",
}


def markdown(found: Mapping[str, Sequence[Repetition]]) -> str:
    """Return the table, with a paragraph about its conditions."""
    count = min(len(ones) for ones in found.values())
    lines = [
        f"{SETTINGS.servers} nginx servers are behind softswitch, under policy `{SETTINGS.policies[0]}`.",
        f"Their checks are of kind `{CHECK['kind']}`, with an interval and a timeout of {CHECK['interval']} s, `fall: {CHECK['fall']}` "
        f"and `rise: {CHECK['rise']}`.",
        f"A client sends {RATE:g} requests per second, each over a new connection.",
        f"A request fails without a response of status 2xx within {REQUEST_TIMEOUT:g} s.",
        "",
        f"| fault | detected, median | detected, worst of {count} | written, worst | failed requests, median | failed requests, worst |",
        "|---|---|---|---|---|---|",
    ]
    for name, ones in found.items():
        detected, written, failed = ([one[i] for one in ones] for i in range(3))
        row = (
            _DESCRIPTIONS[name],
            f"{statistics.median(detected):.2f} s",
            f"{max(detected):.2f} s",
            f"{max(written):.2f} s",
            f"{statistics.median(failed):g}",
            f"{max(failed):g}",
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def write(text: str, page: Path) -> None:
    """Replace the table in a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
