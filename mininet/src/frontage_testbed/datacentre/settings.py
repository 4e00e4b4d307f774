"""What the user may set, from environment variables, checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..load.protocols import PROTOCOLS

POLICIES = ("hash", "cheetah-rr", "cheetah-ll", "cclb4", "cclb4-current", "cclb4-future")
TARGETS = ("softswitch", "bmv2")
SCHEDULERS = ("fifo", "aifo")
FRAME = 1514
"""Bytes of a full frame."""
BMV2_RATE = 40_000_000
"""Most of the bottleneck, bits/s, when BMv2 is the switch."""


class SettingsError(ValueError):
    """A setting has a value that the demo cannot run with."""


@dataclass(frozen=True)
class Treatment:
    """What one run differs in from the others, which have the same arrivals."""

    policy: str
    """How connections find their server."""
    scheduler: str = "fifo"
    """How the bottleneck's queue is scheduled."""

    @property
    def name(self) -> str:
        """In tables: the policy's, with the scheduler's if that is not the plain one."""
        return self.policy if self.scheduler == "fifo" else f"{self.policy}+{self.scheduler}"


@dataclass(frozen=True)
class Settings:
    """One run of the demo. Rates are bits/s on the wire, delays seconds one way, sizes bytes."""

    seconds: float = 20.0
    """How long each policy is offered requests."""
    load: float = 0.8
    """Offered traffic as a share of the bottleneck's rate."""
    seed: int = 1
    servers: int = 8
    protocol: str = "tcp"
    """A key of PROTOCOLS."""
    target: str = "softswitch"
    clients: int = 4
    policies: tuple[str, ...] = POLICIES
    schedulers: tuple[str, ...] = ("fifo",)
    """Of the bottleneck's queue: each policy is run with each of them."""
    bottleneck_rate: int = 160_000_000
    """Rate of the edge switch's port towards the clients."""
    server_headroom: float = 1.25
    """What all servers' links together can carry, as a multiple of the bottleneck's rate."""
    delay: float = 0.001
    """Propagation delay of the client link, each way."""
    queue_delay: float = 0.010
    """Depth of the bottleneck's queue, as the time that it takes to drain: about the loaded path's round-trip time."""
    size_scale: float = 0.1
    """Factor on the workload's flow sizes."""

    def on(self, target: str) -> Settings:
        """The same on this switch. BMv2 forwards some thousand packets a second, and its links have no delay."""
        if target == "bmv2":
            return replace(self, target=target, bottleneck_rate=min(self.bottleneck_rate, BMV2_RATE), delay=0.0)
        return replace(self, target=target)

    @property
    def server_rate(self) -> int:
        """Rate of each server's own link."""
        return int(self.bottleneck_rate * self.server_headroom / self.servers)

    @property
    def bottleneck_queue(self) -> int:
        """Depth of the bottleneck's queue in bytes."""
        return int(self.bottleneck_rate / 8 * self.queue_delay)

    @property
    def bottleneck_packets(self) -> int | None:
        """Depth in packets, in place of bytes: as many full ones as fit into those. AIFO counts packets, so where it is
        compared with another scheduler, the queue does so under both. None if it counts bytes.
        """
        return self.bottleneck_queue // FRAME if "aifo" in self.schedulers else None

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """What the arrivals are played against, in this order."""
        return tuple(Treatment(policy, scheduler) for policy in self.policies for scheduler in self.schedulers)

    def as_dict(self) -> dict[str, object]:
        """The settings and what follows from them, for the report."""
        return asdict(self) | {
            "server_rate": self.server_rate,
            "bottleneck_queue": self.bottleneck_queue,
            "bottleneck_packets": self.bottleneck_packets,
        }


def _number(env: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        raise SettingsError(f"{name}={text!r} is not a number; use one from {low:g} to {high:g}") from None
    if not low <= value <= high:  # also refuses NaN
        raise SettingsError(f"{name}={text} is out of range; use {low:g} to {high:g}")
    return value


def _integer(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    value = _number(env, name, default, low, high)
    if value != int(value):
        raise SettingsError(f"{name}={env[name]} must be a whole number from {low} to {high}")
    return int(value)


def _choice(env: Mapping[str, str], name: str, default: str, known: Iterable[str]) -> str:
    value = env.get(name, "").strip() or default
    if value not in known:
        raise SettingsError(f"{name}={value!r} is unknown; use {' or '.join(known)}")
    return value


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read DEMO_SECONDS, LOAD, SEED, SERVERS, PROTOCOL, SCHEDULER and TARGET; what is unset or empty keeps its
    default.
    """
    default = Settings()
    protocol = _choice(env, "PROTOCOL", default.protocol, PROTOCOLS)
    target = _choice(env, "TARGET", default.target, TARGETS)
    scheduler = _choice(env, "SCHEDULER", "fifo", SCHEDULERS)
    if scheduler == "aifo" and target == "bmv2":
        raise SettingsError(
            "SCHEDULER=aifo does not go with TARGET=bmv2, where the bottleneck is a queue of the kernel's, whose depth "
            "the switch does not see; use TARGET=softswitch"
        )
    return Settings(
        seconds=_number(env, "DEMO_SECONDS", default.seconds, 1, 3600),
        load=_number(env, "LOAD", default.load, 0.05, 0.95),
        seed=_integer(env, "SEED", default.seed, 0, 2**32 - 1),
        servers=_integer(env, "SERVERS", default.servers, 2, 32),
        protocol=protocol,
        policies=tuple(p for p in POLICIES if p not in PROTOCOLS[protocol].left_out),
        schedulers=("fifo",) if scheduler == "fifo" else ("fifo", scheduler),
    ).on(target)


NOT_OF_THE_PAGE = ("DEMO_SECONDS", "LOAD", "PROTOCOL", "SCHEDULER", "TARGET")
"""What says nothing to the demo with real servers."""


def page_from_environment(env: Mapping[str, str] = os.environ) -> Settings | None:
    """Read QDSR, and if it is 1 SEED and SERVERS: a balancer and its real servers, behind links of which each carries
    less than a third of what the edge switch's does. None if the demo is to be the one without real servers.
    """
    default = Settings(servers=4, clients=1, policies=("cclb4",), protocol="quic", bottleneck_rate=80_000_000)
    if _choice(env, "QDSR", "0", ("0", "1")) == "0":
        return None
    if others := [name for name in NOT_OF_THE_PAGE if env.get(name, "").strip()]:
        raise SettingsError(f"QDSR=1 does not go with {', '.join(others)}; it takes SEED and SERVERS")
    return replace(
        default,
        seed=_integer(env, "SEED", default.seed, 0, 2**32 - 1),
        servers=_integer(env, "SERVERS", default.servers, 2, 8),
    )


def output_directory(env: Mapping[str, str] = os.environ) -> Path:
    """Where the report and everything temporary go: `build/demo` under the working directory, or FRONTAGE_DEMO_DIR."""
    return Path(env.get("FRONTAGE_DEMO_DIR", "") or "build/demo").absolute()
