# SPDX-License-Identifier: Apache-2.0
"""Errors of the store that several controllers share."""


class StoreError(Exception):
    """The store does not answer, or cannot be used; the message says why and what to do."""


class OvertakenError(Exception):
    """Another controller has written first, so this write was not done."""
