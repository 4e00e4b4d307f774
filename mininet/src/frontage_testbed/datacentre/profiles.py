# SPDX-License-Identifier: Apache-2.0
"""The programs for Tofino on which a testbed can run, and what they leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Profile:
    """A program of `p4src/tna`."""

    protocols: tuple[str, ...] = ("tcp", "quic")
    """Keys of PROTOCOLS."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Policies that the program does not have, with the reason."""
    has_schedulers: bool = False
    resolves_neighbors: bool = False
    """If false, the configuration has the Ethernet addresses of the neighbors."""
    pipes_per_packet: int = 1
    """Pipes that a packet passes, one behind the other."""


PROFILES = {
    "tofino1": Profile(protocols=("tcp",)),
    "tofino1quic": Profile(protocols=("quic",), left_out={"cheetah-rr": "Tofino 1 has no stage for its pool"}),
    "tofino2": Profile(has_schedulers=True, resolves_neighbors=True),
    "tofino2core": Profile(),
    "tofino2folded": Profile(resolves_neighbors=True, pipes_per_packet=2),
    "tofino2full": Profile(has_schedulers=True, resolves_neighbors=True, pipes_per_packet=4),
}
DEFAULT = "tofino2"
