# SPDX-License-Identifier: Apache-2.0
"""Hosts for networks of P4 switches."""

from __future__ import annotations

from typing import Any

from mininet.node import Host


class SoftHost(Host):  # type: ignore[misc]
    """A host without IPv6, whose unsolicited packets would disturb counters and captures.

    Parameters, besides those of mininet's `Host`:

    - `gateway`: address of the default gateway (IPv4), on the first interface.
    - `gateway_mac`: its Ethernet address, for programs that do not answer ARP.
    """

    def config(self, gateway: str | None = None, gateway_mac: str | None = None, **params: Any) -> dict[str, Any]:
        """Configure the host; mininet calls this."""
        result: dict[str, Any] = super().config(**params)
        for scope in ("all", "default"):
            self.cmd(f"sysctl -qw net.ipv6.conf.{scope}.disable_ipv6=1")
        if gateway is not None:
            interface = self.defaultIntf()
            if gateway_mac is not None:
                self.cmd(f"ip neigh replace {gateway} lladdr {gateway_mac} dev {interface}")
            self.cmd(f"ip route replace default via {gateway} dev {interface} onlink")
        return result
