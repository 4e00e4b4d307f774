# SPDX-License-Identifier: Apache-2.0
"""The tables that CSV files hold. A module apart from `csvfile`, so that the command line starts without its libraries."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The table that a CSV file holds."""

    MEASUREMENTS = "measurements"
    DEPLOYMENTS = "deployments"
    SERVICES = "services"
