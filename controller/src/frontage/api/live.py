# SPDX-License-Identifier: Apache-2.0
"""Routes for live displays: samples of the fleet, explanations of flows, and packet traces."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from frontage.api import live_models as models
from frontage.api.access import Operator, Viewer
from frontage.api.problems import NotFoundError, UnavailableError, UnprocessableError, responses
from frontage.api.reading import backend_of, described, find
from frontage.service import flow, probe
from frontage.service.key_ages import key_ages

router = APIRouter(tags=["live"])
_FRESH = {"Cache-Control": "no-store"}


@router.get("/me", response_model=models.Caller, responses=responses())
async def get_me(caller: Viewer) -> Any:
    """Return the identity and the role of the client."""
    return models.Caller(name=caller.author.name, origin=caller.author.origin, role=caller.role)


@router.get("/samples", response_model=models.Overview, responses=responses(UnavailableError))
async def get_samples(request: Request, _caller: Viewer) -> Response:
    """Return a sample of the fleet. Concurrent requests share a sample, which is at most half a second old."""
    backend = backend_of(request)
    found = await backend.sample()
    keys = await asyncio.to_thread(key_ages, backend.config, backend.changes.journal)
    return JSONResponse({**found, "keys": keys}, headers=_FRESH)


@router.get("/samples/vips/{name}", response_model=models.SampledServers, responses=responses(NotFoundError, UnavailableError))
async def get_servers_sample(request: Request, _caller: Viewer, name: str) -> Response:
    """Return a sample of the servers of a VIP, with the loads that they report."""
    find((await described(request)).vips, name, "VIP")
    return JSONResponse(await backend_of(request).sample_servers(name), headers=_FRESH)


@router.post("/explanations", response_model=models.Explanation, responses=responses(UnprocessableError))
async def post_explanation(request: Request, _caller: Viewer, wanted: models.ExplanationRequest) -> Any:
    """Explain to which server a packet belongs, from an address, a cookie or a client."""
    config = backend_of(request).config
    query = flow.Query(wanted.text, wanted.vip, wanted.client, wanted.client_port)
    try:
        found = await asyncio.to_thread(flow.explain, config, query)
    except flow.FlowError as error:
        raise UnprocessableError(str(error)) from None
    return models.Explanation(
        kind=found.kind,
        vip=None if found.vip is None else found.vip.name,
        server=None if found.server is None else found.server.name,
        findings=[models.Finding(what=one.what, result=one.result, holds=one.holds) for one in found.findings],
    )


@router.post("/captures", response_model=models.Capture, responses=responses(NotFoundError, UnprocessableError, UnavailableError))
async def post_capture(request: Request, _caller: Operator, wanted: models.CaptureRequest) -> Any:
    """Trace one packet through a switch. Until the packet arrives, the switch processes all packets more slowly.

    Only softswitch can trace packets. The switch forwards an injected segment to a server like any other.
    """
    backend = backend_of(request)
    device = wanted.device or backend.config.switches[0].device.name
    find((await described(request)).devices, device, "device")
    try:
        passes = await backend.capture(device, _fields(wanted), wanted.seconds, _segment(wanted.inject))
    except probe.ProbeError as error:
        raise UnprocessableError(str(error)) from None
    return models.Capture(device=device, passes=passes)


def _segment(wanted: models.Segment | None) -> probe.Segment | None:
    if wanted is None:
        return None
    return probe.Segment(wanted.vip, wanted.client, wanted.client_port, wanted.flags, wanted.tsval, wanted.tsecr)


def _fields(wanted: models.CaptureRequest) -> dict[str, int]:
    """Return the values of the program's header fields that a packet must have."""
    fields: dict[str, int] = {}
    for name, address in (("src", wanted.source), ("dst", wanted.destination)):
        if address is not None:
            fields[f"ipv{address.version}.{name}"] = int(address)
    for name, port in (("src_port", wanted.source_port), ("dst_port", wanted.destination_port)):
        if port is not None:
            fields[f"ports.{name}"] = port
    return fields


@router.get("/sites", response_model=models.Sites, responses=responses(UnavailableError))
async def get_sites(request: Request, _caller: Viewer) -> Any:
    """Return the sites, the end-user mapping that steers clients to them, and the placement of services by demand."""
    return await backend_of(request).sites()
