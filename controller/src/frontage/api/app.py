# SPDX-License-Identifier: Apache-2.0
"""The application: all routes on one backend."""

from __future__ import annotations

from fastapi import FastAPI

from frontage.api import history, live, plans, reading, server_keys, writing
from frontage.api.access import Authenticate
from frontage.api.backend import Backend
from frontage.api.console import add_console
from frontage.api.correlation import Correlate
from frontage.api.described import Descriptions
from frontage.api.events import Events
from frontage.api.forward import ToLeader
from frontage.api.operations import Operation, Operations
from frontage.api.problems import ProblemDetails, handle_errors
from frontage.api.writing import describe

VERSION = "1.0.0"
"""The version of the API: the first number changes with incompatible changes, as does `/v1` in the paths."""


class Shared:
    """The state that the applications on the control socket and on the TCP address share."""

    def __init__(self, backend: Backend):
        self.backend = backend
        self.descriptions = Descriptions()
        self.events = Events(backend.objects)
        self.operations = Operations(backend.changes, self._on_change)

    def _on_change(self, operation: Operation) -> None:
        self.events.publish("operation", describe(operation).model_dump(mode="json"))


def application(shared: Shared, authenticate: Authenticate, *, forwards: bool = True) -> FastAPI:
    """Return an application. ``authenticate`` finds the sender of a request.

    With ``forwards``, a follower of several controllers forwards the requests that only the leader can answer.
    """
    # FastAPI's documentation pages load scripts from other hosts, so the server only offers the OpenAPI document itself.
    app = FastAPI(
        title="Frontage controller",
        version=VERSION,
        description="Reads and changes the state that a Frontage controller installs in its switches.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.authenticate = authenticate
    app.state.backend, app.state.events, app.state.operations = shared.backend, shared.events, shared.operations
    app.state.descriptions = shared.descriptions
    handle_errors(app)
    app.add_middleware(Correlate)
    for part in (reading, writing, server_keys, plans, history, live):
        app.include_router(part.router, prefix="/v1")
    add_console(app)
    _document_problems(app)
    if forwards and shared.backend.forwarder is not None:
        app.add_middleware(ToLeader, forwarder=shared.backend.forwarder, authenticate=authenticate)
    return app


def _document_problems(app: FastAPI) -> None:
    """Add the schema of errors to the OpenAPI document, because all routes refer to it."""
    document = app.openapi()
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= schema.pop("$defs", {})
    schemas["ProblemDetails"] = schema
    app.openapi_schema = document
