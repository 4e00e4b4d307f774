# SPDX-License-Identifier: Apache-2.0
"""Script checks: a command of the operator ends with status 0.

The environment tells it what to check: ``FRONTAGE_ADDRESS`` and ``FRONTAGE_PORT`` of the service, and ``FRONTAGE_SOURCE_ADDRESS``
and ``FRONTAGE_SOURCE_PORT``, from which its packets reach the server ``FRONTAGE_SID``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from frontage.checks.failures import CheckerFailedError, CheckFailedError, of_timeout
from frontage.checks.messages import Target
from frontage.checks.sockets import source_port

_MAX_TEXT = 200


async def check(target: Target, turn: int) -> None:
    """Run the command. Raises CheckFailedError and CheckerFailedError."""
    variables = {
        "ADDRESS": target.address,
        "PORT": target.port,
        "SOURCE_ADDRESS": target.source,
        "SOURCE_PORT": source_port(target.sid, turn),
        "SID": target.sid,
    }
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environment = {**os.environ, **{f"FRONTAGE_{name}": str(value) for name, value in variables.items()}}
    try:
        process = await asyncio.create_subprocess_exec(
            *target.command, stdin=null, stdout=null, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        raise CheckerFailedError(f"{target.command[0]}: {error.strerror}") from None
    try:
        async with asyncio.timeout(target.timeout):
            _, errors = await process.communicate()
    except TimeoutError:
        raise of_timeout(target.timeout) from None
    finally:
        # Also what the command has left running.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        text = f": {lines[-1][:_MAX_TEXT]}" if lines else ""
        raise CheckFailedError(f"{target.command[0]} ended with status {process.returncode}{text}")
