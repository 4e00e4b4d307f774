# SPDX-License-Identifier: Apache-2.0
"""The rows and their selection."""

import pytest

from catalogue import ENVIRONMENTS, ROWS
from rows import select


def test_names_are_unique_and_belong_to_an_environment() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {row.environment for row in ROWS} == {environment.key for environment in ENVIRONMENTS}


def test_every_row_states_its_check_and_its_folder() -> None:
    for row in ROWS:
        assert row.check and row.parts, row.name
        assert "|" not in row.check, row.name


def test_name_selects_row_and_rows_below() -> None:
    assert [row.name for row in select(ROWS, "tutorials/basic")] == ["tutorials/basic", "tutorials/basic/ptf"]
    assert [row.name for row in select(ROWS, "tutorials/basic/ptf")] == ["tutorials/basic/ptf"]
    assert len(select(ROWS, "tutorials")) == len({row.name for row in ROWS if row.environment == "tutorials"})


def test_unknown_name_lists_the_rows() -> None:
    with pytest.raises(ValueError, match=r'unknown row "tutorials/bas": use one of tutorials/basic, '):
        select(ROWS, "tutorials/bas")
