# SPDX-License-Identifier: Apache-2.0
"""Detects changes of the regional distribution of demand (Auspice, section 1.2.5).

A record stays if the gain of other sites is within statistical error. This prevents moves between equally good sites. The present sites
deserve this preference only as long as demand is as it was when they were chosen. After a change, the record gets the best sites that the
requests of the epoch show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from frontage.mapping.placement.policy import moved
from frontage.mapping.placement.values import Flags, Rows
from frontage_records.placement.counting import Counts, Requests

_DEVIATIONS = 3.0
"""Standard deviations of the chi-squared statistic above its mean from which on the difference of two samples counts as a change."""


class DemandChanges:
    """The demand for which the sites of each record were last chosen."""

    def __init__(self, regions: Sequence[int], threshold: float):
        """``threshold``: the least share of requests from other regions than before (total variation)."""
        self._regions = regions
        self._threshold = threshold
        self._chosen_for: dict[str, Mapping[int, Requests]] = {}

    def changed(self, counts: Counts) -> Flags:
        """Return for each record whether its demand has changed. The demand of a new record has not changed."""
        pairs = [(self._chosen_for.get(guid, {}), requests) for guid, requests in counts.items()]
        before, now = (np.array([self._vector(one) for one in side]) for side in zip(*pairs, strict=True))
        found: Flags = (moved(before, now) >= self._threshold) & differ(before, now)
        return found

    def remember(self, counts: Counts, chosen: Flags) -> None:
        """Remember the demand of records whose sites are ``chosen`` for it, and of new records. Forget records without demand."""
        self._chosen_for = {
            guid: requests if is_chosen else self._chosen_for.get(guid, requests)
            for (guid, requests), is_chosen in zip(counts.items(), chosen.tolist(), strict=True)
        }

    def _vector(self, requests: Mapping[int, Requests]) -> list[int]:
        return [one.total if (one := requests.get(region)) is not None else 0 for region in self._regions]


def differ(before: Rows, now: Rows) -> Flags:
    """Return by row whether two samples [row, region] come from different distributions, by the chi-squared test of homogeneity.

    A row without requests in one of them does not differ.
    """
    both, sizes = (before + now).astype(np.float64), (before.sum(axis=1), now.sum(axis=1))
    is_known = (sizes[0] > 0) & (sizes[1] > 0)
    ratio = np.sqrt(np.divide(sizes[1], sizes[0], out=np.ones(len(both)), where=is_known))[:, None]
    statistic = np.divide((before * ratio - now / ratio) ** 2, both, out=np.zeros_like(both), where=both > 0).sum(axis=1)
    freedom = np.maximum((both > 0).sum(axis=1) - 1, 0)
    found: Flags = is_known & (statistic > freedom + _DEVIATIONS * np.sqrt(2 * freedom))
    return found
