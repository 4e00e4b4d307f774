"""What makes `make clients` fail."""

from typing import Any

from run import wrong


def runs(**other: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"it": {"version": "1", "runs": {"undisturbed": {"whole": True, "unexpected": []}} | other}}


def test_what_is_up_to_switch_and_server_must_be_whole() -> None:
    torn = {"whole": False, "unexpected": []}
    assert wrong(runs()) == []
    for kind in ("undisturbed", "rebound", "unreachable"):
        assert [line.split(":")[0] for line in wrong(runs(**{kind: torn}))] == [f"it, {kind}"]
    # Many a client cannot change its address, which is nobody else's fault.
    assert wrong(runs(readdressed=torn, migrating=torn)) == []


def test_no_address_may_be_seen_but_two() -> None:
    leak = {"whole": True, "unexpected": ["fd00::1"]}
    assert wrong(runs(readdressed=leak)) == ["it, readdressed: was sent something from fd00::1"]


def test_a_client_that_is_not_here_is_not_wrong() -> None:
    assert wrong({"it": {"install": "make it"}}) == []
