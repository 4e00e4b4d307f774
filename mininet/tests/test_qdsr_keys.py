# SPDX-License-Identifier: Apache-2.0
"""Real servers without the key of the client's cookie address (docs/handoff.md, Failures): their balancer answers until
they have the key.
"""

from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from qdsrgets import FIRST, TRIES, Get
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

OBJECT = 700_000
SETTINGS = Settings(servers=3, clients=1, policies=("cclb4",))


def refused(testbed: QdsrTestbed) -> float:
    """Return the requests that real servers rejected because they could not send from the client's address."""
    return testbed.agent(testbed.balancer).total("frontage_cclb7_quic_real_server_rejected_total", reason="path")


def get(testbed: QdsrTestbed) -> dict[str, Any]:
    """Download two objects from a cookie address, and return the rejections and the real servers' packets."""
    before, packets = refused(testbed), sum(testbed.packets_by_real_server().values())
    lines = Get(testbed, 0, (FIRST, OBJECT, OBJECT), "--follow").finish()
    return {
        "right": [line["right"] for line in lines],
        "refused": refused(testbed) - before,
        "packets": sum(testbed.packets_by_real_server().values()) - packets,
    }


def both_keys(testbed: QdsrTestbed) -> dict[str, list[dict[str, Any]]]:
    """Rotate the key, and reload it in the real servers later than in the switch and the balancer."""
    testbed.edge.rotate_key()
    testbed.edge.write_keys(testbed.key_file)
    testbed.reload_keys([testbed.balancer])
    without: list[dict[str, Any]] = []
    # The balancer reloads its keys asynchronously.
    while not without or (not without[-1]["refused"] and len(without) < TRIES):
        without.append(get(testbed))
    testbed.reload_keys(testbed.real_servers)
    after: list[dict[str, Any]] = []
    while not after or (not after[-1]["packets"] and len(after) < TRIES):
        after.append(get(testbed))
    return {"without": without, "after": after}


def test_balancer_answers_until_real_servers_have_the_key(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.qdsr_testbed(SETTINGS, box) as testbed:
            testbed.offer_objects([FIRST, OBJECT])
            testbed.wait_until_ready()
            return {"before": [get(testbed)]} | both_keys(testbed)

    result = Sandboxed(body, tmp_path).result()
    for lines in result.values():
        assert all(all(line["right"]) for line in lines), result
    last = result["without"][-1]
    assert last["refused"] > 0 == last["packets"], "without the key they cannot make the address"
    last = result["after"][-1]
    assert last["packets"] > 0 == last["refused"], "with the key they send"
