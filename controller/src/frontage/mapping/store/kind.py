"""The kinds of rows that CSV files bring; apart from csvfile, so that the command line knows them without its libraries."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a file holds."""

    MEASUREMENTS = "measurements"
    DEPLOYMENTS = "deployments"
    SERVICES = "services"
