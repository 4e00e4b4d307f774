"""The runs of a scenario: every combination of what it varies, each with every seed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage.config import ConfigError
from frontage.yamlfile import Problem
from pydantic import ValidationError

from frontage_sim.scenario import Scenario
from frontage_sim.worlds import graph


@dataclass(frozen=True)
class Run:
    """One simulation."""

    labels: Mapping[str, str]
    """What distinguishes its combination: field or word, and value, in the scenario's order."""
    seed: int
    scenario: Scenario

    @property
    def name(self) -> str:
        """A folder's name: ``balancer.policy=cclb4,seed=3``."""
        return ",".join([*(f"{field}={_flat(value)}" for field, value in self.labels.items()), f"seed={self.seed}"])


def runs(scenario: Scenario, file: Path, full: bool = False) -> list[Run]:
    """All runs, in the order of the file. Raises ConfigError where a combination is not possible."""
    plain = scenario.model_dump(mode="json", exclude_unset=True, exclude={"vary", "full"})
    if full:
        for field, value in scenario.full.items():
            _set(plain, field, value)
    made = []
    for labels in _combinations(scenario.vary):
        changed = deepcopy(plain)
        for axis, value in labels.items():
            choices = scenario.vary[axis]
            for field, given in (choices[value] if isinstance(choices, dict) else {axis: value}).items():
                _set(changed, field, given)
        try:
            one = Scenario.model_validate(changed)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}, in {dict(labels)}"
            raise ConfigError(file, [Problem(("vary",), what, "vary fields of the scenario, with values that they take")]) from None
        for problem in graph(one.world).problems():
            raise ConfigError(file, [Problem(("world",), problem, "give every host one link, and every link two nodes that there are")])
        shown = {field: str(value) for field, value in labels.items()}
        made += [Run(shown, seed, one) for seed in range(1, one.seeds + 1)]
    return made


def _combinations(vary: Mapping[str, Collection[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*vary.values()):  # of a mapping, its keys
        yield dict(zip(vary, values, strict=True))


def _set(plain: dict[str, Any], field: str, value: Any) -> None:
    *parents, last = field.split(".")
    for parent in parents:
        plain = plain.setdefault(parent, {})
    plain[last] = value


def _flat(value: str) -> str:
    return "".join(c if c.isalnum() or c in ".-:" else "_" for c in value)
