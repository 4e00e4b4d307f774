"""What a client knows of how long each site takes: moving average, time-out from its variance, back-off (Auspice, section 1.2.2).

Averages and time-outs are TCP's (RFC 6298, section 2): the paper has the same two estimates and gives no constants. Unlike TCP's,
the back-off is of the *estimate*, by which sites are compared, so that a site which does not answer is soon one that nobody asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimation:
    """Seconds where nothing else is said."""

    gain: float = 1 / 8
    """Of a new latency in the average (RFC 6298: alpha)."""
    deviation_gain: float = 1 / 4
    """Of a new difference in the mean deviation (beta)."""
    deviations: float = 4.0
    """In a time-out, beyond the average (K)."""
    first_timeout: float = 1.0
    """Where nothing has been measured (2.1)."""
    min_timeout: float = 1.0
    """(2.4): far above what varies on the way, since a request that is sent twice is load."""
    max_timeout: float = 10.0
    """The paper counts a request as failed after that (2.2.1)."""
    backoff: float = 2.0
    """The factor of an estimate for each time-out."""
    max_penalty: float = 64.0

    def __post_init__(self) -> None:
        for good, what in (
            (0 < self.gain <= 1 and 0 < self.deviation_gain <= 1, "a gain is not above 0 and at most 1"),
            (self.deviations >= 0, "deviations is negative"),
            (0 < self.min_timeout <= self.max_timeout < math.inf, "time-outs are not positive, the least at most the largest"),
            (0 < self.first_timeout <= self.max_timeout, "first_timeout is not above 0 and at most max_timeout"),
            (1 < self.backoff <= self.max_penalty < math.inf, "backoff is not above 1 and at most max_penalty"),
        ):
            if not good:
                raise ValueError(what)


DEFAULT_ESTIMATION = Estimation()


@dataclass(slots=True)
class Latency:
    """Of one site, as one client sees it."""

    estimation: Estimation
    estimate: float = math.inf
    """What the client compares sites by: `average`, times 2 and more after time-outs; infinite while nothing is known."""
    average: float = math.inf
    deviation: float = 0.0
    penalty: float = 1.0

    def answered(self, took: float | None) -> None:
        """A request was: whatever was held against the site is over. None: how long it took says nothing of this site."""
        if took is not None:
            self._sample(took)
        self.penalty = 1.0
        self.estimate = self.average

    def pinged(self, rtt: float) -> None:
        """The site can be reached, which says little of how busy it is: a ping takes one back-off back, and lets what waiting once
        added to the average fade, so that a site which is well again is asked again."""
        self._sample(rtt)
        self.penalty = max(1.0, self.penalty / self.estimation.backoff)
        self.estimate = self.average * self.penalty

    def timed_out(self) -> None:
        """A request was not answered in time, or refused: the server or the way to it is congested."""
        known = self.estimation
        self.penalty = min(self.penalty * known.backoff, known.max_penalty)
        self.estimate = (known.first_timeout if self.average == math.inf else self.average) * self.penalty

    def _sample(self, took: float) -> None:
        if self.average == math.inf:
            self.average, self.deviation = took, took / 2
            return
        known = self.estimation
        self.deviation += known.deviation_gain * (abs(took - self.average) - self.deviation)
        self.average += known.gain * (took - self.average)

    @property
    def timeout(self) -> float:
        """How long the next request may take, seconds; more after each time-out (RFC 6298, 5.5)."""
        known = self.estimation
        if self.average == math.inf:
            return min(known.first_timeout * self.penalty, known.max_timeout)
        least = max(known.min_timeout, self.average + known.deviations * self.deviation)
        return min(least * self.penalty, known.max_timeout)
