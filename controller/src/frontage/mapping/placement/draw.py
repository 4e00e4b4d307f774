# SPDX-License-Identifier: Apache-2.0
"""Random sites without state: a hash gives each (record, site) a priority.

A record's random sites are those with the smallest priorities. So they are distinct, every controller draws the same ones in any
order, and when a replica or a site is added or removed the others stay (rendezvous hashing, Thaler and Ravishankar 1998). The hash
is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), whose n-th number can be computed directly.
"""

from __future__ import annotations

import numpy as np

from frontage.mapping.placement.values import Flags, Keys

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(values: Keys) -> Keys:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def group_keys(records: Keys, chosen: Flags, sites: Keys) -> Keys:
    """Return a key by record that is equal for records with the same ``chosen`` sites [record, site]; without any, the record's own."""
    keys = np.bitwise_xor.reduce(np.where(chosen, _mix((sites + np.uint64(1)) * _GOLDEN), np.uint64(0)), axis=1)
    return np.where(chosen.any(axis=1), keys, records)


def priorities(records: Keys, sites: Keys, seed: int) -> Keys:
    """Return the priorities by [record, site]. ``sites`` are ids."""
    seeded = _mix(records ^ _mix(np.array([seed], np.uint64) + _GOLDEN))
    return _mix(seeded[:, None] + (sites + np.uint64(1)) * _GOLDEN)
