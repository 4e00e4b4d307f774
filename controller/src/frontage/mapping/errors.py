"""Errors of the end-user mapping."""


class StoreError(Exception):
    """What the store does not do, and what to do about it."""


class LeaseLostError(StoreError):
    """Another controller computes the mapping now: what this one computed was not written."""
