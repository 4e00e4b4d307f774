# SPDX-License-Identifier: Apache-2.0
"""The section `instances`: the anycast prefixes of Artemis and their names, which determine service addresses (docs/naming.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from frontage.config.document import Plain
from frontage.config.sites import as_list
from frontage.fields import IPAddress, Model
from frontage.naming import ServicePrefix, matches


def _parse_prefix(value: object) -> object:
    return ServicePrefix.parse(value) if isinstance(value, str) else value


def _checked(pattern: str) -> str:
    matches(pattern, pattern)
    return pattern


Pattern = Annotated[str, BeforeValidator(_checked)]
"""A name, ``*.`` and a name for all names below it, or ``*`` for all names."""


class Instance(Model):
    prefix: Annotated[ServicePrefix, BeforeValidator(_parse_prefix)] = Field(
        description="the anycast prefix, followed by + and the number of ServiceID bits", examples=["2001:db8:a57e::/48+16"]
    )
    names: Annotated[tuple[Pattern, ...], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="the names of the instance; `*.` before a name matches all names below it",
        examples=["['*.example']"],
    )

    def has(self, name: str) -> bool:
        """Return whether the name belongs to the instance."""
        return any(matches(pattern, name) for pattern in self.names)


def service_addresses(instances: Iterable[Instance], name: str) -> dict[IPAddress, Instance]:
    """Return the service addresses of a name, one per instance to which it belongs. Raises ValueError for an invalid name."""
    return {instance.prefix.service_address(name): instance for instance in instances if instance.has(name)}


def assign(data: dict[str, Plain]) -> None:
    """Set the address of each VIP without one to the service address of its name, if the name belongs to exactly one instance.

    `data` is the content of a file before validation. Invalid parts are not changed.
    """
    instances = list(_valid(data.get("instances")))
    vips = data.get("vips")
    for vip in vips if isinstance(vips, list) else ():
        artemis = vip.get("artemis") if isinstance(vip, dict) and "address" not in vip else None
        name = artemis.get("name") if isinstance(artemis, dict) else None
        if isinstance(vip, dict) and isinstance(name, str):
            try:
                addresses = list(service_addresses(instances, name))
            except ValueError:
                continue
            if len(addresses) == 1:
                vip["address"] = str(addresses[0])


def _valid(section: Plain) -> Iterator[Instance]:
    for item in section if isinstance(section, list) else ():
        try:
            yield Instance.model_validate(item)
        except ValueError:
            continue
