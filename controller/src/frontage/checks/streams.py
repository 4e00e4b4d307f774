# SPDX-License-Identifier: Apache-2.0
"""Connections of checks that exchange data, with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from frontage.checks.failures import CheckFailedError, of_errno, of_timeout
from frontage.checks.messages import Target
from frontage.checks.sockets import tcp_socket

_DEFAULT_PORTS = {"http": 80, "https": 443, "http3": 443}


@asynccontextmanager
async def connected(
    target: Target, turn: int, alpn: str | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a server, with TLS if there is an ALPN protocol. The timeout of the target includes the context.

    Raises CheckFailedError and CheckerFailedError.
    """
    sock = tcp_socket(target, turn)
    writer = None
    try:
        async with asyncio.timeout(target.timeout):
            await asyncio.get_running_loop().sock_connect(sock, (target.address, target.port))
            tls = {} if alpn is None else {"ssl": _context(target.verify, alpn), "server_hostname": host(target)}
            reader, writer = await asyncio.open_connection(sock=sock, **tls)  # type: ignore[arg-type]
            yield reader, writer
    except TimeoutError:
        raise of_timeout(target.timeout) from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        raise CheckFailedError(f"TLS: {reason}") from None
    except OSError as error:
        raise of_errno(error.errno) if error.errno else CheckFailedError(str(error)) from None
    finally:
        if writer is not None:
            writer.transport.abort()
        else:
            sock.close()


def host(target: Target) -> str:
    """Return the name of the server for TLS."""
    return target.host or target.address


def authority(target: Target) -> str:
    """Return host and port as requests name them (RFC 9110, 4.2)."""
    name = f"[{host(target)}]" if ":" in host(target) else host(target)
    return name if target.port == _DEFAULT_PORTS.get(target.kind) else f"{name}:{target.port}"


@cache
def _context(verify: bool, alpn: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols([alpn])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
