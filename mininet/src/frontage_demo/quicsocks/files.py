"""Configurations of the world's programs. All run as root, in the foreground, and log to standard error."""

from __future__ import annotations

from pathlib import Path

from ..certificate import make_certificate
from .topology import ISP_ADDRESS, SERVER_ADDRESS

ZONE_NAME = "films.example"
PORTS = {False: 443, True: 444}
"""Of the servers, by whether they send a Retry."""
PROXY_PORT = 1080
PROXY_METRICS = "[::1]:9464"

UNBOUND = f"""\
server:
    interface: ::1
    interface: {ISP_ADDRESS}
    access-control: ::/0 allow
    chroot: ""
    username: ""
    directory: "{{folder}}"
    pidfile: "{{folder}}/unbound.pid"
    use-syslog: no
    do-daemonize: no
    module-config: "iterator"
    num-threads: 1
    outgoing-range: 4096
    num-queries-per-thread: 4096
stub-zone:
    name: "{ZONE_NAME}."
    stub-addr: {SERVER_ADDRESS}
remote-control:
    control-enable: no
"""
"""A recursive resolver. There is no root to begin at, so that it is told where the zone's server is."""

NSD = f"""\
server:
    ip-address: {SERVER_ADDRESS}
    username: ""
    chroot: ""
    zonesdir: "{{folder}}"
    database: ""
    pidfile: "{{folder}}/nsd.pid"
    xfrdfile: "{{folder}}/xfrd.state"
    zonelistfile: "{{folder}}/zone.list"
    xfrdir: "{{folder}}"
    server-count: 1
remote-control:
    control-enable: no
zone:
    name: {ZONE_NAME}
    zonefile: zone
"""

ZONE = f"""\
$ORIGIN {ZONE_NAME}.
$TTL 3600
@ SOA ns hostmaster 1 3600 600 86400 3600
@ NS ns
ns AAAA {SERVER_ADDRESS}
* AAAA {SERVER_ADDRESS}
"""
"""Every name is the server's."""

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
resolvers = ["[::1]:53"]
metrics = "{PROXY_METRICS}"
"""


def write(folder: Path) -> None:
    """Write all of them into `folder`."""
    for name, text in (("unbound.conf", UNBOUND), ("nsd.conf", NSD)):
        (folder / name).write_text(text.format(folder=folder))
    (folder / "zone").write_text(ZONE)
    (folder / "www").mkdir()
    for retry, port in PORTS.items():
        said = "unproven_handshakes = 0\n" if retry else ""
        (folder / f"server-{port}.toml").write_text(SERVER.format(port=port, retry=said))
    (folder / "proxy.toml").write_text(PROXY)
    extensions = f"subjectAltName=DNS:*.{ZONE_NAME}", "basicConstraints=critical,CA:FALSE"
    make_certificate(folder, f"/CN={ZONE_NAME}", *extensions)
