# SPDX-License-Identifier: Apache-2.0
"""QUIC connections behind three edge switches: none breaks or moves when switches fail, drain, or get another program, and when
servers and keys change.

Half of our clients migrate to their server's cookie address; switches find the others by the connection ids that servers choose.
ngtcp2's client and aioquic migrate, too, and curl does not.
Short requests begin all the time, so that each change meets handshakes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fleetevents import DRAINED, END
from quicfleets import DOWNLOADS, EACH, EARLY, SPARE, SWITCHES, THIRD_PARTY, TO_DRAIN, TO_REMOVE, make_plan, observe
from testbeds import needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=105)]


def test_quic_connections_survive_changes_of_the_fleet(tmp_path: Path) -> None:
    if missing := [client.missing for client in THIRD_PARTY if client.missing]:
        pytest.skip("; ".join(missing))
    result = observe(tmp_path)
    print(result.events, result.packets, Counter(r.outcome for r in result.requests))
    print(result.table())
    assert len(result.requests) == len(make_plan())
    assert Counter(r.outcome for r in result.downloads()) == {"ok": DOWNLOADS}
    assert [r for r in result.requests if r.outcome != "ok"] == []
    others = [(d.client, d.outcome) for d in result.third_party]
    assert Counter(others) == {(client.name, "ok"): EACH for client in THIRD_PARTY}
    last = result.events.ended[END]
    assert last < min(r.finished for r in result.downloads()), "the downloads outlast all actions"
    assert last < min(d.finished for d in result.third_party), "the third-party clients' downloads outlast all actions"
    assert result.early == ["ok"] * EARLY
    assert TO_REMOVE.name in result.early_servers, "the server that is removed has served connections"
    assert TO_REMOVE.name not in {r.server for r in result.requests}
    assert len(result.packets) == SWITCHES
    assert all(result.packets.values()), "each switch serves packets"
    late = [r for r in result.requests if r.index >= DOWNLOADS and r.started > result.events.ended[DRAINED]]
    assert SPARE.name in {r.server for r in late}, "the added server gets connections"
    assert TO_DRAIN.name not in {r.server for r in late if r.index in result.new_ports}, (
        "the draining server gets no new connections"
    )
