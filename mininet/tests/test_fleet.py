# SPDX-License-Identifier: Apache-2.0
"""Per-connection consistency behind three edge switches: connections neither break nor move when switches fail, drain, or get
another program, and when servers and keys change.

The two directions of most connections pass through different switches, and each change of the routes moves many connections to
another switch. Half of the clients send no TCP timestamps, so that their connections carry no cookie.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from fleetevents import DRAINED, END
from fleets import EARLY, LENGTH, SETTINGS, SPARE, SWITCHES, TO_DRAIN, TO_REMOVE, make_plan, observe
from frontage_testbed.datacentre.addresses import VIP4, VIP6
from testbeds import needs_root, only_long

pytestmark = [needs_root, pytest.mark.slow(seconds=150)]

DOWNLOADS = 1000 if "LONG" in os.environ else 250


@pytest.mark.parametrize("vip", [pytest.param(VIP4, id="IPv4"), pytest.param(VIP6, id="IPv6", marks=only_long)])
def test_connections_survive_changes_of_the_fleet(tmp_path: Path, vip: str) -> None:
    result = observe(tmp_path, vip, DOWNLOADS, lambda client: client % 2 == 0)
    print(result.events, result.packets, "refused:", result.refused, "convergence in seconds:", result.convergence())
    print("broken:", result.broken_by_event(DOWNLOADS))
    assert len(result.requests) == len(make_plan(DOWNLOADS))
    assert Counter(r.outcome for r in result.downloads(DOWNLOADS)) == {"ok": DOWNLOADS}
    assert [r for r in result.requests if r.outcome != "ok"] == []
    assert result.events.ended[END] < LENGTH, "the resets are counted before the first download ends"
    assert [r.outcome for r in result.early] == ["ok"] * EARLY
    assert TO_REMOVE.name in {r.server for r in result.early}, "the server that is removed has served connections"
    assert TO_REMOVE.name not in {r.server for r in result.requests}
    # A server resets connections that neither it nor another server knows.
    assert result.resets == [0] * SETTINGS.servers
    assert result.refused, "connections without a cookie needed their second hop"
    assert len(result.packets) == SWITCHES
    assert all(result.packets.values()), "each switch serves packets"
    late = [r for r in result.requests if r.index >= DOWNLOADS]
    spare, drained = {s.name for s in SPARE}, {s.name for s in TO_DRAIN}
    assert spare <= {r.server for r in late}, "added servers get connections"
    assert not drained & {r.server for r in late if r.started > result.events.ended[DRAINED]}, (
        "draining servers get no new connections"
    )
