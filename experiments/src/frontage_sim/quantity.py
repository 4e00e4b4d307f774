# SPDX-License-Identifier: Apache-2.0
"""Quantities with units as in the switch's ``--link`` option (``10gbit``, ``5us``, ``64kB``), and their pydantic types."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field

RATE = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
SIZE = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20}

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def parse(value: object, units: dict[str, int]) -> int:
    """Return a whole number of the smallest unit. Raises ValueError with the valid units."""
    if isinstance(value, int):
        return value
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or match[2] not in units:
        raise ValueError(f"invalid quantity {{}}: not a number with one of the units {', '.join(units)}")
    exact = Fraction(match[1]) * units[match[2]]
    if exact.denominator != 1:
        raise ValueError(f"invalid quantity {{}}: not a whole number of {next(iter(units))}")
    return int(exact)


Rate = Annotated[int, BeforeValidator(lambda value: parse(value, RATE)), Field(gt=0)]
"""Bits per second."""
Duration = Annotated[int, BeforeValidator(lambda value: parse(value, TIME)), Field(ge=0)]
"""Nanoseconds."""
Size = Annotated[int, BeforeValidator(lambda value: parse(value, SIZE)), Field(ge=0)]
"""Bytes."""
