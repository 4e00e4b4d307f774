# SPDX-License-Identifier: Apache-2.0
"""Checks of the store that several controllers share."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding, duplicates
from frontage.config.schema import Config

_LOOPBACK = ("localhost", "127.", "[::1]")


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the section ``store``."""
    if config.store is None:
        return
    nats, path = config.store.nats, ("store", "nats")
    if nats.replicas not in (1, 3, 5):
        yield Finding((*path, "replicas"), f"{nats.replicas} replicas", "use 1, 3 or 5: even numbers do not tolerate more failures")
    servers = (((*path, "servers", i), url) for i, url in enumerate(nats.servers))
    yield from duplicates(servers, 'duplicate server "{}"', "remove one of them")
    if nats.tls is not None and (nats.tls.certificate is None) != (nats.tls.key is None):
        yield Finding((*path, "tls"), "a certificate without its key, or a key without its certificate", "set both or neither")
    if nats.credentials is not None and nats.tls is None:
        for i, url in enumerate(nats.servers):
            if not url.partition("://")[2].startswith(_LOOPBACK):
                fix = "add `store.nats.tls`, or use a loopback address"
                yield Finding((*path, "servers", i), "without `tls`, credentials would cross the network unencrypted", fix)
