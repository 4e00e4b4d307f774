# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface of the store: GET, PUT, PATCH and DELETE of /records/GUID, and changes as server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from frontage_records.document import check_guid, parse
from frontage_records.errors import AuthenticationError, ForbiddenError, RecordError, RequestError, SizeError
from frontage_records.record import Consistency, Record, Written
from frontage_records.ring import Ring, partition
from frontage_records.store import Store
from frontage_records.tokens import Permission, Tokens

log = logging.getLogger(__name__)

STAMP = "Frontage-Stamp"
"""The header with the writer's stamp: microseconds since the Unix epoch."""
KEEP_ALIVE = 15.0
"""Seconds of silence after which a subscriber gets a comment, which reveals lost connections."""
_STORE = web.AppKey("store", Store)
_RING = web.AppKey("ring", Ring)
_REQUESTS = web.AppKey("requests", Counter)
_REGISTRY = web.AppKey("registry", CollectorRegistry)
_TOKENS = web.AppKey("tokens", Tokens)
OnRequest = Callable[[str, str, bool], None]
"""Called with the GUID, the client's address, and whether it was a write, after each successful request for a document."""
_ON_REQUEST: web.AppKey[OnRequest] = web.AppKey("on_request")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(store: Store, ring: Ring, tokens: Tokens | None = None, on_request: OnRequest | None = None) -> web.Application:
    """Return the web application. The caller closes the store, which ends subscriptions. ``tokens``: required of all clients."""
    app = web.Application(middlewares=[_answer], client_max_size=store.bounds.max_bytes)
    if tokens is not None:
        app[_TOKENS] = tokens
    if on_request is not None:
        app[_ON_REQUEST] = on_request
    registry = CollectorRegistry()
    app[_STORE], app[_RING], app[_REGISTRY] = store, ring, registry
    app[_REQUESTS] = Counter("frontage_records_requests", "Requests by method and result", ["method", "result"], registry=registry)
    subscriptions = Gauge("frontage_records_subscriptions", "Connected subscribers", registry=registry)
    subscriptions.set_function(lambda: float(store.subscriptions))
    unforwarded = Gauge(
        "frontage_records_unforwarded", "Records with local writes that their logs do not contain yet", registry=registry
    )
    unforwarded.set_function(lambda: float(store.unforwarded))
    app.router.add_get("/records/{guid}", _get, allow_head=False)
    app.router.add_put("/records/{guid}", _put)
    app.router.add_patch("/records/{guid}", _patch)
    app.router.add_delete("/records/{guid}", _delete)
    app.router.add_get("/records/{guid}/changes", _changes, allow_head=False)
    app.router.add_get("/records/{guid}/sites", _sites, allow_head=False)
    app.router.add_put("/records/{guid}/sites", _place)
    app.router.add_get("/metrics", _metrics, allow_head=False)
    return app


async def start(
    store: Store,
    ring: Ring,
    host: str,
    port: int,
    tokens: Tokens | None = None,
    tls: ssl.SSLContext | None = None,
    on_request: OnRequest | None = None,
) -> web.AppRunner:
    """Start serving. ``cleanup()`` of the result stops it; its ``addresses`` are those bound. Raises OSError."""
    # Subscriptions end with the store, which is closed first; other slow requests get two seconds.
    runner = web.AppRunner(application(store, ring, tokens, on_request), access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner


@web.middleware
async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    result = "internal"
    try:
        if (tokens := request.app.get(_TOKENS)) is not None:
            tokens.check(request.headers.get("Authorization"), _need(request))
        response = await handler(request)
        result = "ok"
        if (on_request := request.app.get(_ON_REQUEST)) is not None and request.path.count("/") == 2:
            on_request(request.match_info["guid"], request.remote or "", request.method != "GET")
        return response
    except RecordError as error:
        result = error.code
        return _problem(error.status, error.code, str(error), _challenge(request, error))
    except web.HTTPException as error:
        result = "bad_request"
        return _problem(error.status, "bad_request", f"{request.method} {request.path}: {error.reason}: see docs/records.md")
    except asyncio.CancelledError:
        result = "disconnected"
        raise
    except ConnectionResetError:
        result = "disconnected"
        raise
    except Exception:
        log.exception("%s %s", request.method, request.path)
        return _problem(500, "internal", "internal error: see the log of the server")
    finally:
        # Count other methods as one, so that clients cannot create labels.
        method = request.method if request.method in ("GET", "PUT", "PATCH", "DELETE") else "other"
        request.app[_REQUESTS].labels(method, result).inc()


def _need(request: web.Request) -> Permission:
    if request.method in ("GET", "HEAD"):
        return Permission.READ
    return Permission.PLACE if request.path.endswith("/sites") else Permission.WRITE


def _challenge(request: web.Request, error: RecordError) -> dict[str, str]:
    """Return the challenge header. A request without a token gets no error code (RFC 6750, section 3)."""
    why = {AuthenticationError: "invalid_token", ForbiddenError: "insufficient_scope"}.get(type(error))
    if why is None:
        return {}
    detail = f', error="{why}"' if "Authorization" in request.headers else ""
    return {"WWW-Authenticate": f'Bearer realm="records"{detail}'}


async def _get(request: web.Request) -> web.Response:
    record = await request.app[_STORE].get(request.match_info["guid"])
    return web.json_response(plain(record), headers={"ETag": _tag(record)})


async def _put(request: web.Request) -> web.Response:
    store = request.app[_STORE]
    guid = check_guid(request.match_info["guid"])
    value = parse(await _body(request), store.bounds.max_bytes)
    stamp, condition = _stamp(request), _condition(request)
    return _written(await store.put(guid, value, consistency=_consistency(request), stamp=stamp, if_version=condition))


async def _patch(request: web.Request) -> web.Response:
    store = request.app[_STORE]
    guid = check_guid(request.match_info["guid"])
    if _condition(request) is not None or _stamp(request) is not None:
        raise RequestError(f"PATCH {request.path}: updates are merged: omit If-Match, If-None-Match and {STAMP}")
    written = await store.update(guid, parse(await _body(request), store.bounds.max_bytes), consistency=_consistency(request))
    # The writer does not know the resulting value.
    return web.json_response(plain(written.record) | {"applied": written.applied}, headers={"ETag": _tag(written.record)})


def _consistency(request: web.Request) -> Consistency | None:
    wanted = request.query.get("consistency")
    try:
        return None if wanted is None else Consistency(wanted)
    except ValueError:
        raise RequestError(f"unknown consistency {wanted!r}: use one of: {', '.join(Consistency)}") from None


async def _delete(request: web.Request) -> web.Response:
    store = request.app[_STORE]
    return _written(await store.delete(request.match_info["guid"], stamp=_stamp(request), if_version=_condition(request)))


async def _changes(request: web.Request) -> web.StreamResponse:
    async with request.app[_STORE].subscribe(request.match_info["guid"]) as watch:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    record = await watch.next()
            except TimeoutError:
                await response.write(b": still here\n\n")
                continue
            except RecordError as error:
                data = json.dumps({"error": error.code, "message": str(error)})
                await response.write(f"event: error\ndata: {data}\n\n".encode())
                return response
            if record is None:
                return response
            kind = "deleted" if record.document is None else "record"
            await response.write(f"event: {kind}\nid: {record.version}\ndata: {json.dumps(plain(record))}\n\n".encode())


async def _sites(request: web.Request) -> web.Response:
    guid = request.match_info["guid"]
    sites = await request.app[_STORE].sites(guid)
    controllers = request.app[_RING].controllers(partition(guid))
    return web.json_response({"guid": guid, "sites": sites, "controllers": controllers})


async def _place(request: web.Request) -> web.Response:
    store, guid = request.app[_STORE], check_guid(request.match_info["guid"])
    sites = parse(await _body(request), store.bounds.max_bytes).get("sites")
    if not isinstance(sites, list) or not sites or not all(type(site) is int for site in sites):
        raise RequestError('missing sites: give the record\'s sites, first the one that orders its writes: {"sites": [1, 3]}')
    await store.place(guid, list(dict.fromkeys(sites)))
    return await _sites(request)


async def _metrics(request: web.Request) -> web.Response:
    return web.Response(body=generate_latest(request.app[_REGISTRY]), content_type="text/plain")


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        most = request.app[_STORE].bounds.max_bytes
        raise SizeError(f"the document has more than {most} bytes: split it, or raise records.max_bytes") from None


def _stamp(request: web.Request) -> int | None:
    text = request.headers.get(STAMP)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise RequestError(
            f"{STAMP}: invalid time {text[:40]!r}: give microseconds since the Unix epoch, for example 1767225600000000"
        )
    return int(text)


def _condition(request: web.Request) -> int | None:
    """Return the version that the request's condition requires (RFC 9110, section 13.1): the entity tag is the version."""
    match, none_match = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if none_match is not None:
        if none_match.strip() != "*" or match is not None:
            raise RequestError(
                "If-None-Match: only * is supported, for a record that does not exist yet: use If-Match for versions"
            )
        return 0
    if match is None:
        return None
    digits = match.strip().removeprefix('"').removesuffix('"')
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise RequestError(f'If-Match: invalid version {match[:40]!r}: give one such as "7"')
    return int(digits)


def _tag(record: Record) -> str:
    # Eventual documents with equal stamps or numbers of updates may differ, so the tag is weak (RFC 9110, section 8.8.1).
    return f'"{record.version}"' if record.consistency.is_ordered else f'W/"{record.version}"'


def _written(written: Written) -> web.Response:
    record = written.record
    body = plain(record) | {"applied": written.applied}
    if written.applied:
        # The writer already has the value.
        del body["value"]
    return web.json_response(body, headers={"ETag": _tag(record)})


def plain(record: Record) -> dict[str, Any]:
    """Return the record as a JSON object."""
    return {
        "guid": record.guid,
        "consistency": record.consistency.value,
        "version": record.version,
        "stamp": record.stamp,
        "value": record.value,
    }


def _problem(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": code, "message": message}, status=status, headers=headers)
