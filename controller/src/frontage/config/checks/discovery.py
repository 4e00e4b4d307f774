# SPDX-License-Identifier: Apache-2.0
"""Checks of the sources of servers."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding
from frontage.config.discovery import DnsSource, Record
from frontage.config.document import Path
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of `vips[].discovery`."""
    ranges: list[tuple[int, int, str]] = []
    for i, vip in enumerate(config.vips):
        source = vip.discovery
        if source is None:
            continue
        path: Path = ("vips", i, "discovery")
        first, last = source.sids
        if first > last:
            yield Finding((*path, "sids"), f"the first SID {first} is above the last one {last}", "write the smaller one first")
            continue
        for server in config.servers:
            if first <= server.sid <= last:
                yield Finding((*path, "sids"), f"SID {server.sid} belongs to the server {server.name}", "use a range without it")
                break
        for other_first, other_last, other in ranges:
            if first <= other_last and other_first <= last:
                yield Finding((*path, "sids"), f"the SIDs overlap with those of {other}", "use another range")
        ranges.append((first, last, vip.name))
        if source.min_servers > last - first + 1:
            yield Finding((*path, "min_servers"), f"`sids` has room for {last - first + 1} servers only", "use a larger range")
        if isinstance(source, DnsSource):
            yield from _dns(path, source, vip.address.version)


def _dns(path: Path, source: DnsSource, version: int) -> Iterator[Finding]:
    if source.record is Record.SRV:
        if source.port is not None:
            yield Finding((*path, "port"), "SRV records have ports themselves", "remove it", at_key=True)
        return
    if source.port is None:
        yield Finding((*path, "record"), f"{source.record} records have no port", "add `port`")
    if source.record != {4: Record.A, 6: Record.AAAA}[version]:
        fix = f"use {'A' if version == 4 else 'AAAA'} or SRV"
        yield Finding((*path, "record"), f"the VIP has an IPv{version} address, {source.record} records have none", fix)
