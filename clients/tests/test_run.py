# SPDX-License-Identifier: Apache-2.0
"""The conditions under which `make clients` fails."""

from typing import Any

from run import failures


def run(**other: Any) -> dict[str, Any]:
    """Return the download of a client that followed the preferred address, with changes."""
    return {"whole": True, "unexpected": [], "cookies": 1, "steering": {"retrieved-address": 900, "retrieved-cid": 4}} | other


def runs(**other: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"it": {"version": "1", "runs": {"undisturbed": run()} | other}}


def test_downloads_that_depend_on_switch_and_server_must_be_complete() -> None:
    torn = run(whole=False)
    assert failures(runs()) == []
    for kind in ("undisturbed", "rebound", "unreachable"):
        assert [line.split(":")[0] for line in failures(runs(**{kind: torn}))] == [f"it, {kind}"]
    # Many clients cannot change their address, which is not an error.
    assert failures(runs(readdressed=torn, migrating=torn)) == []


def test_client_may_see_only_two_addresses() -> None:
    leak = run(unexpected=["fd00::1"])
    assert failures(runs(readdressed=leak)) == ["it, readdressed: received packets from fd00::1"]


def test_switch_must_find_client_by_expected_means() -> None:
    assert failures(runs(unreachable=run(cookies=0, steering={"retrieved-cid": 900}))) == []
    for strange in (run(cookies=0), run(steering={"retrieved-cid": 900}), run(steering={})):
        assert [line.split(" by")[0] for line in failures(runs(rebound=strange))] == ["it, rebound: found"]


def test_missing_client_is_not_a_failure() -> None:
    assert failures({"it": {"install": "make it"}}) == []


def test_real_servers_must_send_the_whole_body() -> None:
    handed = {"whole": True, "balancer": 0, "real_servers": 5}
    assert failures({"it": {"handed": handed}}) == []
    for other in ({"whole": False}, {"balancer": 1}):
        assert [line.split(":")[0] for line in failures({"it": {"handed": handed | other}})] == ["it, delegated"]
