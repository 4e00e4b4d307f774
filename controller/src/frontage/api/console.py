# SPDX-License-Identifier: Apache-2.0
"""Serves the web console: the built files of `console/`, below `/console/`."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse, Response

_PACKAGED = Path(__file__).parents[1] / "console"
"""The files in an installed package."""
_CHECKOUT = Path(__file__).parents[4] / "console" / "dist"
"""The files in a checkout, where `make` builds them."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_IMMUTABLE = "public, max-age=31536000, immutable"
"""Caching of files whose names contain a hash of their content."""
_NOT_BUILT = "the console is not built: run `make console`, or install the package\n"


def files() -> Path | None:
    """Return the folder of the built console, or None if it is not built."""
    return next((folder for folder in (_PACKAGED, _CHECKOUT) if (folder / "index.html").is_file()), None)


def add_console(app: FastAPI) -> None:
    """Serve the console below `/console/`. The files are public: they contain no data."""

    @app.get("/console/{path:path}", include_in_schema=False)
    async def get_file(path: str) -> Response:
        folder = files()
        if folder is None:
            return PlainTextResponse(_NOT_BUILT, 404)
        wanted = (folder / (path or "index.html")).resolve()
        if not wanted.is_relative_to(folder.resolve()) or not wanted.is_file():
            return PlainTextResponse("not found: open /console/\n", 404, headers=_HEADERS)
        kind = mimetypes.guess_type(wanted.name)[0] or "application/octet-stream"
        caching = _IMMUTABLE if wanted.parent.name == "assets" else "no-cache"
        return FileResponse(wanted, media_type=kind, headers={**_HEADERS, "Cache-Control": caching})

    @app.get("/console", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def get_root() -> Response:
        return RedirectResponse("/console/")
