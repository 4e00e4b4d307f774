# SPDX-License-Identifier: Apache-2.0
"""Checks of the limits of VIPs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from frontage.config.checks.findings import Finding
from frontage.config.limits import ClientLimit
from frontage.config.schema import Config
from frontage.limits import MAX_LIMITED_PREFIXES


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of limits."""
    sizes: Counter[tuple[str, int]] = Counter()
    for i, vip in enumerate(config.vips):
        clients = vip.limits.clients if vip.limits is not None else ()
        seen: set[tuple[object, int]] = set()
        for j, client in enumerate(clients):
            path = ("vips", i, "limits", "clients", j, "prefix")
            if client.prefix.version != vip.address.version:
                what = (
                    f"{client.prefix} is IPv{client.prefix.version}, but VIP {vip.name} ({vip.address}) is IPv{vip.address.version}"
                )
                yield Finding(path, what, f"use an IPv{vip.address.version} prefix")
                continue
            if (fits := _add(sizes, client)) is not None:
                yield Finding(path, f"{fits} client prefixes with limits of one kind", f"use at most {MAX_LIMITED_PREFIXES}")
                continue
            prefixes = {(part.network_address, part.prefixlen) for part in client.prefixes}
            if prefixes & seen:
                yield Finding(path, f"another limit of VIP {vip.name} is for the same prefix", "remove one of them")
            seen |= prefixes


def _add(sizes: Counter[tuple[str, int]], client: ClientLimit) -> int | None:
    """Add the prefixes to the entries by table, and return their number if it is too large."""
    kinds = [kind for kind in ("connection_meter", "bandwidth_meter") if getattr(client, kind) is not None]
    for kind in kinds:
        sizes[kind, client.prefix.version] += client.size
    largest = max(sizes[kind, client.prefix.version] for kind in kinds)
    return largest if largest > MAX_LIMITED_PREFIXES else None
