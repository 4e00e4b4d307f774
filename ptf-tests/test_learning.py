# SPDX-License-Identifier: Apache-2.0
"""Neighbor resolution: frames that the controller sends, and digests of what neighbors say about themselves."""

from ipaddress import ip_address
from typing import Any

import finsy as fy
from scapy.all import ARP, Ether, IPv6, Packet, Raw
from scapy.all import ICMPv6ND_NA as Advertisement
from scapy.all import ICMPv6ND_NS as Solicitation
from scapy.all import ICMPv6NDOptDstLLAddr as TargetMac
from scapy.all import ICMPv6NDOptSrcLLAddr as SourceMac

from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC
from frontage_ptf.switch import FrontageTest

SEND = 7
DIGEST = "new_neighbor_t"
ARP_REQUEST, ARP_REPLY, ARP_ANNOUNCEMENT, NDP_SOLICITATION, NDP_ADVERTISEMENT, NDP_UNSOLICITED = range(1, 7)
BROADCAST = "ff:ff:ff:ff:ff:ff"
GATEWAY4, GATEWAY6 = "198.51.100.1", "2001:db8:1::1"
NODE4, NODE6 = "198.51.100.7", "2001:db8:1::7"
ME, SWITCH = NEIGHBOR_MAC[1], PORT_MAC[1]


def number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


class LearningTest(FrontageTest):
    """A program that resolves neighbors, with its digest enabled."""

    def setUp(self) -> None:
        super().setUp()
        if not any(digest.alias == DIGEST for digest in self.client.schema.digests):
            self.skipTest("the profile does not resolve neighbors")
        self.client.write(+fy.P4DigestEntry(DIGEST, max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**11))

    def reported(self) -> dict[str, Any]:
        """Return the next digest, which has one message, and acknowledge it."""
        found = fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema)
        self.client.send(found.ack())
        (message,) = found.data
        assert isinstance(message, dict)
        return message

    def learns(self, frame: Packet, kind: int, address: str, mac: str | None = ME, port: int = 1) -> None:
        """Check that the frame, from `ME`, is reported as this claim."""
        self.fate(port, bytes(frame))
        claim = {"kind": kind, "port": port, "address": int(ip_address(address))}
        self.assertEqual(claim | {"mac": number(mac) if mac else 0, "source": number(frame.src)}, self.reported())

    def learns_nothing(self, port: int, frame: Packet) -> None:
        """Check that the next digest is that of a later frame."""
        self.fate(port, bytes(frame))
        self.marks += 1
        mark = f"198.51.100.{100 + self.marks}"
        self.learns(Ether(src=ME, dst=SWITCH) / ARP(op=2, hwsrc=ME, psrc=mark, pdst=GATEWAY4), ARP_REPLY, mark)

    marks = 0


def advertisement(target: str = NODE6, dst: str = GATEWAY6, **fields: int) -> Packet:
    return IPv6(src=NODE6, dst=dst, hlim=fields.pop("hlim", 255)) / Advertisement(tgt=target, R=0, **({"S": 1, "O": 1} | fields))


class ArpSendersAreReported(LearningTest):
    """Replies, requests for addresses of the switch, and announcements."""

    def runTest(self) -> None:
        to_switch, to_all = Ether(src=ME, dst=SWITCH), Ether(src=ME, dst=BROADCAST)
        for pad in (b"", bytes(18)):
            node = f"198.51.100.{20 + len(pad)}"
            reply = ARP(op=2, hwsrc=ME, psrc=node, hwdst=SWITCH, pdst=GATEWAY4)
            self.learns(to_switch / reply / Raw(pad), ARP_REPLY, node)
        self.learns(to_all / ARP(op=2, hwsrc=ME, psrc=NODE4, hwdst=BROADCAST, pdst=NODE4), ARP_REPLY, NODE4)
        self.learns(to_all / ARP(op=1, hwsrc=ME, psrc=NODE4, pdst=GATEWAY4), ARP_REQUEST, NODE4)
        self.learns(to_all / ARP(op=1, hwsrc=ME, psrc=NODE4, pdst=NODE4), ARP_ANNOUNCEMENT, NODE4)
        other = "02:00:00:00:99:99"
        self.learns(to_switch / ARP(op=2, hwsrc=other, psrc=NODE4, pdst=GATEWAY4), ARP_REPLY, NODE4, other)


class NdpSendersAreReported(LearningTest):
    """Advertisements with and without the MAC, and solicitations for addresses of the switch."""

    def runTest(self) -> None:
        to_switch, to_all = Ether(src=ME, dst=SWITCH), Ether(src=ME, dst="33:33:00:00:00:01")
        option = TargetMac(lladdr=ME)
        self.learns(to_switch / advertisement() / option, NDP_ADVERTISEMENT, NODE6)
        self.learns(to_switch / advertisement(), NDP_ADVERTISEMENT, NODE6, None)
        self.learns(to_all / advertisement(dst="ff02::1", S=0) / option, NDP_UNSOLICITED, NODE6)
        self.learns(to_switch / advertisement("2001:db8:1::8") / option, NDP_ADVERTISEMENT, "2001:db8:1::8")
        self.learns(to_switch / advertisement("2001:db8:1::9") / SourceMac(lladdr=ME), NDP_ADVERTISEMENT, "2001:db8:1::9", None)
        ask = IPv6(src=NODE6, dst=GATEWAY6, hlim=255) / Solicitation(tgt=GATEWAY6) / SourceMac(lladdr=ME)
        self.learns(to_switch / ask, NDP_SOLICITATION, NODE6)


class OtherPacketsAreNotReported(LearningTest):
    """Requests for other nodes, probes, malformed packets, and packets that an earlier check drops."""

    def runTest(self) -> None:
        to_switch, to_all = Ether(src=ME, dst=SWITCH), Ether(src=ME, dst=BROADCAST)
        reply = ARP(op=2, hwsrc=ME, psrc=NODE4, pdst=GATEWAY4)
        self.learns_nothing(1, to_all / ARP(op=1, hwsrc=ME, psrc=NODE4, pdst="198.51.100.8"))
        self.learns_nothing(1, to_all / ARP(op=1, hwsrc=ME, psrc="0.0.0.0", pdst=NODE4))
        self.learns_nothing(1, to_switch / ARP(op=4, hwsrc=ME, psrc=NODE4, pdst=GATEWAY4))
        self.learns_nothing(1, to_switch / ARP(hwtype=6, op=2, hwsrc=ME, psrc=NODE4, pdst=GATEWAY4))
        self.learns_nothing(1, Ether(src=ME, dst="02:00:00:00:77:77") / reply)
        self.learns_nothing(5, Ether(src=ME, dst=BROADCAST) / reply)  # a port without a role
        self.learns_nothing(1, to_switch / advertisement(hlim=254) / TargetMac(lladdr=ME))
        self.learns_nothing(1, to_switch / advertisement(code=1) / TargetMac(lladdr=ME))
        ask = Solicitation(tgt=GATEWAY6)
        self.learns_nothing(1, to_switch / IPv6(src=NODE6, dst=GATEWAY6, hlim=255) / ask)
        self.learns_nothing(1, to_switch / IPv6(src="::", dst=GATEWAY6, hlim=255) / ask / SourceMac(lladdr=ME))
        elsewhere = IPv6(src=NODE6, dst=GATEWAY6, hlim=255) / Solicitation(tgt="2001:db8:1::8") / SourceMac(lladdr=ME)
        self.learns_nothing(1, to_switch / elsewhere)


class AnswersEndInTheSwitch(LearningTest):
    """They are counted with a reason of their own, and do not leave by any port."""

    def runTest(self) -> None:
        to_switch = Ether(src=ME, dst=SWITCH)
        for dst in (GATEWAY6, "2001:db8:2::9"):
            self.drops(1, bytes(to_switch / advertisement(dst=dst) / TargetMac(lladdr=ME)), "NEIGHBOR_ANSWER")
        self.drops(1, bytes(to_switch / advertisement(hlim=254)), "NEIGHBOR_NOT_LOCAL")


class FloodOfEqualClaimsIsOneDigest(LearningTest):
    """Until the controller acknowledges the digest, equal claims are not reported again."""

    def runTest(self) -> None:
        reply = bytes(Ether(src=ME, dst=SWITCH) / ARP(op=2, hwsrc=ME, psrc=NODE4, pdst=GATEWAY4))
        for _ in range(50):
            self.send(1, reply)
        self.settle()
        found = fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema)
        self.assertTrue(self.client.received.empty())
        self.client.send(found.ack())
        for _ in range(100):  # the switch does not confirm acknowledgements
            self.fate(1, reply)
            if not self.client.received.empty():
                return
        self.fail("no digest after the acknowledgement")


class SentFrameLeavesAsItIs(LearningTest):
    """The payload of a packet-out leaves by the port that it names, whatever it is, and counts nowhere."""

    def runTest(self) -> None:
        request = Ether(src=SWITCH, dst=BROADCAST) / ARP(op=1, hwsrc=SWITCH, psrc=GATEWAY4, pdst=NODE4) / Raw(bytes(18))
        ask = IPv6(src=GATEWAY6, dst=NODE6, hlim=255) / Solicitation(tgt=NODE6) / SourceMac(lladdr=SWITCH)
        expired = Ether(src=ME, dst=SWITCH) / IPv6(src=NODE6, dst=GATEWAY6, hlim=0) / Raw(bytes(range(200)))
        drops = self.dropped_so_far()
        for frame in (request, Ether(src=SWITCH, dst=ME) / ask, expired, Raw(bytes(range(60)))):
            for port in (1, 4, 5):
                with self.subTest(frame=frame.summary(), port=port):
                    self.client.send(fy.P4PacketOut(bytes(frame), op=SEND, depth=0, slot=port, sid=0, score=0))
                    self.sent += 1
                    self.assertEqual((port, bytes(frame)), self.receive(2.0))
        self.assertEqual(drops, self.dropped_so_far())
        self.assertFalse(self.outcomes())
        self.assertTrue(self.client.received.empty())
