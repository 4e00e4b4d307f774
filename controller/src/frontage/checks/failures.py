# SPDX-License-Identifier: Apache-2.0
"""Errors of a check: those of the server, and those of the checker itself."""

from __future__ import annotations

import errno
import os


class CheckFailedError(Exception):
    """The server did not pass."""


class CheckerFailedError(Exception):
    """The checker could not check, which says nothing about the server."""


_LOCAL = frozenset(
    {
        errno.EACCES,
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
        errno.EAFNOSUPPORT,
        errno.EHOSTUNREACH,
        errno.EMFILE,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENODEV,
        errno.ENOMEM,
        errno.EPERM,
    }
)
"""Errors of the checker's own machine and its way to the switch. The switch sends no ICMP errors, so `EHOSTUNREACH` means that
the next hop is silent."""


def of_errno(code: int) -> CheckFailedError | CheckerFailedError:
    """Return the error of a failed system call."""
    text = os.strerror(code).lower()
    return CheckerFailedError(text) if code in _LOCAL else CheckFailedError(text)


def of_timeout(seconds: float) -> CheckFailedError:
    return CheckFailedError(f"no answer within {seconds:g} s")
