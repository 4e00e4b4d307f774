# SPDX-License-Identifier: Apache-2.0
"""The runs of a scenario: every combination of the varied fields, with every seed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from frontage.config import ConfigError
from frontage.config.document import Path as YamlPath
from frontage.config.document import Problem
from frontage.config.vips import Policy
from frontage_sim.graph import Graph
from frontage_sim.scenario import DISCIPLINES, Protocol, Scenario, Workload, read
from frontage_sim.topologies import graph


@dataclass(frozen=True)
class Run:
    """One simulation."""

    labels: Mapping[str, str]
    """The combination: varied field or word, and value, in the scenario's order."""
    seed: int
    scenario: Scenario

    @property
    def name(self) -> str:
        """The run's folder name, such as ``balancer.policy=cclb4,seed=3``."""
        return ",".join([*(f"{field}={_flat(value)}" for field, value in self.labels.items()), f"seed={self.seed}"])


def runs(scenario: Scenario, file: Path, full: bool = False) -> list[Run]:
    """Return all runs in the order of the file. Raises ConfigError for an impossible combination."""
    plain = scenario.model_dump(mode="json", exclude_unset=True, exclude={"vary", "full"})
    made = []
    for labels in _combinations(scenario.vary):
        changed = deepcopy(plain)
        for axis, value in labels.items():
            choices = scenario.vary[axis]
            for field, given in (choices[value] if isinstance(choices, dict) else {axis: value}).items():
                _set(changed, field, given)
        for field, value in scenario.full.items() if full else ():
            _set(changed, field, value)
        try:
            variant = Scenario.model_validate(changed)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}, in {dict(labels)}"
            raise _error(file, ("vary",), what, "vary fields of the scenario, with valid values") from None
        for field, what, fix in _problems(variant):
            raise _error(file, ("vary", field) if field in scenario.vary else (*field.split("."),), what, fix)
        shown = {field: str(value) for field, value in labels.items()}
        made += [Run(shown, seed, variant) for seed in range(1, variant.seeds + 1)]
    return made


def _problems(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Yield the impossible combinations of a run's fields: the field, the problem, and the fix."""
    net = graph(scenario.topology)
    for problem in net.problems():
        yield "topology", problem, "give every host one link, and every link two existing nodes"
    if scenario.workload.flows:
        yield from _problems_of_flows(scenario.workload, net)
    answering = sum(host.answers for host in net.hosts) - any(host.asks and host.answers for host in net.hosts)
    if scenario.workload.incast is not None and scenario.workload.incast > answering:
        yield "workload.incast", f"only {answering} servers can answer a client", "use at most this number"
    if scenario.scheduler.kind in DISCIPLINES and any(link.queue_bytes is not None for link in net.links):
        yield "topology.queue_bytes", f"{scenario.scheduler.kind} counts its capacity in packets", "use `queue`"
    if scenario.transport.protocol is Protocol.QUIC:
        if scenario.scheduler.rank == "segment":
            yield "scheduler.rank", "QUIC packets have no fixed position in a flow", "use unsent, or protocol tcp"
        if scenario.balancer.policy is Policy.CHEETAH_LL:
            what = "cheetah-ll counts FIN and RST, which a switch cannot see in QUIC"
            yield "balancer.policy", what, "use cheetah-rr, or protocol tcp"
        if not net.balances:
            what = "QUIC's cookie is in the server's address, which only a switch that serves the VIP hides from clients"
            yield "transport.protocol", what, "use protocol tcp, or a topology with a switch that balances"


def _problems_of_flows(workload: Workload, net: Graph) -> Iterator[tuple[str, str, str]]:
    if net.balances:
        yield (
            "workload.flows",
            "behind a switch that serves the VIP, clients reach servers only through the VIP",
            "use a topology without `balances`",
        )
    for unused in sorted({"sizes", "load", "incast"} & workload.model_fields_set):
        yield f"workload.{unused}", "not available with listed flows", "remove it, or `flows`"
    asking = [host.name for host in net.hosts if host.asks]
    answering = [host.name for host in net.hosts if host.answers]
    for flow in workload.flows:
        if flow.client not in asking:
            yield "workload.flows", f"unknown client {flow.client}", f"use one of {', '.join(asking)}"
        if flow.server not in answering:
            yield "workload.flows", f"unknown server {flow.server}", f"use one of {', '.join(answering)}"


def _error(file: Path, path: YamlPath, what: str, fix: str) -> ConfigError:
    return ConfigError(file, [Problem(path, what, fix, read(file).position(path))])


def _combinations(vary: Mapping[str, Collection[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*vary.values()):  # iterates over the keys of a mapping
        yield dict(zip(vary, values, strict=True))


def _set(plain: dict[str, Any], field: str, value: Any) -> None:
    *parents, last = field.split(".")
    for parent in parents:
        plain = plain.setdefault(parent, {})
    plain[last] = value


def _flat(value: str) -> str:
    return "".join(c if c.isalnum() or c in ".-:" else "_" for c in value)
