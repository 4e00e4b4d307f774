# SPDX-License-Identifier: Apache-2.0
"""DNS resource records from a record's document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Any

from dnslib import AAAA, HTTPS, QTYPE, RR, SRV, TXT, A
from dnslib.label import DNSBuffer, DNSLabel

from frontage_records.dns.svcb import SVCB, https_record

MAX_TTL = 86400
"""Seconds."""
_TEXT = 255
"""Bytes of the longest character string (RFC 1035, section 3.3)."""


class ContentError(ValueError):
    """The document has an invalid member for DNS."""


def resource_records(name: DNSLabel, value: Mapping[str, Any], ttl: int, near: Sequence[int] = ()) -> list[RR]:
    """Return all resource records of ``name``. Raises ContentError.

    Addresses with a site are returned for the first site of ``near`` that has any, together with addresses without a site. If no
    site of ``near`` has any, all addresses are returned.
    """
    given = value.get("ttl", ttl)
    if type(given) is not int or not 0 <= given <= MAX_TTL:
        raise ContentError(f"ttl must be a number of seconds from 0 to {MAX_TTL}")
    try:
        found = [RR(name, getattr(QTYPE, type(data).__name__), rdata=data, ttl=given) for data in _data(value, near)]
        for record in found:
            record.pack(DNSBuffer())
    except Exception as error:
        # The document may contain anything, and dnslib detects values that are too long only when it packs.
        raise ContentError(str(error)) from None
    return found


def _data(value: Mapping[str, Any], near: Sequence[int]) -> Iterator[A | AAAA | TXT | SRV | HTTPS]:
    addresses = [ip_address(text) for text in _nearest(_many(value.get("address")), near)]
    for address in addresses:
        yield A(str(address)) if isinstance(address, IPv4Address) else AAAA(str(address))
    for text in _many(value.get("text")):
        if not isinstance(text, str):
            raise ContentError("text must be a string or a list of strings")
        data = text.encode()
        yield TXT([data[at : at + _TEXT] for at in range(0, max(len(data), 1), _TEXT)])
    for service in _many(value.get("service")):
        priority, weight, port = service.get("priority", 0), service.get("weight", 0), service["port"]
        if not all(type(number) is int and 0 <= number < 1 << 16 for number in (priority, weight, port)):
            raise ContentError("priority, weight and port must be numbers from 0 to 65535")
        yield SRV(priority, weight, port, DNSLabel(str(service["target"])))
    for member, kind in (("https", HTTPS), ("svcb", SVCB)):
        for given in _many(value.get(member)):
            yield https_record(kind, given, addresses)


def _many(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _nearest(addresses: list[Any], near: Sequence[int]) -> list[str]:
    """Select addresses. Each is an address, or ``{"ip": address, "site": number}``."""
    at = [(item["ip"], item.get("site")) if isinstance(item, dict) else (item, None) for item in addresses]
    if not all(isinstance(ip, str) for ip, _ in at):
        raise ContentError("an address must be a string")
    there = {site for _, site in at}
    chosen = next((site for site in near if site in there), None)
    return [ip for ip, site in at if chosen is None or site in (chosen, None)]
