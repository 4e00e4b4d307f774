# SPDX-License-Identifier: Apache-2.0
"""The checked servers: what is known about each of them, and how status and metrics show it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from frontage.checks.messages import Target
from frontage.checks.paths import Paths
from frontage.checks.servers import ServerChecks, ServerHealth
from frontage.config import Config


@dataclass(slots=True)
class Checked:
    """A checked server."""

    vip: str
    endpoint: tuple[object, ...]
    """Its addresses, ports and SID: if they change, it is another server."""
    base: Target
    """Its check, without the switch through which it passes."""
    version: int
    """The IP version of the VIP."""
    checks: ServerChecks
    paths: Paths
    targets: dict[str, Target] = field(default_factory=dict)
    """By switch through which the server is checked now."""

    @property
    def fails_next(self) -> bool:
        """Return whether another failed check fails the server. The first check of a new server decides."""
        health, checks = self.checks.health, self.checks
        return health is ServerHealth.UNKNOWN or (health is ServerHealth.HEALTHY and checks.failed + 1 >= checks.fall)


def add_health(status: dict[str, Any], config: Config, checked: Mapping[str, Checked]) -> None:
    """Add the health of servers to the status of the effective configuration. ``config`` is that of the file."""
    states = {server.name: str(server.state) for server in config.servers}
    failed: Counter[str] = Counter()
    for server in status["servers"]:
        # Failed servers are draining for the switch, but not for the operator.
        drained = server["state"]
        server["state"] = states.get(server["name"], drained)
        one = checked.get(server["name"])
        if one is None:
            continue
        is_used = drained == server["state"]
        if one.checks.health is ServerHealth.FAILED:
            failed[server["vip"]] += not is_used
        server["health"] = _describe(one, is_used=is_used)
    for vip in status["vips"]:
        vip["failed"] = failed[vip["name"]]
        vip["draining"] -= failed[vip["name"]]


def _describe(one: Checked, *, is_used: bool) -> dict[str, Any]:
    seconds = time.monotonic() - one.checks.since
    return {
        "state": str(one.checks.health),
        "since": datetime.fromtimestamp(time.time() - seconds, UTC).isoformat(timespec="milliseconds"),
        "seconds": round(seconds, 3),
        "error": one.checks.error,
        "passed": one.checks.passed,
        "failed": one.checks.failed,
        "used": is_used,
        "device": one.paths.via,
        "path_faults": {switch: fault.error for switch, fault in one.paths.faults.items()},
    }


def server_metrics(checked: Mapping[str, Checked], switches: Sequence[str]) -> Iterable[Metric]:
    """Yield the health of servers, and the number of path faults of each switch."""
    health = GaugeMetricFamily("frontage_server_health", "1 for the current health of a server", labels=["vip", "server", "health"])
    for name, one in checked.items():
        for state in ServerHealth:
            health.add_metric([one.vip, name, state.value], float(one.checks.health is state))
    yield health
    faults = GaugeMetricFamily(
        "frontage_health_path_faults", "Servers that fail their checks through this switch only", labels=["device"]
    )
    counts = Counter(switch for one in checked.values() for switch in list(one.paths.faults))
    for switch in switches:
        faults.add_metric([switch], counts[switch])
    yield faults
