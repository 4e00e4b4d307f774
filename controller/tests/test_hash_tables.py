# SPDX-License-Identifier: Apache-2.0
"""The sizes of the tables for consistent hashing."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage import limits
from frontage.config import ConfigError, loads
from frontage.config.hash_tables import rooms, slots, total
from scale import large_config


@pytest.mark.parametrize(("servers", "size"), [(1, 1024), (9, 1024), (64, 1024), (65, 2048), (4096, 65536)])
def test_table_keeps_its_size_up_to_64_servers(servers: int, size: int) -> None:
    config = loads(large_config(1, 1), Path("one.yaml"))
    (room,) = rooms(config.vips, {config.vips[0].name: servers}).values()
    assert slots(servers, room) == size


@pytest.mark.parametrize(("vips", "room"), [(128, 64), (129, 16), (512, 16)])
def test_tables_of_many_vips_have_less_room(vips: int, room: int) -> None:
    config = loads(large_config(vips, vips), Path("many.yaml"))
    counts = dict.fromkeys((vip.name for vip in config.vips), 1)
    assert set(rooms(config.vips, counts).values()) == {room}
    assert total(rooms(config.vips, counts), counts) <= limits.MAGLEV_SLOTS


def test_tables_of_unequal_vips_fit() -> None:
    config = loads(large_config(512, 512), Path("many.yaml"))
    counts = {vip.name: 300 if i < 12 else 1 for i, vip in enumerate(config.vips)}
    assert total(rooms(config.vips, counts), counts) <= limits.MAGLEV_SLOTS


def test_max_servers_sets_the_size() -> None:
    config = loads(large_config(4, 2).replace("port: 80}", "port: 80, max_servers: 500}", 1), Path("two.yaml"))
    assert list(rooms(config.vips, {}).values()) == [500, 64]


def test_tables_that_do_not_fit_are_rejected() -> None:
    text = large_config(6, 3).replace("port: 80}", "port: 80, max_servers: 4096}")
    with pytest.raises(ConfigError) as error:
        loads(text, Path("three.yaml"))
    assert "vips[0].max_servers: the tables of all VIPs need 196608 slots, of which this VIP has 65536" in str(error.value)
