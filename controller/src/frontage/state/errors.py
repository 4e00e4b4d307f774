# SPDX-License-Identifier: Apache-2.0
"""The error of a state that a switch cannot have."""

from __future__ import annotations


class ReconcileError(Exception):
    """The desired state cannot be installed. The installed state is unchanged."""
