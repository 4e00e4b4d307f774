# SPDX-License-Identifier: Apache-2.0
"""How many connections without a cookie break when a fleet changes, with the second hop and without it.

Where switches answer SYNs, half of the clients send TCP timestamps, otherwise none does.
Servers without agents ignore the mark of the second hop, and reset connections that they do not know.
"""

from pathlib import Path

import pytest

from fleets import SETTINGS, observe
from frontage_testbed.datacentre.addresses import VIP4
from testbeds import needs_root, only_long

pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=150),
    only_long,
]

DOWNLOADS = 1000


def test_no_connection_without_a_cookie_breaks_with_agents(tmp_path: Path) -> None:
    result = observe(tmp_path, VIP4, DOWNLOADS, lambda _: False)
    broken = result.broken_by_event(DOWNLOADS)
    print({event: f"{count} of {DOWNLOADS} break" for event, count in broken.items()}, "refused:", result.refused)
    print("convergence in seconds:", result.convergence())
    assert not any(broken.values())
    assert result.resets == [0] * SETTINGS.servers
    assert result.refused


def test_no_connection_without_a_cookie_breaks_while_switches_answer_syns(tmp_path: Path) -> None:
    result = observe(tmp_path, VIP4, DOWNLOADS, lambda client: client % 2 == 0, defended=True)
    broken = result.broken_by_event(DOWNLOADS)
    print({event: f"{count} of {DOWNLOADS} break" for event, count in broken.items()}, "refused:", result.refused, result.syns)
    print("convergence in seconds:", result.convergence())
    print(result.events, [r for r in result.requests if r.outcome != "ok"])
    assert not any(broken.values())
    assert {r.outcome for r in result.early} == {"ok"}
    assert [r for r in result.requests if r.outcome != "ok"] == []
    # The counts of switches that restarted are lost.
    assert result.syns["completed"] > DOWNLOADS / 10
    assert not result.syns["passed"]
    assert result.refused


def test_connections_without_a_cookie_break_without_agents(tmp_path: Path) -> None:
    result = observe(tmp_path, VIP4, DOWNLOADS, lambda _: False, agents=False)
    broken = result.broken_by_event(DOWNLOADS)
    print({event: f"{count} of {DOWNLOADS} break" for event, count in broken.items()})
    assert broken["switch killed"] > DOWNLOADS / 50
