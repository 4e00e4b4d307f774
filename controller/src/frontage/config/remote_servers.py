# SPDX-License-Identifier: Apache-2.0
"""The encapsulation of packets to remote servers, which the switch reaches through tunnels (docs/remote-servers.md)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from frontage.fields import AddressField, Model
from frontage.limits import MAX_GRE_KEY, MAX_VNI

MIN_PATH_MTU = 1280
"""The longest packet that IPv6 (RFC 8200, 5) and the datagrams of QUIC (RFC 9000, 14) need to pass, in bytes."""
IP_HEADER = {4: 20, 6: 40}
"""Bytes of an IP header without options, by version."""
TCP_HEADER = 20
DEFAULT_VNI = 1


class EncapsulationKind(StrEnum):
    NONE = "none"
    VXLAN = "vxlan"
    GRE = "gre"
    GENEVE = "geneve"
    IPIP = "ipip"

    @property
    def has_vni(self) -> bool:
        return self in (EncapsulationKind.VXLAN, EncapsulationKind.GENEVE)


class Answers(StrEnum):
    """The way back of a remote server's packets."""

    TUNNEL = "tunnel"
    ROUTED = "routed"


class Encapsulation(Model):
    """The tunnel to a remote server. In the file, the kind alone may stand for the mapping."""

    kind: EncapsulationKind = Field(description="one of " + ", ".join(EncapsulationKind), examples=["vxlan"])
    endpoint: AddressField | None = Field(
        None, description="the address at which the tunnel ends; the server's `address` if absent", examples=["192.0.2.11"]
    )
    vni: int | None = Field(
        None,
        ge=0,
        le=MAX_VNI,
        description=f"the VNI of vxlan and geneve, 0 to {MAX_VNI}; {DEFAULT_VNI} if absent",
        examples=[DEFAULT_VNI],
    )
    key: int | None = Field(
        None, ge=0, le=MAX_GRE_KEY, description=f"the key of gre, 0 to {MAX_GRE_KEY}; without a key if absent", examples=[7]
    )
    mtu: int = Field(
        1500,
        ge=576,
        le=65535,
        description="the MTU of the network between the switch and the server, in bytes of the outer IP packet",
        examples=[1500],
    )
    answers: Answers = Field(
        Answers.TUNNEL,
        description="'tunnel' (the server's packets return in the tunnel) or 'routed' (they return without one)",
        examples=["tunnel"],
    )

    @model_validator(mode="before")
    @classmethod
    def _from_kind(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    @property
    def tunnel_id(self) -> int:
        """The VNI or key, or 0 if the tunnel has none."""
        if self.kind.has_vni:
            return DEFAULT_VNI if self.vni is None else self.vni
        return self.key or 0

    def overhead(self, outer_version: int) -> int:
        """Return the bytes that the tunnel adds to a packet, over this IP version."""
        if self.kind.has_vni:
            between = 8 + 8 + 14
        elif self.kind is EncapsulationKind.GRE:
            between = 4 if self.key is None else 8
        else:
            between = 0
        return IP_HEADER[outer_version] + between

    def path_mtu(self, outer_version: int) -> int:
        """Return the length of the longest packet that fits into the tunnel."""
        return self.mtu - self.overhead(outer_version)

    def max_segment(self, outer_version: int, version: int) -> int:
        """Return the maximum segment size of TCP over IP of this version in the tunnel (RFC 9293, 3.7.1)."""
        return self.path_mtu(outer_version) - IP_HEADER[version] - TCP_HEADER
