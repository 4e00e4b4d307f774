# SPDX-License-Identifier: Apache-2.0
"""Lets `random.sample` take sets, as before Python 3.11: the tests rely on it."""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from typing import Any

_sample = random.Random.sample


def _sample_of_any(self: random.Random, population: Sequence[Any] | Set[Any], *args: Any, **kwargs: Any) -> list[Any]:
    return _sample(self, sorted(population) if isinstance(population, Set) else population, *args, **kwargs)


random.Random.sample = _sample_of_any  # type: ignore[assignment]
# The functions of the module are methods of one generator.
random.sample = random._inst.sample  # type: ignore[attr-defined]
