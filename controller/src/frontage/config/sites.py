# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration about sites and Artemis services (docs/steering.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from frontage.fields import AddressField, IPAddress, Model, Name
from frontage.limits import MAX_SERVICE, MAX_SID, MAX_SITE
from frontage.naming import canonical_name

SiteId = Annotated[int, Field(ge=1, le=MAX_SITE)]
SidField = Annotated[int, Field(ge=0, le=MAX_SID)]


def as_list(value: object) -> object:
    """Return a list for a single string, which may be written without brackets."""
    return [value] if isinstance(value, str) else value


Addresses = Annotated[tuple[AddressField, ...], BeforeValidator(as_list)]
"""One address, or a list of addresses."""


class OwnSite(Model):
    id: SiteId = Field(description=f"the id of this site, 1 to {MAX_SITE}", examples=[1])
    vtep: Addresses = Field(
        min_length=1,
        max_length=2,
        description="the tunnel endpoint (VTEP) address of this switch, or one per IP version",
        examples=["2001:db8:101::1"],
    )

    def vtep_of(self, version: int) -> IPAddress | None:
        """Return the tunnel endpoint for this IP version."""
        return next((address for address in self.vtep if address.version == version), None)


class TunnelKind(StrEnum):
    VXLAN = "vxlan"
    GRE = "gre"


class Location(Model):
    latitude: float = Field(
        ge=-90, le=90, allow_inf_nan=False, description="the degrees north of the equator, -90 to 90", examples=[50.1]
    )
    longitude: float = Field(
        ge=-180, le=180, allow_inf_nan=False, description="the degrees east of Greenwich, -180 to 180", examples=[8.7]
    )

    def __str__(self) -> str:
        return f"latitude {self.latitude}, longitude {self.longitude}"


class Site(Model):
    id: SiteId = Field(description=f"the site id, 1 to {MAX_SITE}, unique in the file", examples=[2])
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["frankfurt"])
    vtep: AddressField = Field(description="the tunnel endpoint (VTEP) address of the site's switch", examples=["2001:db8:102::1"])
    sids: tuple[SidField, SidField] = Field(description="the first and last SID of the site's servers", examples=["[800, 1599]"])
    tunnel: TunnelKind = Field(TunnelKind.VXLAN, description="one of " + ", ".join(TunnelKind), examples=["vxlan"])
    dispatchers: tuple[AddressField, ...] = Field(
        (),
        description="the addresses of the site's dispatchers, which send to this site directly",
        examples=["['2001:db8:102::d']"],
    )
    location: Location | None = Field(
        None,
        description="where the site is, for the map of the console; optional",
        examples=["{ latitude: 50.1, longitude: 8.7 }"],
    )

    @model_validator(mode="after")
    def _check_range(self) -> Site:
        if self.sids[0] > self.sids[1]:
            raise ValueError("the last of the sids is below the first")
        return self


class Dispatcher(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["dispatcher1"])
    address: AddressField = Field(description="the address of the dispatcher", examples=["2001:db8:1:d::1"])


def _checked_name(name: str) -> str:
    canonical_name(name)
    return name


class Artemis(Model):
    RENAMED: ClassVar[Mapping[str, str]] = {"decided": "dedicated_address"}

    name: Annotated[str, AfterValidator(_checked_name)] = Field(
        description="the Artemis name of the service", examples=["films.example"], min_length=1
    )
    id: int = Field(ge=1, le=MAX_SERVICE, description="the service id in the mapping, the same at all sites", examples=[3])
    dedicated_address: bool = Field(
        True, description="true if no other service uses the address; with false, a dispatcher reads the SNI", examples=[True]
    )

    @property
    def service(self) -> str:
        """The name in the canonical form that is hashed and that the mapping uses."""
        return canonical_name(self.name)
