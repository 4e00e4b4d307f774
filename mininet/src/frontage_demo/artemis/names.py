# SPDX-License-Identifier: Apache-2.0
"""DNS for comparison: an authoritative server (nsd), and a recursive one near each client (unbound).

The authoritative server resolves names by client region to the best site, as DNS-based redirection with the client
subnet does (RFC 7871): `anything.REGION.films.example`. A name that is not in the resolver's cache costs exactly one
query to the authoritative server, as in the paper's measurement (section 5.2.1), because resolvers know the zone's
servers.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from frontage_testbed import nameservers
from frontage_testbed.nodes import Namespace, Network, NodeError
from frontage_testbed.processes import udp_ports
from frontage_testbed.wan.addresses import AUTHORITY_ADDRESS, DNS_PORT, Host

ZONE = "films.example"
REGIONAL_ZONE = f"regional.{ZONE}"
"""The part of the zone with the addresses of regional anycast."""
START_TIMEOUT = 180.0
AUTHORITY_HOST = "ns"
TTL = 3600
"""Seconds; the paper uses 60 minutes."""

RESOLVER_OPTIONS = {
    "do-ip4": "no",
    "outgoing-range": "64",
    "msg-cache-size": "1m",
    "rrset-cache-size": "1m",
    # One query per miss: no queries for parts of the name or for servers' addresses.
    "qname-minimisation": "no",
    "target-fetch-policy": '"0 0 0 0 0"',
    "do-not-query-localhost": "no",
}


def label(client: str) -> str:
    """Return a client's region as a DNS label."""
    return client.lower().replace(". ", "-").replace(" ", "-")


def name(client: str, number: str, zone: str = ZONE) -> str:
    """Return a name of the service for clients of this region."""
    return f"{number}.{label(client)}.{zone}"


def regional_records(regions: Mapping[str, str]) -> list[str]:
    """Return records that resolve names by client to the service's address in the client's region."""
    return [f"*.{label(client)}.{REGIONAL_ZONE}. IN AAAA {address}" for client, address in regions.items()]


def start_servers(
    network: Network, resolvers: Sequence[Host], directory: Path, best: Mapping[str, str], records: Sequence[str]
) -> list[subprocess.Popen[bytes]]:
    """Start the authoritative server and the resolvers, and wait until they listen.

    `best` maps clients to the address of their best site. `records` are further records of the zone.
    """
    directory.mkdir()
    started = [_start_authority(network[AUTHORITY_HOST], directory / AUTHORITY_HOST, best, records)]
    for resolver in resolvers:
        started.append(_start_resolver(network[resolver.name], resolver.address, directory / resolver.name))
    deadline = time.monotonic() + START_TIMEOUT
    for name in (AUTHORITY_HOST, *(resolver.name for resolver in resolvers)):
        while DNS_PORT not in udp_ports(network[name]):
            if time.monotonic() > deadline:
                raise NodeError(f"name server {name} does not listen; logs are in {directory}")
            time.sleep(0.05)
    return started


def _start_authority(host: Namespace, directory: Path, best: Mapping[str, str], records: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start nsd with a zone that has a wildcard for each client's region."""
    directory.mkdir()
    # Resolvers cache the absence of an A record as long as the AAAA (RFC 2308, section 5), for clients that query both.
    lines = [f"$TTL {TTL}", f"@ IN SOA ns.{ZONE}. admin.{ZONE}. 1 3600 600 86400 {TTL}", "@ IN NS ns"]
    lines.append(f"ns IN AAAA {AUTHORITY_ADDRESS}")
    lines += [f"*.{label(client)} IN AAAA {address}" for client, address in best.items()]
    lines += records
    nameservers.write_authority(directory, AUTHORITY_ADDRESS, DNS_PORT, ZONE, lines)
    return nameservers.start(host, nameservers.AUTHORITY, directory)


def _start_resolver(host: Namespace, address: str, directory: Path) -> subprocess.Popen[bytes]:
    """Start unbound."""
    directory.mkdir()
    nameservers.write_resolver(directory, [address], DNS_PORT, ZONE, AUTHORITY_ADDRESS, RESOLVER_OPTIONS)
    return nameservers.start(host, nameservers.RESOLVER, directory)
