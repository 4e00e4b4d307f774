# SPDX-License-Identifier: Apache-2.0
"""The assignment of service addresses to names (Artemis, section 3.2), and the DNS records for clients that do not hash names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from frontage.config import Config
from frontage.config.instances import service_addresses
from frontage.config.vips import Protocol

HTTPS = 443
"""The port whose HTTPS record has the name of the service itself (RFC 9460, section 2.3)."""
ALPN = {Protocol.UDP: ("h3",), Protocol.TCP: ("h2",)}
"""The `alpn` of a port by the protocols of its VIPs. HTTP/1.1 is always implied (RFC 9460, section 7.1)."""
Document: TypeAlias = dict[str, Any]
"""A document of the record store, with the members that its DNS server reads (docs/records.md)."""


@dataclass(frozen=True)
class Assignment:
    """A service address of a name."""

    name: str
    address: str
    instance: str
    """The prefix of the instance, and the bits of its ServiceIDs."""
    service_id: str
    """The hashed bits, in hexadecimal."""
    ports: dict[int, tuple[str, ...]]
    """The ports of the name's VIPs at this address, with the protocols that clients can use there; none if the name has no VIP."""
    collisions: tuple[str, ...]
    """The other names with this address."""


def assign(config: Config, more: Iterable[str] = ()) -> list[Assignment]:
    """Return the service addresses of the names of a configuration, and of `more` names. Raises ValueError for a name of no instance."""
    ports: dict[tuple[str, str], dict[int, tuple[str, ...]]] = defaultdict(dict)
    for vip in sorted(config.vips, key=lambda vip: (vip.port, vip.protocol is Protocol.TCP)):
        if vip.artemis is not None:
            known = ports[vip.artemis.service, str(vip.address)]
            known[vip.port] = (*known.get(vip.port, ()), *ALPN[vip.protocol])
    wanted = dict.fromkeys([name for name, _ in ports] + list(more))
    addresses = {name: service_addresses(config.instances, name) for name in wanted}
    if homeless := [name for name, found in addresses.items() if not found]:
        raise ValueError(f"{homeless[0]} does not belong to an instance: add it to the `names` of one of `instances`")
    owners: dict[str, list[str]] = defaultdict(list)
    for name, found in addresses.items():
        for address in found:
            owners[str(address)].append(name)
    return [
        Assignment(
            name=name,
            address=str(address),
            instance=str(instance.prefix),
            service_id=instance.prefix.service_id(name),
            ports=ports[name, str(address)],
            collisions=tuple(other for other in owners[str(address)] if other != name),
        )
        for name, found in addresses.items()
        for address, instance in found.items()
    ]


def published(assignments: Iterable[Assignment]) -> dict[str, Document]:
    """Return the documents to publish, by DNS name: the addresses of each name with a VIP, and an HTTPS record for each of its ports."""
    documents: dict[str, Document] = {}
    for assignment in assignments:
        if assignment.ports:
            documents.setdefault(assignment.name, {"address": []})["address"].append(assignment.address)
        for port, alpn in assignment.ports.items():
            if port == HTTPS:
                documents[assignment.name]["https"] = {"alpn": list(alpn)}
            else:
                documents[f"_{port}._https.{assignment.name}"] = {
                    "https": {"target": assignment.name, "alpn": list(alpn), "port": port}
                }
    return documents
