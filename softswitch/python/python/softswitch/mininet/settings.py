# SPDX-License-Identifier: Apache-2.0
"""Rate, delay and loss of one direction of a link."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNSUPPORTED = ("jitter", "use_hfsc", "use_tbf", "latency_ms", "enable_ecn", "enable_red", "speedup")
"""Parameters of mininet's TCLink that softswitch's links do not have."""


class LinkError(ValueError):
    """An invalid parameter of a link."""


@dataclass(frozen=True)
class Settings:
    """One direction of a link, in the parameters of mininet's TCLink."""

    bw: float | None = None
    """Rate in Mbit/s (10^6 bits per second)."""
    delay: str | None = None
    """Propagation delay with its unit: "5ms", "10us"."""
    loss: float | None = None
    """Share of lost frames in percent."""
    max_queue_size: int | None = None
    """Frames that wait at most; needs `bw`."""

    def __post_init__(self) -> None:
        """Raise LinkError for invalid values."""
        if self.bw is not None and not self.bw > 0:
            raise LinkError(f"bw={self.bw}: not a rate: use Mbit/s above 0")
        if self.delay is not None and not re.fullmatch(r"\d+(\.\d+)?(ns|us|ms|s)", str(self.delay)):
            raise LinkError(f"delay={self.delay}: no unit: write 5ms, for example")
        if self.loss is not None and not 0 <= self.loss <= 100:
            raise LinkError(f"loss={self.loss}: not a percentage: use 0 to 100")
        if self.max_queue_size is not None and self.bw is None:
            raise LinkError(f"max_queue_size={self.max_queue_size}: without a rate, no frame waits: add bw=")

    def option(self) -> str:
        """Return these settings as those of softswitch's option `--link`; empty without settings."""
        parts = []
        if self.bw is not None:
            parts.append(f"rate={round(self.bw * 1_000_000)}bit")
        if self.max_queue_size is not None:
            parts.append(f"queue-packets={self.max_queue_size}")
        if self.delay is not None:
            parts.append(f"delay={self.delay}")
        if self.loss:
            parts.append(f"loss={self.loss}%")
        return ",".join(parts)
