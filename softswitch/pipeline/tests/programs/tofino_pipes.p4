// SPDX-License-Identifier: Apache-2.0
// Every packet leaves with the counts that it found in the registers of its pipes.
#include <core.p4>
#include <tna.p4>

header visit_t {
    bit<16> key;
    // The port to which the packet goes, and the one to which it goes after recirculation.
    bit<16> first;
    bit<16> second;
    bit<16> group;
    bit<16> tag;
    bit<16> arrivals;
    bit<16> departures;
}

struct headers_t {
    visit_t visit;
}

struct empty_t {}

parser IngressParser(
    packet_in packet, out headers_t hdr, out empty_t meta, out ingress_intrinsic_metadata_t ig_intr_md)
{
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.visit);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout empty_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t from_parser,
    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
    inout ingress_intrinsic_metadata_for_tm_t for_tm)
{
    Register<bit<16>, bit<8>>(4, 0) arrivals;
    RegisterAction<bit<16>, bit<8>, bit<16>>(arrivals) arrive = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS) counter;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) hits;

    action set_tag(bit<16> tag) {
        hits.count();
        hdr.visit.tag = tag;
    }

    action untagged() {
        hits.count();
    }

    @dynamic_table_key_masks(1)
    table tags {
        key = { hdr.visit.key : exact; }
        actions = { set_tag; untagged; }
        default_action = untagged;
        counters = hits;
        idle_timeout = true;
        size = 16;
    }

    apply {
        hdr.visit.arrivals = arrive.execute(1);
        counter.count(2);
        tags.apply();
        if (ig_intr_md.ingress_port[6:0] == 68 || ig_intr_md.ingress_port[6:0] == 5) {
            for_tm.ucast_egress_port = (PortId_t) hdr.visit.second;
        } else if (hdr.visit.group != 0) {
            for_tm.mcast_grp_a = hdr.visit.group;
        } else {
            for_tm.ucast_egress_port = (PortId_t) hdr.visit.first;
        }
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in empty_t meta,
    in ingress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(
    packet_in packet, out headers_t hdr, out empty_t meta, out egress_intrinsic_metadata_t eg_intr_md)
{
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.visit);
        transition accept;
    }
}

control Egress(
    inout headers_t hdr,
    inout empty_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t from_parser,
    inout egress_intrinsic_metadata_for_deparser_t for_deparser,
    inout egress_intrinsic_metadata_for_output_port_t for_port)
{
    Register<bit<16>, bit<8>>(4, 0) departures;
    RegisterAction<bit<16>, bit<8>, bit<16>>(departures) depart = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };

    apply {
        hdr.visit.departures = depart.execute(1);
    }
}

control EgressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in empty_t meta,
    in egress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
