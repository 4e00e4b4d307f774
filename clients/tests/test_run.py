"""What makes `make clients` fail."""

from typing import Any

from run import wrong


def run(**other: Any) -> dict[str, Any]:
    """Of a client that followed the preferred address, but for what is said otherwise."""
    return {"whole": True, "unexpected": [], "cookies": 1, "steering": {"retrieved-address": 900, "retrieved-cid": 4}} | other


def runs(**other: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"it": {"version": "1", "runs": {"undisturbed": run()} | other}}


def test_what_is_up_to_switch_and_server_must_be_whole() -> None:
    torn = run(whole=False)
    assert wrong(runs()) == []
    for kind in ("undisturbed", "rebound", "unreachable"):
        assert [line.split(":")[0] for line in wrong(runs(**{kind: torn}))] == [f"it, {kind}"]
    # Many a client cannot change its address, which is nobody else's fault.
    assert wrong(runs(readdressed=torn, migrating=torn)) == []


def test_no_address_may_be_seen_but_two() -> None:
    leak = run(unexpected=["fd00::1"])
    assert wrong(runs(readdressed=leak)) == ["it, readdressed: was sent something from fd00::1"]


def test_each_is_found_by_what_it_has() -> None:
    assert wrong(runs(unreachable=run(cookies=0, steering={"retrieved-cid": 900}))) == []
    for strange in (run(cookies=0), run(steering={"retrieved-cid": 900}), run(steering={})):
        assert [line.split(" by")[0] for line in wrong(runs(rebound=strange))] == ["it, rebound: found"]


def test_a_client_that_is_not_here_is_not_wrong() -> None:
    assert wrong({"it": {"install": "make it"}}) == []


def test_real_servers_send_what_is_theirs_and_all_of_it() -> None:
    handed = {"whole": True, "balancer": 0, "real_servers": 5}
    assert wrong({"it": {"handed": handed}}) == []
    for other in ({"whole": False}, {"balancer": 1}):
        assert [line.split(":")[0] for line in wrong({"it": {"handed": handed | other}})] == ["it, handed over"]
