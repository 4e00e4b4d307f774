# SPDX-License-Identifier: Apache-2.0
"""The addresses on which the controller accepts requests: the control socket, and the TCP address of the section ``api``."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from frontage.api import access
from frontage.api.app import Shared, application
from frontage.api.authentication import Authentication
from frontage.api.client import is_listening
from frontage.api.server import Listener, ListenError, bind_tcp, bind_unix
from frontage.certificates import Certificate, load
from frontage.client_certificates import ClientCertificatesError
from frontage.config.api import Api
from frontage.stamps import Stamp, stamp
from frontage.tls import TlsError, load_certificate, server_context
from frontage.tokens import TokenFileError

log = logging.getLogger(__name__)


class ControlSocket:
    """The control socket, whose clients have all permissions."""

    def __init__(self, path: Path, shared: Shared):
        self.path = path
        self._app = application(shared, access.local)
        self._listener: Listener | None = None
        self._inode = 0

    async def start(self, *, take_over: bool) -> bool:
        """Listen and return True, or return False if another controller listens.

        With ``take_over``, replace the other controller, because commands are for the primary. Raises ListenError.
        """
        if self._listener is not None and self._owns_path():
            return True
        if not take_over and await asyncio.to_thread(is_listening, self.path):
            return False
        await self.close()
        self._listener = Listener(self._app, bind_unix(self.path), is_local=True)
        self._inode = self.path.stat().st_ino
        return True

    async def close(self) -> None:
        """Stop listening."""
        if self._listener is None:
            return
        if self._owns_path():
            self.path.unlink(missing_ok=True)
        await self._listener.close()
        self._listener = None

    def _owns_path(self) -> bool:
        """Return whether the socket at the path is ours; another controller may have replaced it."""
        found = stamp(self.path)
        return found is not None and found[0] == self._inode


class TcpApi:
    """The TCP address of the API. `follow` applies the configuration, with current tokens and certificates."""

    def __init__(self, shared: Shared):
        self._shared = shared
        self._settings: Api | None = None
        self._listener: Listener | None = None
        self._context: ssl.SSLContext | None = None
        self._authentication = Authentication()
        self._stamps: tuple[Stamp | None, ...] = ()
        self._certificate: Certificate | None = None
        self.error: str | None = None
        """The reason why the API does not listen, or still uses earlier tokens or certificates."""

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port; None if the API does not listen."""
        return None if self._listener is None else self._listener.address

    @property
    def days_left(self) -> float | None:
        """Days until the certificate expires; None without one."""
        return None if self._certificate is None else self._certificate.days_left

    @property
    def servers(self) -> frozenset[str]:
        """The servers whose machines have certificates."""
        return self._authentication.servers

    async def follow(self, wanted: Api | None) -> None:
        """Listen as ``wanted``. If that fails, retry at the next call, for example when another controller has stopped."""
        if wanted != self._settings:
            await self.close()
        self._settings = wanted
        if wanted is None:
            return
        error = None
        try:
            await self._load(wanted)
            if self._listener is None:
                app = application(self._shared, self._authentication)
                self._listener = Listener(app, bind_tcp(*wanted.address), self._context)
                log.info("serving the API at %s://%s:%d", "http" if wanted.tls is None else "https", *self._listener.address)
        except (ListenError, TokenFileError, ClientCertificatesError, TlsError) as failure:
            error = str(failure)
            if error != self.error:
                log.warning("%s", error)
        self.error = error

    async def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            await self._listener.close()
        self._listener, self._context, self._stamps = None, None, ()

    async def _load(self, settings: Api) -> None:
        """Read the files if they have changed. Raises TokenFileError, ClientCertificatesError and TlsError."""
        tls = settings.tls
        files = Authentication.files(settings) + ([tls.certificate, tls.key] if tls is not None else [])
        stamps = (*(stamp(file) for file in files), None if tls is None or tls.clients is None else stamp(tls.clients))
        if stamps == self._stamps:
            return
        self._authentication.load(settings)
        if tls is not None:
            # Contexts cannot forget an authority.
            if self._context is None or stamps[-1] != self._stamps[-1]:
                context = server_context(tls, needs_certificates=settings.certificates is None)
                await self.close()
                self._context = context
            else:
                load_certificate(self._context, tls)
        self._certificate = None if tls is None else load(tls.certificate)
        self._stamps = stamps
