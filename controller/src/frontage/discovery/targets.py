# SPDX-License-Identifier: Apache-2.0
"""Formats of discovery: Prometheus' ``file_sd`` and ``http_sd``, EndpointSlices of Kubernetes, and DNS records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from frontage.config.remote_servers import EncapsulationKind
from frontage.fields import NAME, IPAddress
from frontage.limits import MAX_WEIGHT

MAX_TARGETS = 4096
"""Targets of one result. A switch has no room for more."""


class SourceError(Exception):
    """A source cannot be read, or its result is not usable."""


@dataclass(frozen=True, slots=True)
class Target:
    """One discovered server."""

    address: IPAddress
    port: int
    weight: int = 1
    zone: str | None = None
    endpoint: IPAddress | None = None
    """Address at which the tunnel to the server ends; None for that of the source's `encapsulation`."""
    is_local: bool = False
    """True if packets reach the server without a tunnel, although the source has `encapsulation`."""


def from_prometheus(data: object, version: int) -> frozenset[Target]:
    """Return the targets of this IP version in a ``file_sd`` or ``http_sd`` document.

    The labels ``weight``, ``zone``, ``endpoint`` and ``encapsulation`` are those of the group's servers. Raises SourceError.
    """
    if not isinstance(data, list):
        raise SourceError('not a list of groups like [{"targets": ["10.0.0.1:8080"]}]')
    return _bounded(target for group in data for target in _group(group) if target.address.version == version)


def _group(group: object) -> Iterator[Target]:
    if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
        raise SourceError('a group without a list "targets"')
    labels = group.get("labels") or {}
    if not isinstance(labels, dict):
        raise SourceError("labels that are not a mapping")
    weight, zone = _weight(labels.get("weight", "1")), _zone(labels.get("zone"))
    end, is_local = (_tunnel_end(labels.get("endpoint")), _is_local(labels.get("encapsulation")))
    if end is not None and is_local:
        raise SourceError('the label endpoint beside encapsulation "none": remove one of them')
    for text in group["targets"]:
        yield replace(_endpoint(text), weight=weight, zone=zone, endpoint=end, is_local=is_local)


def _endpoint(text: object) -> Target:
    host, colon, port = str(text).rpartition(":")
    if not isinstance(text, str) or not colon:
        raise SourceError(f"invalid target {text!r:.80}: use ADDRESS:PORT")
    return _target(host.removeprefix("[").removesuffix("]"), port)


def _target(address: object, port: object) -> Target:
    try:
        number = int(str(port))
        found = ip_address(str(address))
    except ValueError:
        raise SourceError(f"invalid target {str(address)!r:.80} port {str(port)!r:.20}: use an IP address and a number") from None
    if not 0 < number < 65536 or found.is_unspecified or found.is_multicast or found.is_loopback or found.is_link_local:
        raise SourceError(f"invalid target {found} port {number}: a switch cannot send there")
    return Target(found, number)


def _weight(text: object) -> int:
    try:
        weight = int(str(text))
    except ValueError:
        weight = 0
    if not 1 <= weight <= MAX_WEIGHT:
        raise SourceError(f"invalid weight {text!r:.20}: use 1 to {MAX_WEIGHT}")
    return weight


def _zone(text: object) -> str | None:
    if text is not None and not re.fullmatch(NAME, str(text)):
        raise SourceError(f"invalid zone {text!r:.80}: use letters, digits, '.', '_', '-'")
    return None if text is None else str(text)


def _tunnel_end(text: object) -> IPAddress | None:
    """Return the address in the label ``endpoint``."""
    if text is None:
        return None
    try:
        return ip_address(str(text))
    except ValueError:
        raise SourceError(f"invalid endpoint {text!r:.80}: use an IP address") from None


def _is_local(text: object) -> bool:
    """Return whether the label ``encapsulation`` exempts the servers from the source's tunnel."""
    if text not in (None, EncapsulationKind.NONE.value):
        raise SourceError(f'invalid encapsulation {text!r:.20}: use "none", or leave it out for that of the source')
    return text is not None


def from_endpoint_slices(data: object, port_name: str | None, version: int) -> frozenset[Target]:
    """Return the ready endpoints of this IP version in an ``EndpointSliceList`` (discovery.k8s.io/v1). Raises SourceError."""
    family = f"IPv{version}"
    items = _list(_mapping(data).get("items"))
    return _bounded(
        target for item in map(_mapping, items) if item.get("addressType") == family for target in _slice(item, port_name)
    )


def _slice(item: Mapping[str, Any], port_name: str | None) -> Iterator[Target]:
    ports = [_mapping(port) for port in _list(item.get("ports"))]
    chosen = [port.get("port") for port in ports if port_name is None or port.get("name") == port_name]
    if len(ports) > 1 and port_name is None:
        raise SourceError(f"the service has several ports: choose one of {', '.join(str(port.get('name')) for port in ports[:8])}")
    if not chosen:
        raise SourceError(f'the service has no port "{port_name}"')
    for endpoint in map(_mapping, _list(item.get("endpoints"))):
        # A missing condition means ready.
        if _mapping(endpoint.get("conditions") or {}).get("ready") is not False:
            zone = _zone(endpoint.get("zone"))
            yield from (replace(_target(address, chosen[0]), zone=zone) for address in _list(endpoint.get("addresses")))


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SourceError("not a list of EndpointSlices")
    return value


def _list(value: object) -> list[Any]:
    """Return a list, which may be null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise SourceError("not a list of EndpointSlices")
    return value


def from_records(records: Iterable[tuple[str, int]]) -> frozenset[Target]:
    """Return the targets of resolved records (address, port). Raises SourceError."""
    return _bounded(_target(address, port) for address, port in records)


def _bounded(targets: Iterable[Target]) -> frozenset[Target]:
    """Return the targets, the one with the larger weight if an endpoint is there twice. Raises SourceError if there are too many."""
    found: dict[tuple[IPAddress, int], Target] = {}
    for target in targets:
        key = target.address, target.port
        found[key] = max(found.get(key, target), target, key=lambda one: one.weight)
        if len(found) > MAX_TARGETS:
            raise SourceError(f"more than {MAX_TARGETS} servers")
    return frozenset(found.values())
