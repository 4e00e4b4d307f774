# SPDX-License-Identifier: Apache-2.0
"""The error that ends a run before its tests."""


class RunError(Exception):
    """The tests cannot run. The message has the form `PLACE: WHAT IS WRONG: WHAT TO DO`."""
