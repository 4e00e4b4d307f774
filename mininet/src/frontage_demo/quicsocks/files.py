# SPDX-License-Identifier: Apache-2.0
"""Configurations of the testbed's programs. All run as root, in the foreground, and log to standard error."""

from __future__ import annotations

from pathlib import Path

from frontage_testbed.certificate import make_certificate
from frontage_testbed.nameservers import write_authority, write_resolver

from .topology import ISP_ADDRESS, SERVER_ADDRESS

ZONE_NAME = "films.example"
PORTS = {False: 443, True: 444}
"""Server ports, by whether the server sends a Retry."""
PROXY_PORT = 1080
PROXY_METRICS = "[::1]:9464"
DNS_PORT = 53

RESOLVER_OPTIONS = {"outgoing-range": "4096", "num-queries-per-thread": "4096"}
ZONE = (
    f"$ORIGIN {ZONE_NAME}.",
    "$TTL 3600",
    "@ SOA ns hostmaster 1 3600 600 86400 3600",
    "@ NS ns",
    f"ns AAAA {SERVER_ADDRESS}",
    f"* AAAA {SERVER_ADDRESS}",
)
"""A zone in which every name has the server's address."""

SERVER = """\
listen = ["[::]:{port}"]
certificate = "certificate.pem"
private_key = "key.pem"
{retry}
[[route]]
path = "/"
directory = "www"
"""

PROXY = f"""\
listen = ["[::]:{PROXY_PORT}"]
resolvers = ["[::1]:{DNS_PORT}"]
metrics = "{PROXY_METRICS}"
"""


def write(folder: Path) -> None:
    """Write all configurations into `folder`."""
    write_authority(folder, SERVER_ADDRESS, DNS_PORT, ZONE_NAME, ZONE)
    write_resolver(folder, ("::1", ISP_ADDRESS), DNS_PORT, ZONE_NAME, SERVER_ADDRESS, RESOLVER_OPTIONS)
    (folder / "www").mkdir()
    for retry, port in PORTS.items():
        limit = "max_unvalidated_handshakes = 0\n" if retry else ""
        (folder / f"server-{port}.toml").write_text(SERVER.format(port=port, retry=limit))
    (folder / "proxy.toml").write_text(PROXY)
    extensions = f"subjectAltName=DNS:*.{ZONE_NAME},IP:{ISP_ADDRESS}", "basicConstraints=critical,CA:FALSE"
    make_certificate(folder, f"/CN={ZONE_NAME}", *extensions)
