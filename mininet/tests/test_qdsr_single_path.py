# SPDX-License-Identifier: Apache-2.0
"""Clients with a single path: packet numbers for long responses, and the choice between delegation and proxying
(docs/handoff.md, Clients with a single path).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from frontage_demo.handoff.testbed import ONE_PATH, Ground, Programs, Testbed
from frontage_demo.handoff.topology import OWDS, Triangle, delays
from frontage_testbed.metricsclient import parse
from frontage_testbed.nodes import NodeError
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=40)]

SHORT, LONG = 1_000, 4_000_000
SHORT_GETS = 8
RATE, SEED = 100, 7
"""Mbit/s towards the client, and seed of the links."""
NEAR = (20, 1, 20)
"""One-way delays in ms where the real server is close to the balancer."""
SERVER_METRICS = "127.0.0.1:9154"


@pytest.fixture(scope="module")
def programs() -> Programs:
    try:
        return Programs.of(REPOSITORY / "target" / "release")
    except NodeError as error:
        pytest.skip(str(error))


def short_gets(testbed: Testbed) -> dict[str, int]:
    """Return how many of several requests on one connection the balancer answered itself, by reason."""
    testbed.get(ONE_PATH, [SHORT] * SHORT_GETS)
    return {reason: testbed.kept(reason=reason) for reason in ("slower", "single_path")} | {"all": testbed.kept()}


def long_get(testbed: Testbed) -> dict[str, Any]:
    """Download a long object twice, and return how many requests for packet numbers that took."""
    folder = testbed.folder / "downloaded"
    folder.mkdir()
    testbed.get(ONE_PATH, [LONG, LONG], f"--output={folder}")
    page = parse(testbed.hosts["rs1"].run(["curl", "-s", f"http://{SERVER_METRICS}/metrics"]).stdout)
    original = (testbed.folder / "objects" / str(LONG)).read_bytes()
    return {
        "right": (folder / str(LONG)).read_bytes() == original,
        "requests": int(page.total("frontage_real_server_number_requests_total")),
        "kept": testbed.kept(),
    }


def observe(box: Sandbox, programs: Programs) -> dict[str, Any]:
    ground = Ground(Triangle, programs, box.scratch, [SHORT, LONG], server_fields=f'metrics = "{SERVER_METRICS}"')
    results: dict[str, Any] = {}
    try:
        settings: Mapping[str, tuple[tuple[int, ...], str]] = {
            "near": (NEAR, ""),
            "far": (OWDS["A"], ""),
            "far, delegate": (OWDS["A"], 'single_path = "delegate"\n'),
            "proxy": (NEAR, 'single_path = "proxy"\n'),
        }
        for name, (owd, fields) in settings.items():
            with ground.testbed(delays(owd), SEED, handoff=fields) as testbed:
                results[name] = short_gets(testbed)
        with ground.testbed(delays(OWDS["B"], f"rate={RATE}mbit"), SEED, handoff='single_path = "delegate"\n') as testbed:
            results["long"] = long_get(testbed)
    finally:
        ground.close()
    return results


@pytest.fixture(scope="module")
def observed(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("single-path")
    result: dict[str, Any] = Sandboxed(lambda box: observe(box, programs), folder).result()
    return result


def test_requests_are_delegated_where_the_real_server_is_near(observed: dict[str, Any]) -> None:
    assert observed["near"] == {"slower": 0, "single_path": 0, "all": 0}


def test_requests_are_proxied_once_delegation_proves_slower(observed: dict[str, Any]) -> None:
    # Requests are delegated until the real server's first report, which a busy machine delays.
    assert 0 < observed["far"]["slower"] < SHORT_GETS
    assert observed["far"]["all"] == observed["far"]["slower"]


def test_configuration_forces_either(observed: dict[str, Any]) -> None:
    assert observed["far, delegate"] == {"slower": 0, "single_path": 0, "all": 0}
    assert observed["proxy"] == {"slower": 0, "single_path": SHORT_GETS, "all": SHORT_GETS}


def test_long_response_requests_many_numbers_at_once(observed: dict[str, Any]) -> None:
    packets = 2 * LONG / 1200
    assert observed["long"]["right"] and observed["long"]["kept"] == 0
    assert 0 < observed["long"]["requests"] < packets / 10
