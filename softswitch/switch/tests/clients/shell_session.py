# SPDX-License-Identifier: Apache-2.0
"""A session of p4runtime-shell with every kind of entity of features.p4, packets and digests.

    shell_session.py ADDRESS INTERFACE

ADDRESS is the address of a softswitch without program, with CPU port 510, whose port 1 is the other end of INTERFACE.
"""

import socket
import sys
import time
import unittest
from pathlib import Path

import p4runtime_sh.p4runtime as p4rt
import p4runtime_sh.shell as sh

PROGRAMS = Path(__file__).parent.parent / "programs"
TEST_TIMEOUT = 20
FRAME = bytes.fromhex("0200000000010200000000029999") + bytes(50)


def read(entity):
    found = []
    entity.read(found.append)
    return found


def first(collect):
    """Return a sniffer's first message; a sniffer returns only after its timeout."""
    end = time.monotonic() + TEST_TIMEOUT
    while time.monotonic() < end:
        found = list(collect(timeout=0.2))
        if found:
            return found[0]
    raise AssertionError("no message in time")


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config = sh.FwdPipeConfig(str(PROGRAMS / "features.p4info.txtpb"), str(PROGRAMS / "features.json"))
        sh.setup(device_id=1, grpc_addr=sys.argv[1], election_id=(0, 1), config=config, verbose=False)

    @classmethod
    def tearDownClass(cls):
        sh.teardown()

    def refused(self, call, code):
        with self.assertRaises(p4rt.P4RuntimeWriteException) as raised:
            call()
        self.assertEqual([error.canonical_code for _, error in raised.exception.errors], [code])

    def test_version(self):
        self.assertEqual(str(sh.APIVersion()), "1.5.0")

    def test_table_entries(self):
        entry = sh.TableEntry("l2")(action="forward")
        entry.match["std.ingress_port"] = "3"
        entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:03"
        entry.action["port"] = "2"
        entry.insert()
        self.refused(entry.insert, 6)
        entry.action["port"] = "4"
        entry.modify()
        (there,) = read(sh.TableEntry("l2"))
        self.assertEqual(there.action["port"].value, b"\x04")
        entry.delete()
        self.assertEqual(read(sh.TableEntry("l2")), [])
        self.refused(entry.delete, 5)

    def test_priorities_and_default_entry(self):
        entry = sh.TableEntry("acl")(action="set_class", priority=10)
        entry.match["hdr.ipv4.src"] = "10.0.0.0&&&255.0.0.0"
        entry.match["hdr.ipv4.len"] = "10..20"
        entry.match["hdr.ipv4.protocol"] = "6"
        entry.action["class"] = "3"
        entry.insert()
        self.assertEqual([e.priority for e in read(sh.TableEntry("acl"))], [10])
        entry.delete()
        default = sh.TableEntry("acl")(action="drop", is_default=True)
        default.modify()
        (there,) = read(sh.TableEntry("acl")(is_default=True))
        self.assertEqual(there.action.action_name, "FeaturesIngress.drop")

    def test_direct_counter_and_meter(self):
        entry = sh.TableEntry("routes")(action="route")
        entry.match["hdr.ipv4.dst"] = "10.0.0.0/8"
        entry.action.set(dst="2", port="1")
        entry.counter_data.packet_count = 7
        entry.meter_config.cir = 1
        entry.meter_config.pir = 2
        entry.insert()
        counter = sh.DirectCounterEntry("route_counter")
        counter.table_entry.match["hdr.ipv4.dst"] = "10.0.0.0/8"
        self.assertEqual([c.packet_count for c in read(counter)], [7])
        counter.packet_count = 9
        counter.modify()
        self.assertEqual([c.packet_count for c in read(counter)], [9])
        meter = sh.DirectMeterEntry("route_meter")
        meter.table_entry.match["hdr.ipv4.dst"] = "10.0.0.0/8"
        self.assertEqual([m.pir for m in read(meter)], [2])
        entry.delete()

    def test_members_and_groups(self):
        for number in 1, 2:
            member = sh.ActionProfileMember("balancer")(member_id=number, action="forward")
            member.action["port"] = str(number)
            member.insert()
        group = sh.ActionProfileGroup("balancer")(group_id=1)
        group.add(1, weight=2)
        group.add(2, watch_port=b"\x01")
        group.insert()
        entry = sh.TableEntry("spread")(group_id=1)
        entry.match["meta.class"] = "1"
        entry.insert()
        self.assertEqual([e.group_id for e in read(sh.TableEntry("spread"))], [1])
        self.assertEqual([len(g.members) for g in read(sh.ActionProfileGroup("balancer"))], [2])
        self.assertEqual([m.member_id for m in read(sh.ActionProfileMember("balancer"))], [1, 2])
        self.refused(group.delete, 9)
        entry.delete()
        group.delete()
        for number in 1, 2:
            sh.ActionProfileMember("balancer")(member_id=number).delete()

    def test_one_shot(self):
        one_shot = sh.Oneshot("spread")
        for port in "1", "2":
            action = sh.Action("forward")
            action["port"] = port
            one_shot.add(action, weight=3)
        entry = sh.TableEntry("spread")(oneshot=one_shot)
        entry.match["meta.class"] = "2"
        entry.insert()
        (there,) = read(sh.TableEntry("spread"))
        self.assertEqual([(a.action["port"].value, a.weight) for a in there.oneshot.actions], [(b"\x01", 3), (b"\x02", 3)])
        entry.delete()

    def test_counters_and_meters(self):
        counter = sh.CounterEntry("port_counter")(index=5)
        counter.packet_count = 4
        counter.modify()
        self.assertEqual([c.packet_count for c in read(sh.CounterEntry("port_counter")(index=5))], [4])
        self.assertEqual(len(read(sh.CounterEntry("port_counter"))), 64)
        meter = sh.MeterEntry("port_meter")(index=5)
        meter.cir, meter.pir = 10, 20
        meter.modify()
        self.assertEqual([m.cir for m in read(sh.MeterEntry("port_meter")(index=5))], [10])

    def test_multicast_and_clones(self):
        group = sh.MulticastGroupEntry(1)
        group.add(1, 1).add(2, 2)
        group.insert()
        self.assertEqual([len(g.replicas) for g in read(sh.MulticastGroupEntry())], [2])
        group.delete()
        session = sh.CloneSessionEntry(5)
        session.add(510, 1)
        session.insert()
        self.assertEqual([len(s.replicas) for s in read(sh.CloneSessionEntry())], [1])
        session.delete()

    def test_packets(self):
        packet_in = sh.PacketIn()
        sh.PacketOut(FRAME, egress_port="510", pad="0").send()
        message = first(packet_in.sniff)
        self.assertEqual(message.packet.payload, FRAME)
        self.assertEqual([(m.metadata_id, m.value) for m in message.packet.metadata], [(1, b"\x01\xfe"), (2, b"\x01")])

    def test_digests(self):
        digests = sh.DigestList()
        digest = sh.DigestEntry("learn_t")
        digest.ack_timeout_ns = 1_000_000_000
        digest.max_timeout_ns = 1_000_000
        digest.max_list_size = 10
        digest.insert()
        self.assertEqual(len(read(sh.DigestEntry("learn_t"))), 1)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind((sys.argv[2], 0))
            wire.send(FRAME)
        message = first(digests.sniff)
        (data,) = message.digest.data
        self.assertEqual([m.bitstring for m in data.struct.members], [FRAME[6:12], b"\x01"])
        digest.delete()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
