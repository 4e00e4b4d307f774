"""The IPv6 carrier and connection ids in the switch, by the vectors of docs/cookie-vectors.json: opened, refused, shown."""

from itertools import groupby
from typing import Any

from frontage_ptf.cookie import VECTORS, Key, key_of
from frontage_ptf.frame import UDP
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import DIPS, PREFIX, QUIC6, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import HASH, Server, Vip


def by_key(name: str) -> dict[Key, list[dict[str, Any]]]:
    """The cases of each key. Ids that differ by two have one epoch, and one key's tables."""
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


class InterfaceIds(VectorsTest):
    """Static ones lead to their server, dynamic ones are shown as X says; and neither does for the other."""

    def runTest(self) -> None:
        for key, cases in by_key("ipv6").items():
            self.install_keys(key)
            for case in cases:
                server = self.vip.server(case["sid"])
                interface_id = int(case["interface_id"], 16)
                up = self.talk(self.vip).datagram(short(b""), cookie_address(self.vip, interface_id))
                down = self.talk(self.vip).answer(own_address(server, interface_id))
                self.site.set_static_cookies(key, [server])
                static = cookie_address(self.vip, key.static6(server.sid))
                with self.subTest(case["interface_id"]):
                    if case["dynamic"]:
                        self.drops(1, up, "COOKIE_FORGED")
                        self.comes_from(static if case["x"] else self.vip.at, down, "INSIGHT")
                    else:
                        self.goes_to(server, up, "RETRIEVED_ADDRESS")
                        self.comes_from(static, down, "NO_INSIGHT")


class InvalidInterfaceIds(VectorsTest):
    """No client reaches a server by one, and no server is shown by one."""

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
                    self.drops(1, self.talk(self.vip).datagram(short(b""), to), "COOKIE_FORGED")
                    self.drops(3, self.talk(self.vip).answer(own_address(server, interface_id)), "COOKIE_SOURCE")


class ConnectionIds(VectorsTest):
    """Both forms."""

    def runTest(self) -> None:
        for key, cases in by_key("cid").items():
            self.install_keys(key)
            for case in cases:
                with self.subTest(case["id"]):
                    server = self.vip.server(case["sid"])
                    self.goes_to(server, self.talk(self.vip).datagram(short(bytes.fromhex(case["id"]))), "RETRIEVED_CID")


class InvalidConnectionIds(VectorsTest):
    """In neither header do they name anybody."""

    def runTest(self) -> None:
        for key, cases in by_key("cid_invalid").items():
            self.install_keys(key)
            for case in cases:
                cid = bytes.fromhex(case["id"])
                if case["reason"] == "epoch":
                    continue  # the other epoch may have another key here
                with self.subTest(case["id"]):
                    self.drops(1, self.talk(self.vip).datagram(long(cid, size=100)), "QUIC_SMALL")
                    if case["reason"] != "length":  # which a short header does not say
                        self.drops(1, self.talk(self.vip).datagram(short(cid)), "QUIC_NO_CONNECTION")
