# SPDX-License-Identifier: Apache-2.0
"""One dispatcher, over HTTP: reads its measurements and its replicas, and keeps its table equal to the mapping."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np

from frontage.fields import IPAddress
from frontage.limits import MAX_REDUNDANCY
from frontage.mapping.compute.choices import Choice
from frontage.mapping.compute.prefixes import BITS, Rows, parse
from frontage.mapping.compute.values import Sample
from frontage.mapping.services import Replica
from frontage.mapping.settings import EndUsers
from frontage.mapping.store.tables import Difference, Tables, difference
from frontage.naming import canonical_name

_OPENER = build_opener(ProxyHandler({}))
"""Opens connections without the proxies that the environment names."""
_ATTEMPTS = 2
"""Attempts per request, so that one lost connection does not take a site out."""
_MAX_RTT_US = 60e6
"""Microseconds; larger values are not RTTs, and are ignored."""
_LONG_TIMEOUT = 30.0
"""Seconds for long requests: large tables, and probes."""


class DispatcherError(Exception):
    """A request to a dispatcher failed. ``status``: the HTTP status; None if there was no answer."""

    def __init__(self, what: str, status: int | None = None):
        super().__init__(what)
        self.status = status


class Dispatcher:
    """A client of one dispatcher. Its methods block, so they are called on threads. Each raises DispatcherError."""

    def __init__(self, url: str, site: int, timeout: float):
        self.url = url
        self.site = site
        self.error: str | None = None
        """Why the last request failed."""
        self.pushed = 0
        """Entries written so far."""
        self.replaced = 0
        """Number of times that the whole table was written."""
        self._timeout = timeout
        self._have: Tables | None = None
        self._sites: dict[int, str] = {}
        self._version: int | None = None

    @property
    def version(self) -> int | None:
        """The version of the dispatcher's table; None if unknown."""
        return self._version

    def measurements(self, settings: EndUsers) -> list[Sample]:
        """Return the samples since the last call, under prefixes of at most the configured length."""
        samples: list[Sample] = []
        if self._version is None:
            # The dispatcher does not know its site yet, so its samples have none.
            return samples
        for row in self._list("GET", "/measurements"):
            try:
                prefix = parse(row["prefix"])
                rtt, count, site = float(row["rtt_us"]), int(row["count"]), int(row["site"])
            except (KeyError, TypeError, ValueError) as error:
                raise DispatcherError(f"{self.url}/measurements: {row!r}: {error!r}") from None
            # Samples of probes have the prefix of one address.
            source = "active" if prefix.length == BITS[prefix.family] else "passive"
            if count > 0 and 0 < rtt <= _MAX_RTT_US and site == self.site:
                samples.append(Sample(prefix.shortened(settings.prefix_length(prefix.family)), site, rtt, count, source))
        return samples

    def replicas(self) -> list[Replica]:
        """Return the replicas that report to the dispatcher, one item per service."""
        found: list[Replica] = []
        for row in self._list("GET", "/replicas"):
            try:
                found += [
                    Replica(
                        self.site,
                        int(row["sid"]),
                        canonical_name(name),
                        str(row["address"]),
                        float(row["load"]),
                        float(row["weight"]),
                        bool(row["accepting"]),
                    )
                    for name in row["services"]
                ]
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DispatcherError(f"{self.url}/replicas: {row!r}: {error!r}") from None
        return found

    def probe(self, addresses: Iterable[IPAddress]) -> None:
        """Let the dispatcher probe these addresses."""
        self._request("POST", "/probe", {"addresses": [str(address) for address in addresses]}, timeout=_LONG_TIMEOUT, attempts=1)

    def read_version(self) -> None:
        """Read the version of the table. The dispatcher may have restarted, or another controller may have written it."""
        try:
            answer = self._request("GET", "/table")
            self._version = int(answer["version"])
        except DispatcherError as error:
            if error.status is None:
                raise
            self._version = None
        except (KeyError, TypeError, ValueError) as error:
            raise DispatcherError(f"{self.url}/table: {error!r}") from None

    def push(self, tables: Tables, sites: Mapping[int, IPAddress]) -> int:
        """Bring the dispatcher's table to this state. Returns the number of entries written."""
        vteps = {site: str(vtep) for site, vtep in sites.items()}
        if self._version == tables.content and self._sites in ({}, vteps):
            self._have, self._sites = tables, vteps
            return 0
        have = self._have
        if have is not None and (have.content != self._version or vteps != self._sites):
            have = None
        written = self._patch(have, tables) if have is not None else 0
        if not written:
            written = self._put(tables, vteps)
        self._have, self._sites, self._version = tables, vteps, tables.content
        self.pushed += written
        return written

    def _patch(self, have: Tables, tables: Tables) -> int:
        """Write the difference. Returns the number of entries written; 0 if the dispatcher's table is not ``have``."""
        found = difference(have, tables, self.site)
        lists, remove = _lists(found, have, tables)
        body = {"from": have.content, "version": tables.content, **lists, "remove": remove}
        try:
            self._request("PATCH", "/table", body, timeout=_LONG_TIMEOUT, attempts=1)
        except DispatcherError as error:
            if error.status is None:
                raise
            # The table has another version (409), or the dispatcher refuses the difference: write the whole table.
            return 0
        return max(1, len(found))

    def _put(self, tables: Tables, vteps: Mapping[int, str]) -> int:
        """Write the whole table. Returns the number of entries written."""
        nothing = Tables()
        found = difference(nothing, tables, self.site)
        lists, _ = _lists(found, nothing, tables)
        body = {
            "version": tables.content,
            "site": self.site,
            "sites": [{"id": id_, "vtep": vtep} for id_, vtep in vteps.items()],
            **lists,
        }
        self._request("PUT", "/table", body, timeout=_LONG_TIMEOUT)
        self.replaced += 1
        return len(found)

    def _list(self, method: str, path: str) -> list[dict[str, Any]]:
        answer = self._request(method, path)
        if not isinstance(answer, list):
            raise DispatcherError(f"{self.url}{path}: invalid answer: expected a list")
        return answer

    def _request(
        self, method: str, path: str, body: object = None, *, timeout: float | None = None, attempts: int = _ATTEMPTS
    ) -> Any:
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        for attempt in range(1, attempts + 1):
            try:
                with _OPENER.open(request, timeout=timeout or self._timeout) as answer:
                    text = answer.read()
                return json.loads(text) if text else None
            except HTTPError as error:
                with error:
                    reason = error.read(500).decode(errors="replace").strip()
                raise DispatcherError(f"{self.url}{path}: {method} refused with {error.code}: {reason}", error.code) from None
            except (URLError, OSError, HTTPException, ValueError) as error:
                if attempt == attempts:
                    raise DispatcherError(f"{self.url}{path}: {getattr(error, 'reason', error)}") from None
        raise AssertionError


def _lists(found: Difference, have: Tables, tables: Tables) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the request's lists of new and changed entries, and of entries to remove."""
    services = []
    for name, number in found.services.items():
        if number is not None:
            service = tables.details[name]
            row = {"name": name, "id": service.number, "deployment": number, "redundancy": service.redundancy}
            services.append(row | {"alpn": list(service.alpn), "policy": service.policy})
    clients = [{"prefix": str(prefix), "region": region} for prefix, region in found.clients.items() if region]
    mapping, unmapped = [], []
    for number, every, choices in found.mapping:
        for sites, regions in _by_sites(every, choices):
            if sites:
                mapping.append({"deployment": number, "sites": sites, "regions": regions})
            else:
                unmapped.append({"deployment": number, "regions": regions})
    remove = {
        "clients": [str(prefix) for prefix, region in found.clients.items() if not region],
        "mapping": unmapped,
        "services": [have.details[name].number for name, number in found.services.items() if number is None],
    }
    return {"services": services, "clients": clients, "mapping": mapping}, remove


def _by_sites(regions: Rows, choices: Choice) -> Iterator[tuple[list[int], list[int]]]:
    """Group regions by their sites; no sites stand for no entry. This keeps requests small: regions are many, site lists few."""
    packed = np.zeros((len(choices), MAX_REDUNDANCY), np.uint8)
    packed[:, : choices.shape[1]] = choices
    keys = packed.view(np.uint32)[:, 0]
    order = np.argsort(keys, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        yield [site for site in choices[same[0]].tolist() if site], regions[same].tolist()
