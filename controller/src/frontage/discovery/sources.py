# SPDX-License-Identifier: Apache-2.0
"""Queries of sources. They run on threads, with limits on time and size."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from frontage.config.discovery import DnsSource, FileSource, HttpSource, KubernetesSource, Record, Source
from frontage.discovery.targets import SourceError, Target, from_endpoint_slices, from_prometheus, from_records

if TYPE_CHECKING:
    import dns.resolver

TIMEOUT = 5.0
"""Seconds that a query may take."""
MAX_BYTES = 4 * 1024 * 1024
"""Bytes of a result, enough for 4,096 servers in any format."""
MAX_NAMES = 256
"""Names of SRV records that are resolved."""


def missing_libraries() -> tuple[str, ...]:
    """Return the packages of the extra ``discovery`` that are not installed."""
    return () if find_spec("dns") is not None else ("dnspython",)


async def query(source: Source, version: int, threads: Executor) -> frozenset[Target]:
    """Return the servers of this IP version that the source names. Raises SourceError."""
    try:
        async with asyncio.timeout(3 * TIMEOUT):
            return await asyncio.get_running_loop().run_in_executor(threads, _query, source, version)
    except TimeoutError:
        raise SourceError(f"no result after {3 * TIMEOUT:g} s") from None


def _query(source: Source, version: int) -> frozenset[Target]:
    if isinstance(source, FileSource):
        return from_prometheus(_parse(_read_file(source.path)), version)
    if isinstance(source, HttpSource):
        return from_prometheus(_fetch(source.url, source), version)
    if isinstance(source, DnsSource):
        return from_records(_resolve(source, version))
    origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(source.url))
    return from_endpoint_slices(_fetch(origin + slices_path(source), source), source.port, version)


def slices_path(source: KubernetesSource, **parameters: str) -> str:
    """Return the path and query of the EndpointSlices of a service at its API server, with further parameters."""
    base = urllib.parse.urlsplit(source.url).path.rstrip("/")
    query = urllib.parse.urlencode({"labelSelector": f"kubernetes.io/service-name={source.service}", **parameters})
    return f"{base}/apis/discovery.k8s.io/v1/namespaces/{source.namespace}/endpointslices?{query}"


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise SourceError(f"{path}: larger than {MAX_BYTES} bytes")
    return data


def _parse(data: bytes) -> object:
    """Parse YAML, of which JSON is a part. JSON goes first, because it is faster and more common."""
    try:
        return json.loads(data)
    except ValueError:
        pass
    try:
        return YAML(typ="safe", pure=False).load(data)
    except (YAMLError, ValueError, RecursionError) as error:
        raise SourceError(f"neither JSON nor YAML: {str(error).splitlines()[0]:.120}") from None


def headers_of(source: HttpSource | KubernetesSource) -> dict[str, str]:
    """Return the headers of a request. Raises SourceError if the token cannot be read."""
    headers = {"Accept": "application/json"}
    if source.token_file is not None:
        token = _read_file(source.token_file).decode(errors="replace").strip()
        headers["Authorization"] = f"Bearer {token}"
    return headers


def tls_of(source: HttpSource | KubernetesSource) -> ssl.SSLContext:
    """Return the TLS context of a request. Raises OSError if the certificates cannot be read."""
    return ssl.create_default_context(cafile=str(source.ca_file) if source.ca_file else None)


def _fetch(url: str, source: HttpSource | KubernetesSource) -> object:
    request = urllib.request.Request(url, headers=headers_of(source))
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=tls_of(source)) as response:
            data = _read_body(response)
    except urllib.error.HTTPError as error:
        raise SourceError(f"{url}: status {error.code}") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{url}: {getattr(error, 'reason', error)}") from None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{url}: not JSON: {error}") from None


def _read_body(response: http.client.HTTPResponse) -> bytes:
    """Read a response within TIMEOUT, however slowly it comes. Raises SourceError and OSError."""
    deadline = time.monotonic() + TIMEOUT
    data = bytearray()
    while part := response.read1(65536):
        data += part
        if len(data) > MAX_BYTES:
            raise SourceError(f"{response.url}: more than {MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise SourceError(f"{response.url}: incomplete after {TIMEOUT:g} s")
    return bytes(data)


def _resolve(source: DnsSource, version: int) -> list[tuple[str, int]]:
    """Return the addresses and ports of the records. Addresses of the other IP version are left out."""
    import dns.exception
    import dns.resolver

    resolver = dns.resolver.Resolver(configure=source.resolver is None)
    resolver.lifetime = TIMEOUT
    if source.resolver is not None:
        resolver.nameservers = [str(source.resolver)]
    address_record = "A" if version == 4 else "AAAA"
    try:
        if source.record is not Record.SRV:
            if source.record != address_record:
                raise SourceError(f"{source.record} records have no IPv{version} addresses")
            return [(address, source.port or 0) for address in _addresses(resolver, source.name, address_record)]
        records = list(resolver.resolve(source.name, "SRV"))
        if len(records) > MAX_NAMES:
            raise SourceError(f"{source.name}: more than {MAX_NAMES} SRV records")
        best = min((record.priority for record in records), default=0)
        return [
            (address, record.port)
            for record in records
            if record.priority == best
            for address in _addresses(resolver, record.target, address_record)
        ]
    except dns.exception.DNSException as error:
        raise SourceError(f"{source.name}: {error}") from None


def _addresses(resolver: dns.resolver.Resolver, name: object, record: str) -> list[str]:
    return [str(found.address) for found in resolver.resolve(name, record)]  # type: ignore[arg-type]
