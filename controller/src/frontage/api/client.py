# SPDX-License-Identifier: Apache-2.0
"""A client of the HTTP API: over the control socket, over TCP, or in this process while no controller is running."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from frontage.certificates import CertificateError, load
from frontage.config import Config
from frontage.tls import explain

LOCAL = "http://frontage"


class RequestError(Exception):
    """A request fails; the message says why and what to do."""

    def __init__(self, message: str, *, status: int | None = None, changed: bool = False, request_id: str | None = None):
        """``status`` is the HTTP status, if there was a response. ``changed``: the file has changed, but not the switches.

        ``request_id`` identifies the request in the controller's log.
        """
        super().__init__(message)
        self.request_id = request_id
        self.status = status
        self.changed = changed


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    body: Any
    """The JSON value, or the text."""
    etag: str | None


class Client:
    """Sends requests to one controller. Use as a context manager."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None, base: str, timeout: float, token: str | None = None):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx.AsyncClient(transport=transport, base_url=base, timeout=timeout, headers=headers)
        self._name = base if base != LOCAL else "the controller"
        self._timeout = timeout

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def send(
        self, method: str, path: str, body: Any = None, *, text: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request to a path below `/v1`. Raises RequestError."""
        sent = {"X-Request-ID": secrets.token_hex(16), **(headers or {})}
        request_id = sent["X-Request-ID"]
        try:
            response = await self._client.request(method, f"/v1{path}", json=body, content=text, headers=sent)
        except httpx.TimeoutException:
            why = f"no response from {self._name} within {self._timeout:g} s: see `frontage status`"
            raise RequestError(why, request_id=request_id) from None
        except httpx.HTTPError as error:
            raise RequestError(f"{self._name} is unreachable: {explain(error)}") from None
        is_json = response.headers.get("Content-Type", "").endswith("json")
        answer = response.json() if is_json else response.text
        if response.is_error or response.status_code == httpx.codes.NOT_MODIFIED:
            problem = answer if isinstance(answer, dict) else {}
            detail = str(problem.get("detail", response.reason_phrase))
            request_id = str(problem.get("request_id") or request_id)
            raise RequestError(detail, status=response.status_code, changed=bool(problem.get("changed")), request_id=request_id)
        return Answer(answer, response.headers.get("ETag"))


def socket_path(config: Config, file: Path) -> Path:
    """Return the path of the control socket for this configuration file."""
    if config.control_socket is not None:
        return config.control_socket
    file = file.resolve()
    return file.with_name(f".{file.name}.sock")


def is_listening(path: Path) -> bool:
    """Return whether a controller listens on a control socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True


def local(path: Path, timeout: float) -> Client:
    """Return a client of the controller that listens on a control socket."""
    return Client(httpx.AsyncHTTPTransport(uds=os.fspath(path)), LOCAL, timeout)


def remote(
    url: str,
    timeout: float,
    token: str | None,
    authorities: Path | None = None,
    certificate: tuple[Path, Path | None] | None = None,
) -> Client:
    """Return a client of a controller at a URL.

    ``authorities``: a PEM file, instead of the system's. ``certificate``: PEM files with the client's certificate and key.
    Raises RequestError.
    """
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise RequestError(f"{authorities}: cannot load the authorities: {error}") from None
    if certificate is not None:
        try:
            load(certificate[0]).check(certificate[0])
            context.load_cert_chain(*certificate)
        except CertificateError as error:
            raise RequestError(str(error)) from None
        except (OSError, ssl.SSLError) as error:
            raise RequestError(
                f"{certificate[0]}: cannot load certificate and key: {error}: use PEM files of a matching pair"
            ) from None
    return Client(httpx.AsyncHTTPTransport(verify=context), url.rstrip("/"), timeout, token)


def ask(path: Path, method: str, where: str, body: Any = None, *, timeout: float) -> Any:
    """Send one request to a control socket, and return the body of the answer. Raises RequestError."""

    async def run() -> Any:
        async with local(path, timeout) as client:
            return (await client.send(method, where, body)).body

    return asyncio.run(run())
