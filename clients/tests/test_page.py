# SPDX-License-Identifier: Apache-2.0
"""The page contains the results of the runs."""

from typing import Any

import page


def run(**other: Any) -> dict[str, Any]:
    """Return an undisturbed download that followed the preferred address, with changes."""
    opening = {"datagrams": 1, "size": 1200, "destination_id": 18, "source_id": 17}
    steering = {"assigned-cclb4": 1, "retrieved-address": 900, "retrieved-cid": 4}
    plain = {"whole": True, "status": 0, "disturbed": False, "steering": steering, "vip": True, "cookies": 1}
    return plain | {"opening": opening, "unexpected": [], "clients": 1} | other


def row(**runs: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.2", "migrate": "--move", "runs": {"undisturbed": run(), "rebound": run(), "readdressed": run()} | runs}


def lines(rows: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Return the cells of the tables' rows, without their heads."""
    rendered = [line.strip("| ").split(" | ") for line in page.text(rows).splitlines() if line.startswith("|")]
    return [cells for cells in rendered if cells[0] not in ("client", "---")]


def test_row_shows_preferred_address_and_steering() -> None:
    stays = run(steering={"retrieved-address": 0, "retrieved-cid": 900}, cookies=0)
    mover, stayer = lines({"one": row(), "other": row(undisturbed=stays)})[:2]
    assert mover == ["one", "1.2", "1 x 1200", "18; 17", "taken", "cookie 900, ID 4", "VIP, cookie"]
    assert stayer == ["other", "1.2", "1 x 1200", "18; 17", "not taken", "ID 900", "VIP"]


def test_varying_lengths_are_shown_as_range() -> None:
    longer = run(opening={"datagrams": 2, "size": 1200, "destination_id": 20, "source_id": 17})
    assert lines({"one": row(rebound=longer)})[0][2:4] == ["1 to 2 x 1200", "18 to 20; 17"]


def test_unexpected_address_is_highlighted() -> None:
    assert lines({"one": row(undisturbed=run(unexpected=["fd00::1"]))})[0][-1] == "VIP, cookie, **fd00::1**"


def test_row_shows_outcomes_of_disturbed_downloads() -> None:
    stalls = run(whole=False, status=None, disturbed=True)
    breaks = run(whole=False, status=1, disturbed=True)
    moved = run(clients=2)
    kept = lines({"one": row(rebound=stalls, readdressed=breaks, unreachable=run(), migrating=moved)})[1]
    assert kept[2:] == ["whole", "stalls", "breaks off", "whole", "whole, by `--move`"]
    # A download that ended before its disturbance proves nothing, nor does one without the migration.
    kept = lines({"one": row(migrating=run())})[1]
    assert kept[3:] == ["ended too early", "ended too early", "-", "does not migrate, by `--move`"]


def test_missing_client_shows_install_command() -> None:
    for cells in lines({"one": {"install": "apt-get install one"}}):
        assert cells[:2] == ["one", "not installed: `apt-get install one`"] and set(cells[2:]) == {"-"}


def test_row_shows_share_of_real_servers() -> None:
    whole = {"whole": True, "status": 0, "balancer": 1_000_000, "real_servers": 3_000_000}
    assert lines({"one": row(), "other": row() | {"handed": whole}})[4:] == [
        ["one", "1.2", "-", "-"],
        ["other", "1.2", "whole", "75%"],
    ]
    nothing = {"whole": False, "status": None, "balancer": 0, "real_servers": 0}
    assert lines({"one": row() | {"handed": nothing}})[-1][2:] == ["stalls", "-"]
