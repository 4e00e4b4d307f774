# SPDX-License-Identifier: Apache-2.0
"""Base class and field types of the configuration's sections.

The parsers raise ValueError with a message in which ``{}`` stands for the given value.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class Model(BaseModel):
    """Base class of the configuration's sections: immutable, without unknown fields.

    Errors do not show the input, which may be a secret.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions, with their new names."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)


class Mac(int):
    """An Ethernet address: an int, printed as six hexadecimal pairs."""

    def __str__(self) -> str:
        return ":".join(f"{byte:02x}" for byte in self.to_bytes(6, "big"))

    __repr__ = __str__


def parse_mac(value: object) -> Mac:
    if isinstance(value, Mac):
        return value
    parts = str(value).split(":")
    if len(parts) != 6 or any(len(part) != 2 for part in parts):
        raise ValueError("invalid Ethernet address {}")
    mac = Mac(int("".join(parts), 16))
    if mac == 0 or mac >> 40 & 1:
        raise ValueError("invalid Ethernet address {}: not unicast")
    return mac


def parse_address(value: object) -> object:
    try:
        return ip_address(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("invalid IP address {}") from None


def parse_interface(value: object) -> object:
    try:
        return ip_interface(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("invalid interface address {}") from None


def parse_network(value: object) -> object:
    try:
        return ip_network(value) if isinstance(value, str) else value
    except ValueError as error:
        if "host bits" in str(error):
            raise ValueError("invalid prefix {}: host bits are set") from None
        raise ValueError("invalid prefix {}") from None


def parse_prefix(value: object) -> object:
    prefix = parse_network(value)
    if not isinstance(prefix, IPv6Network) or prefix.prefixlen != 64:
        raise ValueError("invalid prefix {}: not an IPv6 /64")
    return prefix


def parse_secret(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        secret = bytes.fromhex(str(value))
    except ValueError:
        raise ValueError("invalid secret: not hexadecimal") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(f"invalid secret: {len(secret)} bytes long")
    return secret


def split_listen(value: str) -> tuple[str, int]:
    """Return the host, without brackets, and the port of a listen address."""
    host, _, port = value.rpartition(":")
    return host.strip("[]"), int(port)


def check_listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("invalid listen address {}")
    return value


NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
AddressField = Annotated[IPv4Address | IPv6Address, BeforeValidator(parse_address)]
InterfaceField = Annotated[IPv4Interface | IPv6Interface, BeforeValidator(parse_interface)]
NetworkField = Annotated[IPv4Network | IPv6Network, BeforeValidator(parse_network)]
PrefixField = Annotated[IPv6Network, BeforeValidator(parse_prefix)]
MacField = Annotated[Mac, BeforeValidator(parse_mac)]
Listen = Annotated[str, AfterValidator(check_listen)]
SecretField = Annotated[bytes, BeforeValidator(parse_secret)]
L4Port = Annotated[int, Field(ge=1, le=65535)]
