# SPDX-License-Identifier: Apache-2.0
"""Objects: exact sizes, and content in which damage is detected."""

from pathlib import Path

import pytest

from frontage_testbed.load.objects import PERIOD, Content, write_objects


@pytest.mark.parametrize("size", [1, 1448, PERIOD - 1, PERIOD, PERIOD + 1, 3 * PERIOD + 5])
def test_files_have_exact_size_and_content(tmp_path: Path, size: int) -> None:
    write_objects(tmp_path, [size, size])
    data = (tmp_path / str(size)).read_bytes()
    assert len(data) == size
    content = Content(4096)
    assert all(content.matches(at, memoryview(data)[at : at + 4096]) for at in range(0, size, 4096))


def test_content_detects_damage(tmp_path: Path) -> None:
    write_objects(tmp_path, [100_000])
    data = (tmp_path / "100000").read_bytes()
    content = Content(65536)
    assert content.matches(1448, memoryview(data)[1448:50_000])
    assert not content.matches(0, memoryview(data)[1448:50_000]), "a missing segment"
    assert not content.matches(0, memoryview(data[:700] + b"\x00" + data[701:1400])), "a changed byte"


def test_read_may_cross_period(tmp_path: Path) -> None:
    write_objects(tmp_path, [2 * PERIOD])
    data = memoryview((tmp_path / str(2 * PERIOD)).read_bytes())
    assert Content(262144).matches(PERIOD - 10, data[PERIOD - 10 : PERIOD - 10 + 262144])
