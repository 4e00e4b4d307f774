# SPDX-License-Identifier: Apache-2.0
"""Scenario files of Auspice's experiments: checked, with a default for every field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError

from frontage.config import ConfigError
from frontage.config.document import Problem
from frontage.config.explain import explain
from frontage.fields import Model
from frontage_sim.scenario import read


class TopologySize(Model):
    """The number of servers and clients, drawn from the modelled PlanetLab nodes."""

    servers: int = Field(80, ge=3, le=200, description="the number of name servers", examples=[80])
    clients: int = Field(
        80, ge=2, le=200, description="the number of local name servers, which are the regions of demand", examples=[80]
    )


class Names(Model):
    """Table 1's workload."""

    number: int = Field(1000, ge=10, le=1_000_000, description="the number of names", examples=[1000])
    services: float = Field(0.1, ge=0, le=1, description="the share of service names; all others are device names", examples=[0.1])
    device_locality: float = Field(
        0.75, ge=0.1, le=1, description="the share of a device's requests that comes from its nearest regions", examples=[0.75]
    )
    service_locality: float = Field(0.8, ge=0.1, le=1, description="the same share for services", examples=[0.8])
    zipf: float = Field(0.9, ge=0, le=2, description="the Zipf exponent of the services' popularity", examples=[0.9])


class Costs(Model):
    """The capacity of name servers. ``experiments/auspice/README.md`` explains the defaults."""

    RENAMED: ClassVar[Mapping[str, str]] = {
        "write": "update_cost",
        "serves": "capacity",
        "shared": "servers_per_machine",
        "told": "planned_capacity",
    }

    update_cost: float = Field(4, gt=0, description="the cost of an update at each replica, in lookups", examples=[4])
    capacity: float = Field(12_400, gt=0, description="the lookups per second that a name server can serve", examples=[12400])
    servers_per_machine: int = Field(
        10, ge=1, description="the number of name servers that share one machine's capacity", examples=[10]
    )
    planned_capacity: float = Field(
        8_000, gt=0, description="the capacity that placement assumes, and to which mu refers", examples=[8000]
    )


class _Experiment(Model):
    title: str = Field(description="what the figure shows", examples=["Latency against load"])
    seed: int = Field(1, ge=0, description="the seed of all random draws", examples=[1])
    topology: TopologySize = Field(TopologySize(), description="the number of servers and clients")
    full: dict[str, Any] = Field(default_factory=dict, description="the fields that --full changes, to the published scale")


class _TopologyExperiment(_Experiment):
    """An experiment whose result depends on the drawn topology, and which is repeated for several of them."""

    topologies: int = Field(
        1,
        ge=1,
        description="the number of topologies, drawn with `seed`, `seed` + 1, ...; the result has the rows of all",
        examples=[5],
    )


Scheme = Literal["frontage", "auspice", "random-3", "replicate-all", "dht-any-hop", "dht-codons", "dht-en-route", "dht-closest"]
DHT_BASES: dict[Scheme, int] = {"dht-any-hop": 16, "dht-codons": 16, "dht-en-route": 4, "dht-closest": 2}
"""Base of the DHT's digits: 16 as in Codons, otherwise the base from 2 to 32 with the fastest lookups."""


class Load(_TopologyExperiment):
    """Lookup and update latencies against load (2.2.1, 2.2.2)."""

    experiment: Literal["load"]
    names: Names = Field(Names(), description="the workload")
    costs: Costs = Field(Costs(), description="the name servers")
    loads: tuple[float, ...] = Field((1.0,), description="loads; 1 is 200 lookups and 100 updates per second and name server")
    schemes: tuple[Scheme, ...] = Field(("frontage",), description="schemes of placement and routing")
    duration: float = Field(600, gt=0, description="simulated seconds", examples=[600])
    samples: int = Field(40, ge=1, description="the mean number of simulated lookups of a name", examples=[40])
    alpha: float = Field(0.5, gt=0, lt=1, description="the exponent of popularity that Beehive assumes", examples=[0.5])


class Mobility(_Experiment):
    """Time to connect to a mobile host (2.2.3)."""

    experiment: Literal["mobility"]
    rates: tuple[float, ...] = Field((1.0,), description="moves per second")
    propagation: float = Field(0.25, gt=0, description="seconds from a move until all replicas know it", examples=[0.25])
    lookup: float = Field(0.02, gt=0, description="seconds that a lookup takes", examples=[0.02])
    rtt: float = Field(0.105, gt=0, description="the RTT between client and mobile host in seconds", examples=[0.105])
    samples: int = Field(100_000, ge=1, description="the number of connections", examples=[100_000])


class Adaptation(_Experiment):
    """Adaptation of placement to demand that moves, and its cost (2.2.4)."""

    experiment: Literal["adaptation"]
    names: Names = Field(Names(), description="the workload")
    costs: Costs = Field(Costs(), description="the name servers")
    load: float = Field(1.0, gt=0, description="the load as in experiment `load`", examples=[1])
    epoch: float = Field(75, gt=0, description="the epoch in seconds", examples=[75])
    shift: float = Field(300, gt=0, description="seconds between two moves of the demand", examples=[300])
    epochs: int = Field(16, ge=2, description="the number of epochs", examples=[16])
    followed: int = Field(20, ge=1, description="the number of names whose lookups are all simulated", examples=[20])


class Static(_TopologyExperiment):
    """Replicas near demand against the same static sites for all names (2.3.1)."""

    experiment: Literal["static"]
    names: int = Field(316, ge=1, description="the number of service names", examples=[316])
    replicas: tuple[int, ...] = Field((5, 10, 15), description="numbers of replicas per name")
    sites: int = Field(16, ge=1, description="the number of static sites", examples=[16])
    locality: float = Field(0.8, ge=0.1, lt=1, description="the share of lookups from a tenth of the countries", examples=[0.8])
    homes: tuple[str, ...] = Field(
        ("any",), description="home countries of the names: `any` for a random client's country, or the country of all names"
    )
    closest: tuple[float, ...] = Field((0.8, 0.37), description="probabilities that anycast takes a client to the closest site")
    lookups: int = Field(1000, ge=1, description="the number of lookups per name", examples=[1000])


class Propagation(_TopologyExperiment):
    """Time until an update is at all replicas (2.3.2)."""

    experiment: Literal["propagation"]
    names: int = Field(1000, ge=1, description="the number of names", examples=[1000])
    replicas: tuple[int, ...] = Field((5, 10, 20), description="numbers of replicas per name, in America and Europe")


class Perturbation(_TopologyExperiment):
    """The effect of nu, the share of a name's replicas by locality (1.2.1)."""

    experiment: Literal["perturbation"]
    names: Names = Field(Names(), description="the workload")
    costs: Costs = Field(Costs(), description="the name servers")
    loads: tuple[float, ...] = Field((1.0,), description="loads as in experiment `load`")
    nu: tuple[float, ...] = Field((0.5, 1.0), description="shares of a name's replicas that are placed by locality")


AuspiceScenario = Load | Mobility | Adaptation | Static | Propagation | Perturbation


_MODELS: dict[str, type[AuspiceScenario]] = {
    "load": Load,
    "mobility": Mobility,
    "adaptation": Adaptation,
    "static": Static,
    "propagation": Propagation,
    "perturbation": Perturbation,
}
"""Scenario models by the value of ``experiment``."""


def is_auspice_scenario(file: Path) -> bool:
    """Return true if a scenario file describes one of Auspice's experiments. Raises ConfigError for an unreadable file."""
    data = read(file).data
    return isinstance(data, dict) and "experiment" in data


def load(file: Path, full: bool = False) -> AuspiceScenario:
    """Read and check a scenario file. Raises ConfigError, which names every problem."""
    document = read(file)
    data = document.data if isinstance(document.data, dict) else {}
    name = data.get("experiment")
    model = _MODELS.get(str(name))
    if model is None:
        position = document.position(("experiment",))
        raise ConfigError(
            file, [Problem(("experiment",), f'unknown experiment "{name}"', f"use one of {', '.join(_MODELS)}", position)]
        )
    try:
        scenario = model.model_validate(data)
        return model.model_validate(_full_scale(scenario)) if full else scenario
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, model)) from None


def split(scenario: AuspiceScenario) -> list[AuspiceScenario]:
    """Return the parts of a scenario that can run in parallel: one per topology and, for `Load`, per scheme and load."""
    if not isinstance(scenario, _TopologyExperiment):
        return [scenario]
    topologies: list[AuspiceScenario] = [
        scenario.model_copy(update={"topologies": 1, "seed": seed})
        for seed in range(scenario.seed, scenario.seed + scenario.topologies)
    ]
    if not isinstance(scenario, Load):
        return topologies
    combinations = [{"schemes": (scheme,), "loads": (load,)} for scheme in scenario.schemes for load in scenario.loads]
    return [topology.model_copy(update=combination) for topology in topologies for combination in combinations]


def _full_scale(scenario: AuspiceScenario) -> dict[str, Any]:
    """Return the fields of a scenario with the changes of ``full``."""
    plain = scenario.model_dump(mode="json", exclude_unset=True, exclude={"full"})
    for field, value in scenario.full.items():
        *parents, last = field.split(".")
        section = plain
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = value
    return plain
