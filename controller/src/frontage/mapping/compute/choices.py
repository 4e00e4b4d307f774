"""What a deployment - a set of sites, and to how many of them a first flight goes - chooses in each order of sites."""

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
"""64-bit words of a signature."""
NOBODY = 0xFF
"""Stands for a site where there are fewer than the redundancy asks for."""


class Deployment(NamedTuple):
    """Services with the same sites and redundancy choose alike, so they are computed and installed as one."""

    sites: tuple[int, ...]
    """Columns, ascending."""
    redundancy: int


def best(keys: Keys, deployment: Deployment) -> Choice:
    """The columns of its best sites, best first: [redundancy, orders] of ``keys`` [sites, orders]; NOBODY behind the last."""
    found = np.full((deployment.redundancy, keys.shape[1]), NONE, np.uint16)
    if deployment.redundancy == 1:
        np.minimum.reduce(keys[list(deployment.sites)], axis=0, out=found[0])
        return (found & 0xFF).astype(np.uint8)
    for site in deployment.sites:
        key = keys[site]
        for place in found:
            key, place[:] = np.maximum(place, key), np.minimum(place, key)
    return (found & 0xFF).astype(np.uint8)


def signature(choice: Choice, deployment: Deployment) -> Signature:
    """What the choice adds to the orders' signatures: [WORDS, orders].

    A signature is the sum over all deployments of their choices, each times a number of its own, modulo 2^64, so a deployment
    comes and goes without the others being looked at. Two different rows of choices collide with a probability below 2^-100.
    """
    name = repr(deployment).encode()
    size = 8 * WORDS * len(choice)
    factors = np.frombuffer(hashlib.shake_128(name).digest(size), "<u8").reshape(WORDS, -1) | np.uint64(1)
    total = np.zeros((WORDS, choice.shape[1]), np.uint64)
    for place, columns in enumerate(choice):
        wide = columns.astype(np.uint64) + np.uint64(1)
        for word in range(WORDS):
            total[word] += wide * factors[word, place]
    return total
