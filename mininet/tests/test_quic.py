# SPDX-License-Identifier: Apache-2.0
"""QUIC through the whole data centre: third-party clients download from `frontage-cclb7-quic` through the switch, and no
connection breaks when keys, switch and servers change.
"""

from pathlib import Path
from typing import Any

import pytest

from frontage.config import edit, loads
from frontage.config.key_file import key_file, replace
from frontage_testbed.datacentre.addresses import QUIC_VIP4
from frontage_testbed.datacentre.settings import TARGETS, Settings
from frontage_testbed.sandbox import Sandbox
from quicclients import Client
from quicrounds import BROKEN, SIZE, Rounds, drops, wait_until
from testbeds import Sandboxed, deployment, long_except, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=130)]

CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("curl", follows=False, vip=QUIC_VIP4),
)
# A single download takes some seconds.
SETTINGS = Settings(servers=3, clients=len(CLIENTS), policies=("cclb4",), bottleneck_rate=16_000_000, queue_delay=0.1)


def alone(rounds: Rounds) -> list[dict[str, Any]]:
    """Download with one client after the other, and return the results with the steering counters."""
    return [rounds.alone(client) | {"follows": client.follows} for client in rounds.clients]


def servers_first(rounds: Rounds) -> dict[str, Any]:
    """Rotate keys in the wrong order: the servers use a key before the switch has it."""
    edge = rounds.testbed.edge
    text = edit.rotate_key(edge.config.read_text(), edge.config.parent)

    def act() -> None:
        replace(rounds.testbed.key_file, key_file(loads(text, edge.config)))
        rounds.testbed.reload_keys()
        wait_until(lambda: drops(rounds.testbed).get("cookie-source", 0) > 0, "the switch drops packets with the unknown key")
        replace(edge.config, text)

    return {"downloads": rounds.meanwhile(act), "drops": drops(rounds.testbed)}


def restart(rounds: Rounds) -> list[dict[str, Any]]:
    """Restart the switch, which is then programmed again."""

    def act() -> None:
        rounds.testbed.edge.stop_switch()
        rounds.testbed.edge.start_switch()

    return rounds.meanwhile(act)


def drain(rounds: Rounds) -> dict[str, Any]:
    """Drain the busiest server."""
    testbed = rounds.testbed
    before = rounds.packets("down")
    drained: list[str] = []

    def act() -> None:
        sent = {name: count - before[name] for name, count in rounds.packets("down").items()}
        busiest = max(testbed.server_addresses, key=lambda server: sent[server.name])
        testbed.edge.drain(busiest)
        drained.append(busiest.name)

    def answered() -> int:
        wait_until(lambda: sum(testbed.answers().values()) == rounds.done, "the servers' logs are complete")
        return testbed.answers()[drained[0]]

    downloads = rounds.meanwhile(act)
    counts = [answered()]
    later = [rounds.finish(rounds.start(client)) for client in rounds.clients]
    return {"downloads": downloads, "later": later, "answered": [*counts, answered()]}


@pytest.mark.parametrize("target", long_except(("softswitch", "bmv2"), TARGETS))
def test_downloads_survive_rotation_restart_and_drain(tmp_path: Path, target: str) -> None:
    settings = SETTINGS.on(target)
    parts = deployment(settings)
    # All are needed: clients at preferred addresses and clients at the VIP depend on different mechanisms.
    if missing := {client.missing for client in CLIENTS} - {None}:
        pytest.skip(f"missing HTTP/3 clients: {', '.join(sorted(missing))}")

    def body(box: Sandbox) -> object:
        with parts.quic_testbed(settings, box) as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()
            rounds = Rounds(testbed, CLIENTS)
            return {
                "alone": alone(rounds),
                "rotation": {"downloads": rounds.meanwhile(testbed.rotate_key), "drops": drops(testbed)},
                "servers first": servers_first(rounds),
                "restart": restart(rounds),
                "drain": drain(rounds),
            }

    result = Sandboxed(body, tmp_path).result()
    downloads = {
        "alone": result["alone"],
        "rotation": result["rotation"]["downloads"],
        "servers first": result["servers first"]["downloads"],
        "restart": result["restart"],
        "drain": result["drain"]["downloads"],
        "after the drain": result["drain"]["later"],
    }
    for name, dones in downloads.items():
        assert len(dones) == len(CLIENTS), name
        for done in dones:
            assert (done["status"], done["right"]) == (0, True), (name, done)
            assert len(done["sources"]) == 1, (name, "one connection each", done)
            assert done["wrong"] == [], (name, done)

    for done in result["alone"]:
        address, cid = done["steering"].get("retrieved-address", 0), done["steering"].get("retrieved-cid", 0)
        if done["follows"]:
            assert address > cid, done
            assert sum(map(len, done["sources"].values())) == 2, done
        else:
            assert address == 0 and cid > 100, done
            assert sum(map(len, done["sources"].values())) == 1, done

    # With the switch first and the servers second, no packet of a connection is dropped.
    assert not BROKEN & result["rotation"]["drops"].keys(), result["rotation"]["drops"]
    assert result["servers first"]["drops"]["cookie-source"] > 0
    before, after = result["drain"]["answered"]
    assert before == after, "a draining server answers no new connections"
