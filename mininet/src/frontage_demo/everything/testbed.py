# SPDX-License-Identifier: Apache-2.0
"""The testbed with all systems."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from frontage_demo.artemis.scenarios import Published, Scenario
from frontage_demo.artemis.testbed import ArtemisTestbed
from frontage_demo.page.pictures import Object, draw, index, write
from frontage_testbed.wan.addresses import SiteAddresses

from .addresses import plain_vip
from .parts import ALL, Parts
from .site import AllPrograms, FleetSite
from .topology import Sites

FRANKFURT, VIRGINIA = "eu-central-1", "us-east-1"
SCENARIO = Scenario(
    "everything",
    "Two sites with two switches each",
    (FRANKFURT, VIRGINIA),
    # Anycast leads one of the clients to the site that is not its best.
    Published((0, 0, 0), (0, 0, 0), 0.5, 0.0),
    {"Germany": FRANKFURT, "N. Virginia": VIRGINIA},
)
LOADED = Scenario(
    "loaded",
    "Two sites with two switches each, under load",
    SCENARIO.sites,
    SCENARIO.published,
    {**SCENARIO.clients, "Ireland": "eu-west-1", "Ohio": "us-east-2"},
)
PICTURES = 12
"""Number of pictures on the page."""


@cache
def page_of(seed: int) -> tuple[Object, ...]:
    """Return the page of a seed and its pictures, the page first."""
    pictures = draw(seed, ["pictures"], PICTURES)
    return (index(pictures), *pictures)


class EverythingTestbed(ArtemisTestbed):
    """A testbed whose sites have several switches, balancers and real servers, inside its context."""

    site_type: type[FleetSite]
    topology_type = Sites
    programs: AllPrograms

    def __init__(
        self,
        programs: AllPrograms,
        directory: Path,
        *,
        seed: int = 1,
        scenario: Scenario = SCENARIO,
        placement: Mapping[str, object] | None = None,
        site_type: type[FleetSite] = FleetSite,
        parts: Parts = ALL,
    ) -> None:
        """`directory` must not exist. A `placement`, that section of the controllers' configuration, moves the service."""
        self.site_type = site_type
        super().__init__(scenario, programs, directory, seed=seed, dispatched=parts.steering, placement=placement)
        self.parts = parts
        self._seed = seed
        for site in self.sites:
            self.fleet_site(site.location).parts = parts

    def __enter__(self) -> EverythingTestbed:
        super().__enter__()
        write(self.directory / "objects", page_of(self._seed)[1:])
        return self

    @property
    def page(self) -> dict[str, Object]:
        """The page and its pictures by path, the page first."""
        return {f"/{item.path}": item for item in page_of(self._seed)}

    @staticmethod
    def direct_address(site: SiteAddresses) -> str:
        """Return the address of a site in DNS."""
        return plain_vip(site)

    def fleet_site(self, location: str) -> FleetSite:
        """Return the site at a location."""
        site = self.site(location)
        assert isinstance(site, FleetSite)
        return site
