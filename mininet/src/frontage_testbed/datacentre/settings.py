# SPDX-License-Identifier: Apache-2.0
"""The demo's settings from environment variables, validated before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..load.protocols import LSQUIC, PROTOCOLS, Protocol
from . import profiles
from .profiles import PROFILES, Profile

POLICIES = ("hash", "cheetah-rr", "cheetah-ll", "cclb4", "cclb4-current", "cclb4-future")
TARGETS = ("softswitch", "bmv2", "tna")
SCHEDULERS = ("fifo", "aifo")
QUIC_SERVERS = ("cclb7", "lsquic")
"""The servers with PROTOCOL=quic: `frontage-cclb7-quic` and `frontage-lsquic`."""
FRAME = 1514
"""Bytes of a full frame."""
BMV2_RATE = 40_000_000
"""Maximum bottleneck rate with BMv2, in bit/s."""


class SettingsError(ValueError):
    """A setting has an invalid value."""


@dataclass(frozen=True)
class Treatment:
    """The settings in which runs with the same arrivals differ."""

    policy: str
    """How the switch assigns connections to servers."""
    scheduler: str = "fifo"
    """Scheduler of the bottleneck's queue."""

    @property
    def name(self) -> str:
        """Name for tables: the policy, with the scheduler unless it is FIFO."""
        return self.policy if self.scheduler == "fifo" else f"{self.policy}+{self.scheduler}"


@dataclass(frozen=True)
class Settings:
    """Settings of one demo. Rates are in bit/s on the wire, delays in seconds one way, sizes in bytes."""

    seconds: float = 20.0
    """Duration of the arrivals under each policy."""
    load: float = 0.8
    """Offered traffic as a share of the bottleneck's rate."""
    seed: int = 1
    servers: int = 8
    protocol: str = "tcp"
    """A key of PROTOCOLS."""
    server: str = QUIC_SERVERS[0]
    """One of QUIC_SERVERS."""
    target: str = "softswitch"
    program: str = profiles.DEFAULT
    """The program of the target "tna": a key of PROFILES."""
    pipes: int = 1
    """Pipes of the edge switch; only the target "tna" can have more than one."""
    clients: int = 4
    policies: tuple[str, ...] = POLICIES
    schedulers: tuple[str, ...] = ("fifo",)
    """Schedulers of the bottleneck's queue; each policy runs with each of them."""
    bottleneck_rate: int = 160_000_000
    """Rate of the edge switch's port towards the clients."""
    server_headroom: float = 1.25
    """Total rate of the servers' links, as a multiple of the bottleneck's rate."""
    delay: float = 0.001
    """Propagation delay of the client link, each way."""
    queue_delay: float = 0.010
    """Depth of the bottleneck's queue as its drain time: about the round-trip time of the loaded path."""
    size_scale: float = 0.1
    """Factor on the workload's flow sizes."""
    keep: bool = False
    """Whether the network stays up after the runs, with requests, until Ctrl-C."""

    def on(self, target: str) -> Settings:
        """Return the settings for a target. BMv2 forwards some thousand packets per second, and its links have no delay."""
        if target == "bmv2":
            return replace(self, target=target, bottleneck_rate=min(self.bottleneck_rate, BMV2_RATE), delay=0.0)
        return replace(self, target=target)

    @property
    def profile(self) -> Profile | None:
        """The profile of the program for Tofino. None for other targets."""
        return PROFILES[self.program] if self.target == "tna" else None

    @property
    def pipes_per_packet(self) -> int:
        """How many pipes of the edge switch a packet passes, one behind the other. If several, all ports are in the first one."""
        return 1 if self.profile is None else self.profile.pipes_per_packet

    @property
    def chip_pipes(self) -> int:
        """Pipes of the edge switch, including those without ports."""
        return self.pipes if self.pipes_per_packet == 1 else self.pipes_per_packet

    @property
    def target_name(self) -> str:
        """The target for people to read, with the program if there are several."""
        return f"{self.target}, {self.program}" if self.target == "tna" else self.target

    @property
    def terms(self) -> Protocol:
        """The protocol, with the terms for its servers."""
        return LSQUIC if self.server == "lsquic" else PROTOCOLS[self.protocol]

    @property
    def left_out(self) -> dict[str, str]:
        """The policies that do not run, with the reason."""
        profile = self.profile
        return dict(PROTOCOLS[self.protocol].left_out) | dict(profile.left_out if profile else {})

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
        """Depth in packets instead of bytes: the number of full frames that fit into it. None if the queue counts bytes.

        AIFO counts packets, so when another scheduler is compared with it, both queues do.
        """
        return self.bottleneck_queue // FRAME if "aifo" in self.schedulers else None

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """The runs of the demo, in order."""
        return tuple(Treatment(policy, scheduler) for policy in self.policies for scheduler in self.schedulers)

    def as_dict(self) -> dict[str, object]:
        """Return the settings and derived values for the report."""
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
    if not low <= value <= high:  # also rejects NaN
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
    """Read DEMO_SECONDS, LOAD, SEED, SERVERS, PROTOCOL, SERVER, SCHEDULER, TARGET, PROFILE and KEEP.

    Those that are unset or empty keep their defaults.
    """
    default = Settings()
    protocol = _choice(env, "PROTOCOL", default.protocol, PROTOCOLS)
    target = _choice(env, "TARGET", default.target, TARGETS)
    scheduler = _choice(env, "SCHEDULER", "fifo", SCHEDULERS)
    if scheduler == "aifo" and target == "bmv2":
        raise SettingsError(
            "SCHEDULER=aifo is not available with TARGET=bmv2, whose bottleneck is a kernel queue that the switch cannot see; "
            "use TARGET=softswitch"
        )
    settings = Settings(
        seconds=_number(env, "DEMO_SECONDS", default.seconds, 1, 3600),
        load=_number(env, "LOAD", default.load, 0.05, 0.95),
        seed=_integer(env, "SEED", default.seed, 0, 2**32 - 1),
        servers=_integer(env, "SERVERS", default.servers, 2, 32),
        protocol=protocol,
        server=_server(env, protocol),
        program=_program(env, target, protocol, scheduler),
        schedulers=("fifo",) if scheduler == "fifo" else ("fifo", scheduler),
        keep=_choice(env, "KEEP", "0", ("0", "1")) == "1",
    ).on(target)
    return replace(settings, policies=tuple(p for p in POLICIES if p not in settings.left_out))


def _server(env: Mapping[str, str], protocol: str) -> str:
    server = _choice(env, "SERVER", QUIC_SERVERS[0], QUIC_SERVERS)
    if protocol != "quic" and env.get("SERVER", "").strip():
        raise SettingsError(f"SERVER={server} is a QUIC server; use it with PROTOCOL=quic")
    return server


def _program(env: Mapping[str, str], target: str, protocol: str, scheduler: str) -> str:
    program = _choice(env, "PROFILE", profiles.DEFAULT, PROFILES)
    if target != "tna":
        if env.get("PROFILE", "").strip():
            raise SettingsError(f"PROFILE={program} is a program for Tofino; use it with TARGET=tna")
        return program
    profile = PROFILES[program]
    if protocol not in profile.protocols:
        raise SettingsError(f"PROFILE={program} does not have PROTOCOL={protocol}; use {' or '.join(profile.protocols)}")
    if scheduler != "fifo" and not profile.has_schedulers:
        raise SettingsError(f"PROFILE={program} does not have SCHEDULER={scheduler}; use PROFILE={profiles.DEFAULT}")
    return program


NOT_WITH_REAL_SERVERS = ("DEMO_SECONDS", "LOAD", "PROTOCOL", "SERVER", "SCHEDULER", "TARGET", "PROFILE")
"""Settings that the demo with real servers does not have."""


def page_from_environment(env: Mapping[str, str] = os.environ) -> Settings | None:
    """Read QDSR, and if it is 1, SEED, SERVERS and KEEP: a balancer and its real servers.

    Each server's link has less than a third of the rate of the edge switch's link. Returns None for the demo without real
    servers.
    """
    default = Settings(servers=4, clients=1, policies=("cclb4",), protocol="quic", bottleneck_rate=80_000_000)
    if _choice(env, "QDSR", "0", ("0", "1")) == "0":
        return None
    if others := [name for name in NOT_WITH_REAL_SERVERS if env.get(name, "").strip()]:
        raise SettingsError(f"QDSR=1 cannot be combined with {', '.join(others)}; it takes SEED, SERVERS and KEEP")
    return replace(
        default,
        seed=_integer(env, "SEED", default.seed, 0, 2**32 - 1),
        servers=_integer(env, "SERVERS", default.servers, 2, 8),
        keep=_choice(env, "KEEP", "0", ("0", "1")) == "1",
    )


def output_directory(env: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the report and all temporary files: FRONTAGE_DEMO_DIR, by default `build/demo`."""
    return Path(env.get("FRONTAGE_DEMO_DIR", "") or "build/demo").absolute()
