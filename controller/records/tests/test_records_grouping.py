# SPDX-License-Identifier: Apache-2.0
"""Grouping of records: few groups at low cost."""

from __future__ import annotations

import numpy as np
import pytest

from frontage_records.grouping import Grouping, WantedPlacements, group


def wanted(rows: list[list[int]], reads: float = 10, writes: float = 1, sites: int = 6) -> WantedPlacements:
    """Build placements from lists of columns, the home first."""
    table = np.zeros((len(rows), sites), np.bool_)
    for row, columns in zip(table, rows, strict=True):
        row[columns] = True
    every = np.ones(len(rows), np.float32)
    return WantedPlacements(table, np.array([row[0] for row in rows]), every * np.float32(reads), every * np.float32(writes))


def cost(placements: WantedPlacements, found: Grouping) -> float:
    have = found.sites[found.group_of]
    share = placements.reads / placements.sites.sum(1)
    away = (found.home[found.group_of] != placements.home) * placements.writes
    return float(((placements.sites & ~have).sum(1) * share + (have & ~placements.sites).sum(1) * placements.writes + away).sum())


def test_placements_within_limit_are_kept() -> None:
    found = group(wanted([[0, 1, 2], [2, 1, 0], [0, 1, 2], [3, 4, 5]]), 3, 3)
    lists = found.lists([1, 2, 3, 4, 5, 6])
    assert [lists[i] for i in found.group_of] == [(1, 2, 3), (3, 1, 2), (1, 2, 3), (4, 5, 6)]


def test_single_group_has_sites_worth_their_cost() -> None:
    rare = group(wanted([[0, 1, 2], [0, 1, 2], [0, 1, 3]], reads=3, writes=1), 1, 3)
    assert rare.lists(list(range(6))) == [(0, 1, 2)], "site 3: one read, for two records' writes"
    popular = group(wanted([[0, 1, 2], [0, 1, 2], [0, 1, 3]], reads=30, writes=1), 1, 3)
    assert popular.lists(list(range(6))) == [(0, 1, 2, 3)]


def test_groups_have_at_least_f_sites() -> None:
    found = group(wanted([[0, 1, 2], [3, 4, 5], [1, 2, 4]], reads=0.001, writes=100), 1, 3)
    assert found.sites.sum() == 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_groups_cost_less_and_enough_cost_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [random.choice(12, 4, replace=False).tolist() for _ in range(200)]
    placements = wanted(rows, sites=12)
    costs = [cost(placements, group(placements, most, 3)) for most in (1, 10, 50, 200)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0
    assert all((group(placements, most, 3).sites.sum(1) >= 3).all() for most in (1, 10))


def test_grouping_is_deterministic() -> None:
    random = np.random.default_rng(7)
    placements = wanted([random.choice(12, 4, replace=False).tolist() for _ in range(100)], sites=12)
    one, other = group(placements, 9, 3), group(placements, 9, 3)
    assert np.array_equal(one.group_of, other.group_of)
    assert np.array_equal(one.sites, other.sites)


def test_invalid_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="give at least one record"):
        group(wanted([[0, 1]]), 1, 7)
    with pytest.raises(ValueError, match="at least one"):
        group(wanted([[0, 1]]), 0, 1)
