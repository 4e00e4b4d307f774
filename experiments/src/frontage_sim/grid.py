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
    """The combination: values by varied field or label, in the scenario's order."""
    seed: int
    scenario: Scenario

    @property
    def name(self) -> str:
        """The run's folder name, such as ``balancer.policy=cclb4,seed=3``."""
        return ",".join([*(f"{field}={_flat(value)}" for field, value in self.labels.items()), f"seed={self.seed}"])


def runs(scenario: Scenario, file: Path, full: bool = False) -> list[Run]:
    """Return all runs in the order of the file. Raises ConfigError for an impossible combination."""
    plain = scenario.model_dump(mode="json", exclude_unset=True, exclude={"vary", "full"})
    result = []
    for labels in _combinations(scenario.vary):
        changed = deepcopy(plain)
        for axis, value in labels.items():
            choices = scenario.vary[axis]
            settings = choices[value] if isinstance(choices, dict) else {axis: value}
            for field, setting in settings.items():
                _set(changed, field, setting)
        for field, value in scenario.full.items() if full else ():
            _set(changed, field, value)
        try:
            variant = Scenario.model_validate(changed)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}, in {dict(labels)}"
            raise _error(file, ("vary",), what, "use fields of the scenario with valid values") from None
        for field, what, fix in _problems(variant):
            raise _error(file, ("vary", field) if field in scenario.vary else (*field.split("."),), what, fix)
        shown = {field: str(value) for field, value in labels.items()}
        result += [Run(shown, seed, variant) for seed in range(1, variant.seeds + 1)]
    return result


def _problems(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Yield the impossible combinations of a run's fields: the field, the problem, and the fix."""
    net = graph(scenario.topology)
    for problem in net.problems():
        yield "topology", problem, "give every host one link, and every link two existing nodes"
    if scenario.workload.flows:
        yield from _problems_of_flows(scenario.workload, net)
    servers_per_client = sum(host.is_server for host in net.hosts) - any(host.is_client and host.is_server for host in net.hosts)
    if scenario.workload.incast is not None and scenario.workload.incast > servers_per_client:
        yield "workload.incast", f"only {servers_per_client} servers can answer a client", "use at most this number"
    if scenario.scheduler.kind in DISCIPLINES and any(link.queue_bytes is not None for link in net.links):
        yield "topology.queue_bytes", f"{scenario.scheduler.kind} limits its queue in packets", "use `queue`"
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
            "clients reach servers only through the VIP if a switch serves it",
            "use a topology without `balances`",
        )
    for unused in sorted({"sizes", "load", "incast"} & workload.model_fields_set):
        yield f"workload.{unused}", "not available with listed flows", "remove it, or `flows`"
    clients = [host.name for host in net.hosts if host.is_client]
    servers = [host.name for host in net.hosts if host.is_server]
    for flow in workload.flows:
        if flow.client not in clients:
            yield "workload.flows", f'unknown client "{flow.client}"', f"use one of {', '.join(clients)}"
        if flow.server not in servers:
            yield "workload.flows", f'unknown server "{flow.server}"', f"use one of {', '.join(servers)}"


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
