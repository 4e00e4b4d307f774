# SPDX-License-Identifier: Apache-2.0
"""A client's latency estimates: moving average, timeout from the deviation, and back-off (Auspice, section 1.2.2).

Averages and timeouts are those of TCP (RFC 6298, section 2); the paper has the same two estimates without constants. Unlike in TCP,
back-off raises the *estimate* by which sites are compared, so that clients soon avoid a site that does not answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimation:
    """The constants of the estimates. Times are in seconds."""

    gain: float = 1 / 8
    """Weight of a new sample in the average (RFC 6298: alpha)."""
    deviation_gain: float = 1 / 4
    """Weight of a new difference in the mean deviation (RFC 6298: beta)."""
    deviations: float = 4.0
    """Mean deviations that a timeout adds to the average (RFC 6298: K)."""
    first_timeout: float = 1.0
    """Timeout before the first sample (RFC 6298, 2.1)."""
    min_timeout: float = 1.0
    """Smallest timeout (RFC 6298, 2.4): far above the variation of the path, because repeated requests add load."""
    max_timeout: float = 10.0
    """Largest timeout, after which the paper counts a request as failed (2.2.1)."""
    backoff: float = 2.0
    """Factor by which each timeout raises the estimate."""
    max_penalty: float = 64.0
    """Largest factor by which timeouts raise the estimate."""

    def __post_init__(self) -> None:
        for good, what in (
            (0 < self.gain <= 1 and 0 < self.deviation_gain <= 1, "gains must be above 0 and at most 1"),
            (self.deviations >= 0, "deviations must be at least 0"),
            (
                0 < self.min_timeout <= self.max_timeout < math.inf,
                "timeouts must be positive, with min_timeout at most max_timeout",
            ),
            (0 < self.first_timeout <= self.max_timeout, "first_timeout must be above 0 and at most max_timeout"),
            (1 < self.backoff <= self.max_penalty < math.inf, "backoff must be above 1 and at most max_penalty"),
        ):
            if not good:
                raise ValueError(what)


DEFAULT_ESTIMATION = Estimation()


@dataclass(slots=True)
class Latency:
    """One client's latency estimate of one site."""

    estimation: Estimation
    estimate: float = math.inf
    """The value by which the client compares sites: `average`, raised by timeouts; infinite before the first sample."""
    average: float = math.inf
    deviation: float = 0.0
    penalty: float = 1.0

    def answered(self, took: float | None) -> None:
        """Note an answered request, which ends the back-off. ``took``: its duration; None if that does not measure this site."""
        if took is not None:
            self._sample(took)
        self.penalty = 1.0
        self.estimate = self.average

    def pinged(self, rtt: float) -> None:
        """Note a ping. It shows that the site is reachable, not how busy it is, so it reverts one step of back-off only.

        Old queueing delays fade from the average, so that clients return to a site that has recovered.
        """
        self._sample(rtt)
        self.penalty = max(1.0, self.penalty / self.estimation.backoff)
        self.estimate = self.average * self.penalty

    def timed_out(self) -> None:
        """Note a request without an answer in time, or refused: the server or the path to it is congested."""
        constants = self.estimation
        self.penalty = min(self.penalty * constants.backoff, constants.max_penalty)
        self.estimate = (constants.first_timeout if self.average == math.inf else self.average) * self.penalty

    def _sample(self, took: float) -> None:
        if self.average == math.inf:
            self.average, self.deviation = took, took / 2
            return
        constants = self.estimation
        self.deviation += constants.deviation_gain * (abs(took - self.average) - self.deviation)
        self.average += constants.gain * (took - self.average)

    @property
    def timeout(self) -> float:
        """Seconds to wait for the next request. Each timeout raises it (RFC 6298, 5.5)."""
        constants = self.estimation
        if self.average == math.inf:
            return min(constants.first_timeout * self.penalty, constants.max_timeout)
        least = max(constants.min_timeout, self.average + constants.deviations * self.deviation)
        return min(least * self.penalty, constants.max_timeout)
