"""The tables that CSV files hold. Apart from `csvfile`, so that the command line needs none of its libraries."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The table that a CSV file holds."""

    MEASUREMENTS = "measurements"
    DEPLOYMENTS = "deployments"
    SERVICES = "services"
