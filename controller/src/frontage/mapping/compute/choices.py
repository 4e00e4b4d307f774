# SPDX-License-Identifier: Apache-2.0
"""The sites that a deployment chooses in each order of sites.

A deployment is a set of sites, and the number of them that get a copy of a first flight.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.orders import NONE

Keys = npt.NDArray[np.uint16]
Choice = npt.NDArray[np.uint8]
Signature = npt.NDArray[np.uint64]
WORDS = 2
"""Number of 64-bit words in a signature."""
NO_SITE = 0xFF
"""Fills a choice that has fewer sites than the redundancy asks for."""


class Deployment(NamedTuple):
    """A set of sites and a redundancy. Services with the same deployment are computed and installed as one."""

    sites: tuple[int, ...]
    """Columns of the sites, ascending."""
    redundancy: int


def best(keys: Keys, deployment: Deployment) -> Choice:
    """Return the columns of the best sites, best first, as [redundancy, orders] from ``keys`` [sites, orders].

    NO_SITE fills the rest.
    """
    found = np.full((deployment.redundancy, keys.shape[1]), NONE, np.uint16)
    if deployment.redundancy == 1:
        np.minimum.reduce(keys[list(deployment.sites)], axis=0, out=found[0])
        return (found & 0xFF).astype(np.uint8)
    for site in deployment.sites:
        key = keys[site]
        for rank in found:
            key, rank[:] = np.maximum(rank, key), np.minimum(rank, key)
    return (found & 0xFF).astype(np.uint8)


def signature(choice: Choice, deployment: Deployment) -> Signature:
    """Return what a deployment's choice adds to the orders' signatures, as [WORDS, orders].

    A signature is the sum of all deployments' choices modulo 2^64, each multiplied by a factor of its own. So a deployment can be
    added or removed without a look at the others. Two different rows of choices collide with a probability below 2^-100.
    """
    name = repr(deployment).encode()
    size = 8 * WORDS * len(choice)
    factors = np.frombuffer(hashlib.shake_128(name).digest(size), "<u8").reshape(WORDS, -1) | np.uint64(1)
    total = np.zeros((WORDS, choice.shape[1]), np.uint64)
    for rank, columns in enumerate(choice):
        wide = columns.astype(np.uint64) + np.uint64(1)
        for word in range(WORDS):
            total[word] += wide * factors[word, rank]
    return total
