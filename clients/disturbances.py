# SPDX-License-Identifier: Apache-2.0
"""Disturbances of a download: changes to the client's host and on the path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_interface

from frontage_testbed.datacentre.addresses import COOKIE_PREFIX, QUIC_PORT, ClientAddresses
from frontage_testbed.load.download import Download
from frontage_testbed.nodes import Namespace

REBINDING = """table inet rebinding-{old} {{
    chain out {{ type filter hook postrouting priority 0; udp sport {old} udp dport {service} udp sport set {new}; }}
    chain in {{ type filter hook prerouting priority -300; udp sport {service} udp dport {new} udp dport set {old}; }}
}}
"""
"""Rules of a NAT that maps a connection to another port.

Packets to the old port still get through. A client that has acknowledged everything has no reason to send, so otherwise no
packet would show the server the new port.
"""

BLOCK = f"""table ip6 block {{
    chain forward {{ type filter hook forward priority 0; ip6 daddr {COOKIE_PREFIX} drop; }}
}}
"""


def rebind(download: Download, host: Namespace) -> None:
    """Map the client's connections to other ports."""
    for port in sorted({datagram.local[1] for datagram in download.seen()}):
        rules = REBINDING.format(service=QUIC_PORT, old=port, new=port ^ 1)
        host.run(["nft", "-f", "-"], input=rules)


def readdress(download: Download, host: Namespace, client: ClientAddresses) -> None:
    """Have the host prefer another address of its network, and remove the old one after as many bytes as before."""
    old = ip_interface(f"{client.address6}/64")
    host.run(["ip", "addr", "add", f"{old.ip + 1}/64", "dev", "eth0", "nodad"])
    host.run(["ip", "addr", "change", str(old), "dev", "eth0", "preferred_lft", "0"])
    download.wait_for(2 * download.received())
    host.run(["ip", "addr", "del", str(old), "dev", "eth0"])


@contextmanager
def unreachable_cookies(router: Namespace) -> Iterator[None]:
    """Have a router drop all packets to cookie addresses."""
    router.run(["nft", "-f", "-"], input=BLOCK)
    yield
    router.run(["nft", "flush", "ruleset"])


def restore(host: Namespace, client: ClientAddresses) -> None:
    """Undo the disturbances of a host."""
    host.run(["nft", "flush", "ruleset"])
    if client.address6 not in host.run(["ip", "-6", "addr", "show", "dev", "eth0"]).stdout:
        host.run(["ip", "addr", "add", f"{client.address6}/64", "dev", "eth0", "nodad"])
        host.run(["ip", "addr", "del", f"{ip_interface(client.address6).ip + 1}/64", "dev", "eth0"])
