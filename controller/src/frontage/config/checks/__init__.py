# SPDX-License-Identifier: Apache-2.0
"""Checks that a schema cannot express: references, uniqueness, and the table sizes of the P4 program."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks import (
    bgp,
    devices,
    discovery,
    exposed,
    health,
    instances,
    limits,
    network,
    real_servers,
    records,
    remote_servers,
    samples,
    services,
    sites,
    sizes,
    store,
    syn_defence,
)
from frontage.config.checks.findings import Finding
from frontage.config.schema import Config
from frontage.mapping import checks as mapping_checks


def check(config: Config) -> list[Finding]:
    """Return every contradiction in ``config``; none if it can be installed."""
    return [
        *devices.check(config),
        *devices.check_each(config, _check_switch),
        *bgp.check(config),
        *discovery.check(config),
        *store.check(config),
    ]


def _check_switch(config: Config) -> list[Finding]:
    """Return the contradictions in the configuration of one switch."""
    return [
        *network.check(config),
        *services.check(config),
        *sites.check(config),
        *instances.check(config),
        *remote_servers.check(config),
        *real_servers.check(config),
        *health.check(config),
        *limits.check(config),
        *samples.check(config),
        *syn_defence.check(config),
        *_keys(config),
        *sizes.check(config),
        *mapping_checks.check_end_users(config),
        *mapping_checks.check_placement(config),
        *records.check(config),
        *exposed.check(config),
    ]


def _keys(config: Config) -> Iterator[Finding]:
    if len(config.keys) == 2 and abs(config.keys[0].id - config.keys[1].id) != 1:
        first, second = (key.id for key in config.keys)
        what = f"key ids {first} and {second} are not consecutive"
        yield Finding(("keys", 1, "id"), what, f"use {max(first - 1, 1)} or {first + 1}, or remove the older key")
