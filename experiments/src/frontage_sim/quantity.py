"""Quantities with units, as the switch's ``--link`` takes them: ``10gbit``, ``5us``, ``64kB``; and what they are for pydantic."""

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
    """A whole number of the least unit. Raises ValueError, which says what is accepted."""
    if isinstance(value, int):
        return value
    found = _QUANTITY.fullmatch(str(value).strip())
    if found is None or found[2] not in units:
        raise ValueError(f"invalid quantity {{}}: not a number with one of the units {', '.join(units)}")
    exact = Fraction(found[1]) * units[found[2]]
    if exact.denominator != 1:
        raise ValueError(f"invalid quantity {{}}: not a whole number of {next(iter(units))}")
    return int(exact)


Rate = Annotated[int, BeforeValidator(lambda value: parse(value, RATE)), Field(gt=0)]
"""Bits a second."""
Duration = Annotated[int, BeforeValidator(lambda value: parse(value, TIME)), Field(ge=0)]
"""Nanoseconds."""
Size = Annotated[int, BeforeValidator(lambda value: parse(value, SIZE)), Field(ge=0)]
"""Bytes."""
