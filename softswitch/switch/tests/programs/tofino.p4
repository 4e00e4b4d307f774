// SPDX-License-Identifier: Apache-2.0
// A program for TNA: port metadata, a table with a dynamic key mask, counters, a meter, a filter, a hash and multicast.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct port_metadata_t {
    bit<9> egress;
    bit<7> unused;
    bit<16> vrf;
}

struct metadata_t {
    port_metadata_t port;
}

struct nothing_t {}

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        meta.port = port_metadata_unpack<port_metadata_t>(packet);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md
) {
    DirectCounter<bit<32>>(CounterType_t.PACKETS) hits;
    DirectMeter(MeterType_t.BYTES) rates;
    Counter<bit<32>, bit<4>>(16, CounterType_t.PACKETS) seen;
    Wred<bit<8>, bit<4>>(16, 0, 255) wred;
    bit<8> color = 0;

    action forward(PortId_t port) {
        hits.count();
        ig_tm_md.ucast_egress_port = port;
    }

    action flood(bit<16> group, bit<16> rid, bit<16> l1_xid, bit<9> l2_xid, bit<13> hash1, bit<13> hash2) {
        hits.count();
        ig_tm_md.mcast_grp_a = group;
        ig_tm_md.rid = rid;
        ig_tm_md.level1_exclusion_id = l1_xid;
        ig_tm_md.level2_exclusion_id = l2_xid;
        ig_tm_md.level1_mcast_hash = hash1;
        ig_tm_md.level2_mcast_hash = hash2;
    }

    action copy() {
        hits.count();
        ig_tm_md.copy_to_cpu = 1;
    }

    @dynamic_table_key_masks(1)
    table stations {
        key = {
            hdr.ethernet.isValid(): exact;
            hdr.ethernet.dst: exact;
            meta.port.vrf: exact;
        }
        actions = {
            forward;
            flood;
            copy;
        }
        counters = hits;
        size = 64;
    }

    action set_color() {
        color = (bit<8>) rates.execute();
    }

    table colors {
        key = {
            hdr.ethernet.src: exact;
        }
        actions = {
            set_color;
        }
        meters = rates;
        size = 64;
    }

    apply {
        ig_tm_md.ucast_egress_port = meta.port.egress;
        ig_tm_md.bypass_egress = 1;
        seen.count(hdr.ethernet.type[3:0]);
        colors.apply();
        if (wred.execute(color, 1) == 0) {
            ig_dprsr_md.drop_ctl = 1;
        }
        stations.apply();
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(
    packet_in packet,
    out nothing_t hdr,
    out nothing_t meta,
    out egress_intrinsic_metadata_t eg_intr_md
) {
    state start {
        packet.extract(eg_intr_md);
        transition accept;
    }
}

control Egress(
    inout nothing_t hdr,
    inout nothing_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md
) {
    apply {}
}

control EgressDeparser(
    packet_out packet,
    inout nothing_t hdr,
    in nothing_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md
) {
    apply {}
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
