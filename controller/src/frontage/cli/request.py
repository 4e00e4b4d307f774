# SPDX-License-Identifier: Apache-2.0
"""Requests of commands: to the running controller, to a remote one, or to the file alone while no controller runs."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import typer

from frontage.cli.common import fail, load_config, out

TIMEOUT = 65.0
"""Seconds that a command waits for the running controller, a little longer than the controller waits for the switch."""
NOT_INSTALLED = 2
"""The exit status if the file has changed, but the switches have not."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The controller of the option `--server`, and the options for it."""

    url: str
    token_file: Path | None
    authorities: Path | None
    certificate: Path | None
    key: Path | None


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="FRONTAGE_SERVER",
        help="The API of a remote controller, such as https://controller:9480, instead of the control socket.",
    ),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="FRONTAGE_TOKEN_FILE",
        help="A file with the token for --server, or with an OpenID Connect token.",
    ),
]
AuthoritiesOption = Annotated[
    Path | None,
    typer.Option(
        "--authorities",
        metavar="FILE",
        envvar="FRONTAGE_AUTHORITIES",
        help="A PEM file with the certificate authorities for --server. Default: the system's.",
    ),
]


CertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--certificate", metavar="FILE", envvar="FRONTAGE_CERTIFICATE", help="A PEM file with your certificate for --server."
    ),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        envvar="FRONTAGE_KEY",
        help="A PEM file with the key, if the file of --certificate does not contain it.",
    ),
]


def remember(
    context: typer.Context,
    server: ServerOption = None,
    token_file: TokenOption = None,
    authorities: AuthoritiesOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
) -> None:
    """Keep the options that come before the command."""
    context.obj = None if server is None else Remote(server, token_file, authorities, certificate, key)


@dataclass(slots=True)
class Requests:
    """Sends the requests of one command, and exits with an error if one fails."""

    context: typer.Context
    file: Path
    as_json: bool = False
    is_running: bool = True
    """False if no controller runs. Known after the first request."""
    request_id: str = field(default_factory=lambda: secrets.token_hex(16))
    """The correlation id of all requests of the command."""
    _path: Path | None = None
    """The control socket, once it is known: a large configuration takes seconds to load."""

    def send(self, method: str, path: str, body: Any = None, *, failed: str = "") -> Any:
        """Send a request, and return the body of the answer. ``failed`` precedes the reason if the request fails."""

        async def run() -> Any:
            from frontage.api.client import RequestError

            try:
                async with self._client() as client:
                    return (await client.send(method, path, body, headers={"X-Request-ID": self.request_id})).body
            except RequestError as error:
                # Only a controller has a log.
                known = error.request_id if self.is_running else None
                if error.changed:
                    fail(f"changed, but not installed: {error}", as_json=self.as_json, code=NOT_INSTALLED, request_id=known)
                fail(f"{failed}{error}", as_json=self.as_json, request_id=known)

        return asyncio.run(run())

    def _client(self) -> Any:
        from frontage.api import client

        remote: Remote | None = self.context.find_root().obj
        if remote is not None:
            try:
                return _remote_client(remote)
            except client.RequestError as error:
                fail(error, as_json=self.as_json)
        if self._path is None:
            self._path = client.socket_path(load_config(self.file, as_json=self.as_json), self.file)
        self.is_running = client.is_listening(self._path)
        return client.local(self._path, TIMEOUT) if self.is_running else _offline(self.file)

    def change(self, method: str, path: str, body: Any = None) -> None:
        """Send a change, wait until it is installed, and print the result."""
        operation = self.send(method, path, body)
        done, installed, missing = operation["changed"], operation["installed"], operation["missing"]
        if self.as_json:
            number = operation["number"]
            out.print_json(json.dumps({"ok": True, "changed": done, "installed": installed, "missing": missing, "number": number}))
        elif missing:
            out.print(f"{done}: installed, except in {', '.join(missing)} (unreachable; installed later)", highlight=False)
        elif installed:
            out.print(f"{done}: installed", highlight=False)
        else:
            where = f"written to {self.file}: no controller is running: install it with `frontage up {self.file}`"
            out.print(f"{done}: {where}", highlight=False)


class KeyRequests:
    """Sends the requests of `frontage follow-keys`. Each request reloads the certificates."""

    def __init__(self, context: typer.Context):
        self._remote: Remote = context.find_root().obj

    def send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        """Return the answer, or None if nothing has changed. Raises RequestError."""

        async def run() -> Any:
            from frontage.api import client

            async with _remote_client(self._remote) as connected:
                try:
                    return await connected.send(method, path, body, headers=headers)
                except client.RequestError as error:
                    if error.status == HTTPStatus.NOT_MODIFIED:
                        return None
                    raise

        return asyncio.run(run())


def _remote_client(remote: Remote) -> Any:
    """Return a client of a remote controller. Raises RequestError."""
    from frontage.api import client

    own = None if remote.certificate is None else (remote.certificate, remote.key)
    return client.remote(remote.url, TIMEOUT, _token(remote), remote.authorities, own)


def _token(remote: Remote) -> str | None:
    if remote.token_file is None:
        token = os.environ.get("FRONTAGE_TOKEN")
        if not token and remote.certificate is None:
            fail("--server needs a token or a certificate: use --token-file or --certificate, or set FRONTAGE_TOKEN")
        return token or None
    try:
        return remote.token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{remote.token_file}: cannot be read: {error}")


def _offline(file: Path) -> Any:
    """Return a client of the API in this process, whose changes only edit the file."""
    import httpx

    from frontage.api import access
    from frontage.api.app import Shared, application
    from frontage.api.client import LOCAL, Client
    from frontage.api.offline import Offline

    app = application(Shared(Offline(file)), access.local)
    return Client(httpx.ASGITransport(app, client=(str(os.getuid()), os.getpid())), LOCAL, TIMEOUT)
