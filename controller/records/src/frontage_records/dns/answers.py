"""What a record's document says to a resolver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Any

from dnslib import AAAA, QTYPE, RR, SRV, TXT, A
from dnslib.label import DNSBuffer, DNSLabel

MAX_TTL = 86400
_TEXT = 255
"""Bytes of a character string (RFC 1035, section 3.3)."""


class ContentError(ValueError):
    """A document that has a member of DNS's which is none: the record's owner wrote nonsense."""


def resource_records(name: DNSLabel, value: Mapping[str, Any], ttl: int, near: Sequence[int] = ()) -> list[RR]:
    """All of ``name``. Of addresses at sites those at the first of ``near`` that has any, and those without a site; with no
    such site, all. Raises ContentError."""
    given = value.get("ttl", ttl)
    if type(given) is not int or not 0 <= given <= MAX_TTL:
        raise ContentError(f"ttl is not a number of seconds from 0 to {MAX_TTL}")
    try:
        found = [RR(name, getattr(QTYPE, type(data).__name__), rdata=data, ttl=given) for data in _data(value, near)]
        for record in found:
            record.pack(DNSBuffer())
    except Exception as error:
        # The document is the owner's, so it may have anything in it; and what is too long, dnslib says only when it packs.
        raise ContentError(str(error)) from None
    return found


def _data(value: Mapping[str, Any], near: Sequence[int]) -> Iterator[A | AAAA | TXT | SRV]:
    for text in _nearest(_many(value.get("address")), near):
        address = ip_address(text)
        yield A(str(address)) if isinstance(address, IPv4Address) else AAAA(str(address))
    for text in _many(value.get("text")):
        if not isinstance(text, str):
            raise ContentError("text is not a string, nor a list of them")
        data = text.encode()
        yield TXT([data[at : at + _TEXT] for at in range(0, max(len(data), 1), _TEXT)])
    for service in _many(value.get("service")):
        priority, weight, port = service.get("priority", 0), service.get("weight", 0), service["port"]
        if not all(type(number) is int and 0 <= number < 1 << 16 for number in (priority, weight, port)):
            raise ContentError("priority, weight and port are not numbers from 0 to 65535")
        yield SRV(priority, weight, port, DNSLabel(str(service["target"])))


def _many(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _nearest(addresses: list[Any], near: Sequence[int]) -> list[str]:
    """Each is an address, or ``{"ip": address, "site": number}``."""
    at = [(one["ip"], one.get("site")) if isinstance(one, dict) else (one, None) for one in addresses]
    if not all(isinstance(ip, str) for ip, _ in at):
        raise ContentError("an address is not a string")
    there = {site for _, site in at}
    chosen = next((site for site in near if site in there), None)
    return [ip for ip, site in at if chosen is None or site in (chosen, None)]
