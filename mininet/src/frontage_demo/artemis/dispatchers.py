# SPDX-License-Identifier: Apache-2.0
"""The dispatcher of a site, for services whose name is read from the first flight."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from frontage_testbed.datacentre.quicagents import network_of
from frontage_testbed.nodes import Namespace
from frontage_testbed.wan.addresses import DISPATCHER_PORT, TUNNEL_PORT, SiteAddresses

from .names import ZONE
from .siteconfig import DEPLOYMENT, SERVICE_ID

CONFIGURATION = """\
control = "[::]:{control}"
threads = 1

[tunnel]
listen = "[{own}]:{tunnel}"
peers = ["{vtep}"]
"""
TIMEOUT = 10.0


def start(host: Namespace, program: Path, site: SiteAddresses, directory: Path) -> subprocess.Popen[bytes]:
    """Start the dispatcher; its table is empty until `update_table`."""
    file = directory / "dispatcher.toml"
    file.write_text(CONFIGURATION.format(own=site.dispatcher, control=DISPATCHER_PORT, tunnel=TUNNEL_PORT, vtep=site.vtep))
    with (directory / "dispatcher.log").open("ab") as log:
        return host.spawn([program, file], stdout=log, stderr=log)


def update_table(
    host: Namespace,
    site: SiteAddresses,
    sites: Sequence[SiteAddresses],
    mapping: Mapping[str, object],
    redundancy: int,
    version: int,
) -> None:
    """Replace the dispatcher's table: sites, services and the mapping."""
    service = {"name": ZONE, "id": SERVICE_ID, "deployment": DEPLOYMENT, "redundancy": redundancy}
    table = {
        "version": version,
        "site": site.id,
        "sites": [{"id": s.id, "vtep": s.vtep} for s in sites],
        **mapping,
        "services": [service | {"alpn": ["h3"], "policy": "latency"}],
    }
    _request(host, site, "PUT", "/table", json.dumps(table).encode())


def table_version(host: Namespace, site: SiteAddresses) -> int:
    """Return the version of the dispatcher's table. Raises OSError if it has none yet."""
    table = json.loads(_request(host, site, "GET", "/table"))
    return int(table["version"])


def replicas(host: Namespace, site: SiteAddresses) -> object:
    """Return the replicas that have reported to the dispatcher."""
    return json.loads(_request(host, site, "GET", "/replicas"))


def _request(host: Namespace, site: SiteAddresses, method: str, path: str, body: bytes | None = None) -> bytes:
    url = f"http://[{site.dispatcher}]:{DISPATCHER_PORT}{path}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with network_of(host.pid), urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
    return content
