"""The part of the configuration about sites: who else there is, and which VIPs are service addresses (docs/steering.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from frontage.fields import AddressField, IPAddress, Model, Name
from frontage.limits import MAX_SERVICE, MAX_SID, MAX_SITE

SiteId = Annotated[int, Field(ge=1, le=MAX_SITE)]
SidField = Annotated[int, Field(ge=0, le=MAX_SID)]


def listed(value: object) -> object:
    """So that one of something need not be written as a list."""
    return [value] if isinstance(value, str) else value


Addresses = Annotated[tuple[AddressField, ...], BeforeValidator(listed)]
"""One address, or a list of them."""


class OwnSite(Model):
    id: SiteId = Field(description=f"this site's number, 1 to {MAX_SITE}", examples=[1])
    vtep: Addresses = Field(
        min_length=1,
        max_length=2,
        description="the switch's own tunnel address, or one of each IP version",
        examples=["2001:db8:101::1"],
    )

    def end(self, version: int) -> IPAddress | None:
        """The end of tunnels over this IP version."""
        return next((address for address in self.vtep if address.version == version), None)


class TunnelKind(StrEnum):
    VXLAN = "vxlan"
    GRE = "gre"


class Site(Model):
    id: SiteId = Field(description=f"the site's number, 1 to {MAX_SITE}, unique in the file", examples=[2])
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["frankfurt"])
    vtep: AddressField = Field(description="the tunnel address of the site's switch", examples=["2001:db8:102::1"])
    sids: tuple[SidField, SidField] = Field(
        description="the first and the last SID of the site's servers", examples=["[800, 1599]"]
    )
    tunnel: TunnelKind = Field(TunnelKind.VXLAN, description="one of " + ", ".join(TunnelKind), examples=["vxlan"])
    dispatchers: tuple[AddressField, ...] = Field(
        (), description="the addresses of the site's dispatchers, which send here by themselves", examples=["['2001:db8:102::d']"]
    )

    @model_validator(mode="after")
    def _in_order(self) -> Site:
        if self.sids[0] > self.sids[1]:
            raise ValueError("has a range of sids whose last is below its first")
        return self


class Dispatcher(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["dispatcher1"])
    address: AddressField = Field(description="the dispatcher's own address", examples=["2001:db8:1:d::1"])


class Artemis(Model):
    name: str = Field(description="the Artemis name that the VIP's address stands for", examples=["films.example"], min_length=1)
    id: int = Field(ge=1, le=MAX_SERVICE, description="the service's number in the mapping, the same at all sites", examples=[3])
    decided: bool = Field(
        True, description="whether the address alone names the service; else a dispatcher looks at SNI", examples=[True]
    )

    @property
    def service(self) -> str:
        """The name as the mapping has it."""
        return self.name.lower().removesuffix(".")
