# SPDX-License-Identifier: Apache-2.0
"""Errors of the store that several controllers share."""


class StoreError(Exception):
    """The store is unreachable or unusable; the message says why and what to do."""


class OvertakenError(Exception):
    """Another controller has written first, so this write was rejected."""
