# SPDX-License-Identifier: Apache-2.0
"""Scenario files of wide-area experiments: checked, every field with a default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from frontage.config import ConfigError
from frontage.config.explain import explain
from frontage_sim.scenario import read


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Topology(_Model):
    servers: int = Field(80, ge=3, le=200, description="name servers, of PlanetLab's nodes", examples=[80])
    clients: int = Field(
        80, ge=2, le=200, description="local name servers, others of the nodes; the regions of demand", examples=[80]
    )


class Names(_Model):
    """Table 1's workload."""

    number: int = Field(1000, ge=10, le=1_000_000, description="names", examples=[1000])
    services: float = Field(0.1, ge=0, le=1, description="the share of service names; the others are devices'", examples=[0.1])
    device_locality: float = Field(
        0.75, ge=0.1, le=1, description="the share of requests from a device's own regions", examples=[0.75]
    )
    service_locality: float = Field(0.8, ge=0.1, le=1, description="the same for services", examples=[0.8])
    zipf: float = Field(0.9, ge=0, le=2, description="the exponent of services' popularity", examples=[0.9])


class Costs(_Model):
    """What requests take of a name server. The README says what these figures come from."""

    write: float = Field(4, gt=0, description="what an update takes at each replica, in lookups", examples=[4])
    serves: float = Field(12_400, gt=0, description="lookups a second that a name server can do", examples=[12400])
    shared: int = Field(10, ge=1, description="name servers on one machine, which share what they can do", examples=[10])
    told: float = Field(8_000, gt=0, description="the same as placement is told; mu is of that", examples=[8000])


class _Experiment(_Model):
    title: str = Field(description="what the figure shows", examples=["Latency against load"])
    seed: int = Field(1, ge=0, description="of everything that is drawn", examples=[1])
    topology: Topology = Field(Topology(), description="who is where")
    full: dict[str, Any] = Field(default_factory=dict, description="what --full sets: the published scale")


class _Worlds(_Experiment):
    topologies: int = Field(
        1, ge=1, description="as many, drawn by the seed, the seed and 1, ...; their rows together", examples=[5]
    )


Scheme = Literal["frontage", "auspice", "random-3", "replicate-all", "dht-any-hop", "dht-codons", "dht-en-route", "dht-closest"]
BASES: dict[Scheme, int] = {"dht-any-hop": 16, "dht-codons": 16, "dht-en-route": 4, "dht-closest": 2}
"""The DHT's digits: Codons', and those by which lookups take least, of 2 to 32."""


class Load(_Worlds):
    """Lookup and update latencies against load (2.2.1, 2.2.2)."""

    experiment: Literal["load"]
    names: Names = Field(Names(), description="the workload")
    costs: Costs = Field(Costs(), description="the name servers")
    loads: tuple[float, ...] = Field((1.0,), description="1 is 200 lookups and 100 updates a second and name server")
    schemes: tuple[Scheme, ...] = Field(("frontage",), description="who places and routes")
    duration: float = Field(600, gt=0, description="simulated seconds", examples=[600])
    samples: int = Field(40, ge=1, description="lookups of a name that are followed, on average over names", examples=[40])
    alpha: float = Field(0.5, gt=0, lt=1, description="the exponent of popularity that Beehive assumes", examples=[0.5])


class Mobility(_Experiment):
    """Time to connect to who moves (2.2.3)."""

    experiment: Literal["mobility"]
    rates: tuple[float, ...] = Field((1.0,), description="moves a second")
    propagation: float = Field(0.25, gt=0, description="seconds from a move until all replicas know", examples=[0.25])
    lookup: float = Field(0.02, gt=0, description="seconds", examples=[0.02])
    rtt: float = Field(0.105, gt=0, description="seconds between client and who moves", examples=[0.105])
    samples: int = Field(100_000, ge=1, description="connections", examples=[100_000])


class Adaptation(_Experiment):
    """Demand that moves, and what following costs (2.2.4)."""

    experiment: Literal["adaptation"]
    names: Names = Field(Names(), description="the workload")
    costs: Costs = Field(Costs(), description="the name servers")
    load: float = Field(1.0, gt=0, description="as in `load`", examples=[1])
    epoch: float = Field(75, gt=0, description="seconds", examples=[75])
    shift: float = Field(300, gt=0, description="seconds after which demand comes from elsewhere", examples=[300])
    epochs: int = Field(16, ge=2, description="how long", examples=[16])
    followed: int = Field(20, ge=1, description="names whose lookups are simulated, every one", examples=[20])


class Static(_Worlds):
    """Replicas near demand against the same static sites for all names (2.3.1)."""

    experiment: Literal["static"]
    names: int = Field(316, ge=1, description="service names", examples=[316])
    replicas: tuple[int, ...] = Field((5, 10, 15), description="of each name")
    sites: int = Field(16, ge=1, description="static ones", examples=[16])
    locality: float = Field(0.8, ge=0.1, lt=1, description="the share of lookups from a tenth of the countries", examples=[0.8])
    homes: tuple[str, ...] = Field(("any",), description="the countries of names: that of a client drawn, or one for all")
    closest: tuple[float, ...] = Field((0.8, 0.37), description="the shares of clients that anycast takes to the closest site")
    lookups: int = Field(1000, ge=1, description="of each name", examples=[1000])


class Propagation(_Worlds):
    """How long an update takes to all replicas (2.3.2)."""

    experiment: Literal["propagation"]
    names: int = Field(1000, ge=1, description="names", examples=[1000])
    replicas: tuple[int, ...] = Field((5, 10, 20), description="of each, in America and Europe")


Wide = Load | Mobility | Adaptation | Static | Propagation


class _File(RootModel[Annotated[Wide, Field(discriminator="experiment")]]):
    pass


def is_wide(file: Path) -> bool:
    """True if a scenario file is one of these. Raises ConfigError for one that cannot be read."""
    data = read(file).data
    return isinstance(data, dict) and "experiment" in data


def load(file: Path, full: bool = False) -> Wide:
    """Read and check. Raises ConfigError, which names every problem that was found."""
    document = read(file)
    try:
        found = _File.model_validate(document.data).root
        return _File.model_validate(_changed(found)).root if full else found
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, _File)) from None


def parts(scenario: Wide) -> list[Wide]:
    """What can be simulated side by side."""
    if not isinstance(scenario, _Worlds):
        return [scenario]
    topologies: list[Wide] = [
        scenario.model_copy(update={"topologies": 1, "seed": seed})
        for seed in range(scenario.seed, scenario.seed + scenario.topologies)
    ]
    if not isinstance(scenario, Load):
        return topologies
    of = [{"schemes": (scheme,), "loads": (load,)} for scheme in scenario.schemes for load in scenario.loads]
    return [topology.model_copy(update=which) for topology in topologies for which in of]


def _changed(scenario: Wide) -> dict[str, Any]:
    plain = scenario.model_dump(mode="json", exclude_unset=True, exclude={"full"})
    for field, value in scenario.full.items():
        *parents, last = field.split(".")
        at = plain
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return plain
