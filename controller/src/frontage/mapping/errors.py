# SPDX-License-Identifier: Apache-2.0
"""Errors of the end-user mapping."""


class StoreError(Exception):
    """The store cannot do what was asked. The text says why, and what to do."""


class LeaseLostError(StoreError):
    """Another controller computes the mapping now; the results of this one were not written."""
