# SPDX-License-Identifier: Apache-2.0
"""Configurations of name servers: nsd, which serves a zone, and unbound, which resolves names in it.

There are no root servers, so resolvers are configured with the address of the zone's server. All run as root, in the
foreground, and log to standard error.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .nodes import Namespace

PACKAGES = {"nsd": "nsd", "unbound": "unbound"}
"""Debian packages, by program."""
AUTHORITY = ("nsd", "-d", "-c", "nsd.conf")
RESOLVER = ("unbound", "-d", "-p", "-c", "unbound.conf")

NSD = """\
server:
    ip-address: {address}
    port: {port}
    server-count: 1
    username: ""
    chroot: ""
    database: ""
    zonesdir: "{folder}"
    pidfile: "{folder}/nsd.pid"
    xfrdfile: ""
    xfrdir: "{folder}"
    zonelistfile: "{folder}/zone.list"
    hide-version: yes
remote-control:
    control-enable: no
zone:
    name: {zone}
    zonefile: zone
"""
UNBOUND = """\
server:
{interfaces}
    port: {port}
    access-control: ::/0 allow
    do-daemonize: no
    use-syslog: no
    logfile: ""
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: ""
    module-config: "iterator"
    num-threads: 1
{options}
remote-control:
    control-enable: no
stub-zone:
    name: "{zone}."
    stub-addr: {authority}@{port}
"""


def write_authority(folder: Path, address: str, port: int, zone: str, records: Sequence[str]) -> None:
    """Write nsd's configuration and the zone of this name into `folder`."""
    (folder / "zone").write_text("\n".join(records) + "\n")
    (folder / "nsd.conf").write_text(NSD.format(address=address, port=port, folder=folder, zone=zone))


def write_resolver(
    folder: Path, addresses: Sequence[str], port: int, zone: str, authority: str, options: Mapping[str, str]
) -> None:
    """Write unbound's configuration into `folder`; `options` are additional server options."""
    text = UNBOUND.format(
        interfaces="\n".join(f"    interface: {address}" for address in addresses),
        port=port,
        folder=folder,
        options="\n".join(f"    {name}: {value}" for name, value in options.items()),
        zone=zone,
        authority=authority,
    )
    (folder / "unbound.conf").write_text(text)


def start(host: Namespace, command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start `AUTHORITY` or `RESOLVER` with its configuration in `folder`."""
    with (folder / f"{command[0]}.log").open("wb") as log:
        return host.spawn(command, stdout=log, stderr=log, cwd=folder)
