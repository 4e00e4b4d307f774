# SPDX-License-Identifier: Apache-2.0
"""A site whose controller announces its prefixes by BGP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frontage_demo.artemis.site import Programs, Site
from frontage_testbed.frr import Frr
from frontage_testbed.internet.addresses import (
    REPLICA_PORT,
    SPEAKER_PORT,
    WAN_PORT,
    backbone_address,
    backbone_port,
)
from frontage_testbed.internet.plan import SITE_ASN, Uplink
from frontage_testbed.internet.topology import edge_ports
from frontage_testbed.nodes import NodeError
from frontage_testbed.wan.addresses import PLAIN_PREFIX, SERVICE_PREFIX, SiteAddresses

GRACEFUL_SHUTDOWN = 1
"""Seconds for which a draining site announces its routes with GRACEFUL_SHUTDOWN."""
COMMAND_TIMEOUT = 60.0


class BgpSite(Site):
    """The processes of a site, without its FRR."""

    def __init__(
        self,
        addresses: SiteAddresses,
        sites: Sequence[SiteAddresses],
        uplink: Uplink,
        service_address: str,
        programs: Programs,
        directory: Path,
    ) -> None:
        super().__init__(addresses, sites, service_address, programs, directory, dispatched=False, computed=False)
        self.ports = edge_ports(addresses)
        self.uplink = uplink
        self.speaker: Frr | None = None
        """Set before the start."""

    @property
    def switch_name(self) -> str:
        """The switch's name in the controller's configuration."""
        return f"edge{self.addresses.id}"

    def _configuration(self) -> dict[str, object]:
        document: dict[str, Any] = super()._configuration()
        assert self.speaker is not None
        own, others = self.addresses, [site for site in self._sites if site != self.addresses]
        document["devices"] = [{"name": self.switch_name, **document.pop("device")}]
        document["ports"] = [
            _port(WAN_PORT, "wan", "client", own.mac, own.wan_gateway),
            _port(REPLICA_PORT, "replica", "server", own.link_macs(REPLICA_PORT)[0], own.replica_gateway),
            _port(SPEAKER_PORT, "speaker", "server", own.link_macs(SPEAKER_PORT)[0], own.speaker_gateway),
        ]
        document["routes"] = [{"prefix": p, "port": "replica", "next_hop": own.replica} for p in (own.server_prefix, PLAIN_PREFIX)]
        document["routes"].append({"prefix": "::/0", "port": "wan", "next_hop": own.router})
        for other in others:
            port, name = backbone_port(other.id), f"backbone{other.id}"
            address = backbone_address(own.id, other.id)
            document["ports"].append(_port(port, name, "site", own.link_macs(port)[0], address))
            hop = backbone_address(other.id, own.id)
            document["routes"].append({"prefix": f"{other.vtep}/128", "port": name, "next_hop": hop})
        document["neighbors"] = [{"address": own.speaker, "port": "speaker"}]
        document["bgp"] = {
            "asn": SITE_ASN,
            "router_id": f"10.0.1.{own.id}",
            "graceful_shutdown": GRACEFUL_SHUTDOWN,
            "vtysh": self.speaker.vtysh,
            "service_prefixes": [SERVICE_PREFIX],
            "own_prefixes": [own.prefix],
            "neighbors": [
                {"address": own.router, "asn": self.uplink.upstream, "source": own.speaker, "prepend": self.uplink.prepend}
            ],
        }
        return document

    def install_mapping(self, mapping: Mapping[str, object], redundancy: int) -> None:
        """Give the site another end-user mapping, and wait until its switch has it."""
        self.write_mapping(mapping, redundancy)
        self.apply()

    def frontage(self, *arguments: str) -> str:
        """Run a command of `frontage` on the site's configuration, and return its output. Raises NodeError."""
        command = [str(self._programs.controller), *arguments, "--config", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT)
        if done.returncode != 0:
            raise NodeError(f"{self.addresses.name}: {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def bgp(self) -> Any:
        """Return the part of the controller's status about BGP."""
        return json.loads(self.frontage("status", "--json"))["bgp"]


def _port(number: int, name: str, role: str, mac: str, gateway: str) -> dict[str, object]:
    return {"id": number, "name": name, "role": role, "mac": mac, "gateways": [f"{gateway}/64"]}
