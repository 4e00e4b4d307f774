"""Grouping of placement: few, and worth their cost."""

from __future__ import annotations

import numpy as np
import pytest

from frontage_records.grouping import Grouping, WantedPlacements, group


def wanted(rows: list[list[int]], reads: float = 10, writes: float = 1, sites: int = 6) -> WantedPlacements:
    """Lists of columns, the home first."""
    table = np.zeros((len(rows), sites), np.bool_)
    for row, columns in zip(table, rows, strict=True):
        row[columns] = True
    every = np.ones(len(rows), np.float32)
    return WantedPlacements(table, np.array([row[0] for row in rows]), every * np.float32(reads), every * np.float32(writes))


def cost(world: WantedPlacements, found: Grouping) -> float:
    have = found.sites[found.of]
    share = world.reads / world.sites.sum(1)
    away = (found.home[found.of] != world.home) * world.writes
    return float(((world.sites & ~have).sum(1) * share + (have & ~world.sites).sum(1) * world.writes + away).sum())


def test_few_enough_placements_are_kept_as_they_are() -> None:
    found = group(wanted([[0, 1, 2], [2, 1, 0], [0, 1, 2], [3, 4, 5]]), 3, 3)
    lists = found.lists([1, 2, 3, 4, 5, 6])
    assert [lists[i] for i in found.of] == [(1, 2, 3), (3, 1, 2), (1, 2, 3), (4, 5, 6)]


def test_one_class_has_what_is_worth_it() -> None:
    rare = group(wanted([[0, 1, 2], [0, 1, 2], [0, 1, 3]], reads=3, writes=1), 1, 3)
    assert rare.lists(list(range(6))) == [(0, 1, 2)], "site 3: one read, for two records' writes"
    popular = group(wanted([[0, 1, 2], [0, 1, 2], [0, 1, 3]], reads=30, writes=1), 1, 3)
    assert popular.lists(list(range(6))) == [(0, 1, 2, 3)]


def test_there_are_never_fewer_sites_than_the_least() -> None:
    found = group(wanted([[0, 1, 2], [3, 4, 5], [1, 2, 4]], reads=0.001, writes=100), 1, 3)
    assert found.sites.sum() == 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_classes_cost_less_and_enough_cost_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [random.choice(12, 4, replace=False).tolist() for _ in range(200)]
    world = wanted(rows, sites=12)
    costs = [cost(world, group(world, most, 3)) for most in (1, 10, 50, 200)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0
    assert all((group(world, most, 3).sites.sum(1) >= 3).all() for most in (1, 10))


def test_it_is_the_same_each_time() -> None:
    random = np.random.default_rng(7)
    world = wanted([random.choice(12, 4, replace=False).tolist() for _ in range(100)], sites=12)
    one, other = group(world, 9, 3), group(world, 9, 3)
    assert np.array_equal(one.of, other.of)
    assert np.array_equal(one.sites, other.sites)


def test_what_cannot_be_grouped() -> None:
    with pytest.raises(ValueError, match="sites enough"):
        group(wanted([[0, 1]]), 1, 7)
    with pytest.raises(ValueError, match="at least one"):
        group(wanted([[0, 1]]), 0, 1)
