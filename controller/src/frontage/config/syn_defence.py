# SPDX-License-Identifier: Apache-2.0
"""Section of the configuration about the defence of a VIP against SYN floods (docs/syn-flood.md)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from frontage.fields import Model

DEFAULT_MSS = {4: 1460, 6: 1440}
"""The maximum segment size by IP version, for servers with an MTU of 1500 bytes."""
MIN_MSS = {4: 536, 6: 1220}


class SynMode(StrEnum):
    """When the switch answers the SYNs of a VIP itself."""

    OFF = "off"
    AUTO = "auto"
    ALWAYS = "always"


class SynDefence(Model):
    mode: SynMode = Field(
        SynMode.AUTO,
        description="'auto' (the switch answers SYNs above the threshold), 'always' or 'off'",
        examples=["auto"],
    )
    threshold: int = Field(
        10_000,
        ge=1,
        le=10**9,
        description="the SYNs per second from which on the switch answers them in mode auto",
        examples=[10000],
    )
    hold: float = Field(
        60.0, ge=1, le=86400, description="the seconds below the threshold after which SYNs reach servers again", examples=[60]
    )
    mss: int | None = Field(
        None,
        ge=536,
        le=8960,
        description="the maximum segment size that the servers accept; that of an MTU of 1500 bytes if absent",
        examples=[8960],
    )

    def offered_mss(self, version: int) -> int:
        """Return the maximum segment size in answers of this IP version."""
        return self.mss or DEFAULT_MSS[version]
