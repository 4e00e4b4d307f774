# SPDX-License-Identifier: Apache-2.0
"""The section ``samples`` of the configuration file: packet samples for sFlow and INT collectors."""

from __future__ import annotations

from pydantic import Field, model_validator

from frontage.fields import IPAddress, Listen, Model

MAX_ONE_IN = 1 << 24
MAX_DROPS = 1000


class Samples(Model):
    collectors: tuple[Listen, ...] = Field(
        (), max_length=8, description="host:port of sFlow collectors", examples=["192.0.2.9:6343"]
    )
    agent: IPAddress = Field(
        description="the sFlow agent address of all switches; the device id is the sub-agent id", examples=["192.0.2.1"]
    )
    one_in: int = Field(1000, ge=1, le=MAX_ONE_IN, description="the sampling rate: one in this many packets", examples=[1000])
    ports: tuple[str, ...] = Field((), description="the ports whose ingress packets are sampled; default: all", examples=["uplink"])
    drops_per_second: int = Field(
        10,
        ge=0,
        le=MAX_DROPS,
        description="the maximum number of dropped packets to report per second and reason; 0: none",
        examples=[10],
    )
    postcards: Listen | None = Field(
        None, description="host:port of a collector of INT reports with latency and queue depth", examples=["192.0.2.9:32766"]
    )

    @model_validator(mode="after")
    def _has_collector(self) -> Samples:
        if not self.collectors and self.postcards is None:
            raise ValueError("missing collector: set collectors, postcards or both")
        return self

    @property
    def threshold(self) -> int:
        """Packets whose 32-bit hash is below this number are sampled."""
        return min((1 << 32) // self.one_in, (1 << 32) - 1)
