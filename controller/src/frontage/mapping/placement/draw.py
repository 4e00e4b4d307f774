"""Random places that need no state: each (record, site) has a priority of its own, by a hash.

A record's random places are the sites of least priority, so they are without repetition, the same whoever draws them and in
whatever order, and where a replica or a site comes or goes the others stay (rendezvous hashing, Thaler and Ravishankar 1998).
The hash is SplitMix64's (Steele, Lea and Flood, OOPSLA 2014), whose n-th number needs none of those before.
"""

from __future__ import annotations

import numpy as np

from frontage.mapping.placement.values import Flags, Keys

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(values: Keys) -> Keys:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def together(records: Keys, chosen: Flags, sites: Keys) -> Keys:
    """By record a key that all those have who are at the same sites, [record, site], whatever their order; its own if at none."""
    keys = np.bitwise_xor.reduce(np.where(chosen, _mix((sites + np.uint64(1)) * _GOLDEN), np.uint64(0)), axis=1)
    return np.where(chosen.any(axis=1), keys, records)


def priorities(records: Keys, sites: Keys, seed: int) -> Keys:
    """[record, site]; sites by their ids."""
    seeded = _mix(records ^ _mix(np.array([seed], np.uint64) + _GOLDEN))
    return _mix(seeded[:, None] + (sites + np.uint64(1)) * _GOLDEN)
