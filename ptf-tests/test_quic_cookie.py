# SPDX-License-Identifier: Apache-2.0
"""IPv6 cookies and connection ids in the switch, by the vectors of docs/cookie-vectors.json: unsealing, rejection,
masking."""

from itertools import groupby
from typing import Any

from frontage_ptf.cookie import VECTORS, Key, key_of
from frontage_ptf.frame import UDP
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import DIPS, PREFIX, QUIC6, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import HASH, Server, Vip


def by_key(name: str) -> dict[Key, list[dict[str, Any]]]:
    """Group the cases by key. Ids that differ by two have one epoch, and use one key's tables."""
    cases = sorted(VECTORS[name], key=lambda case: (case["secret"], case["key_id"] & 1))
    groups = groupby(cases, key=lambda case: (case["secret"], case["key_id"] & 1))
    return {key_of({"secret": secret, "key_id": epoch}): list(group) for (secret, epoch), group in groups}


class VectorsTest(QuicTest):
    def setUp(self) -> None:
        super().setUp()
        sids = sorted({case["sid"] for name in ("ipv6", "cid") for case in VECTORS[name]})
        dips = [Endpoint(DIPS[6] + (i << 64), 8443) for i in range(len(sids))]
        servers = [Server(sid, dip) for sid, dip in zip(sids, dips, strict=True)]
        self.vip = Vip(7, QUIC6, servers, policy=HASH, protocol=UDP, prefix=PREFIX)
        self.site.add_vip(self.vip)


class ValidInterfaceIds(VectorsTest):
    """Static ones lead to their server, and dynamic ones are masked according to X; not the other way round."""

    def runTest(self) -> None:
        for key, cases in by_key("ipv6").items():
            self.install_keys(key)
            for case in cases:
                server = self.vip.server(case["sid"])
                interface_id = int(case["interface_id"], 16)
                up = self.new_conversation(self.vip).datagram(short(b""), cookie_address(self.vip, interface_id))
                down = self.new_conversation(self.vip).response(own_address(server, interface_id))
                self.site.set_static_cookies(key, [server])
                static = cookie_address(self.vip, key.static6(server.sid))
                with self.subTest(case["interface_id"]):
                    if case["dynamic"]:
                        self.drops(1, up, "COOKIE_FORGED")
                        self.comes_from(static if case["x"] else self.vip.at, down, "INSIGHT")
                    else:
                        self.goes_to(server, up, "RETRIEVED_ADDRESS")
                        self.comes_from(static, down, "NO_INSIGHT")


class InvalidInterfaceIdsDrop(VectorsTest):
    """They lead no client to a server, and no server can send from them."""

    def runTest(self) -> None:
        server = self.vip.servers[0]
        for key, cases in by_key("ipv6_invalid").items():
            self.install_keys(key)
            for case in cases:
                if case["reason"] == "epoch":
                    continue  # the other epoch may have another key here
                interface_id = int(case["interface_id"], 16)
                with self.subTest(case["interface_id"]):
                    to = cookie_address(self.vip, interface_id)
                    self.drops(1, self.new_conversation(self.vip).datagram(short(b""), to), "COOKIE_FORGED")
                    self.drops(3, self.new_conversation(self.vip).response(own_address(server, interface_id)), "COOKIE_SOURCE")


class ValidConnectionIds(VectorsTest):
    """Sealed and plaintext connection ids lead to their server."""

    def runTest(self) -> None:
        for key, cases in by_key("cid").items():
            self.install_keys(key)
            for case in cases:
                with self.subTest(case["id"]):
                    server = self.vip.server(case["sid"])
                    self.goes_to(
                        server, self.new_conversation(self.vip).datagram(short(bytes.fromhex(case["id"]))), "RETRIEVED_CID"
                    )


class InvalidConnectionIdsNameNoServer(VectorsTest):
    """In long and short headers they name no server."""

    def runTest(self) -> None:
        for key, cases in by_key("cid_invalid").items():
            self.install_keys(key)
            for case in cases:
                cid = bytes.fromhex(case["id"])
                if case["reason"] == "epoch":
                    continue  # the other epoch may have another key here
                with self.subTest(case["id"]):
                    self.drops(1, self.new_conversation(self.vip).datagram(long(cid, size=100)), "QUIC_SMALL")
                    if case["reason"] != "length":  # a short header does not carry a length
                        self.drops(1, self.new_conversation(self.vip).datagram(short(cid)), "QUIC_NO_CONNECTION")
