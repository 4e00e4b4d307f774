// SPDX-License-Identifier: Apache-2.0
// Counters that do not count the length with which packets enter a gress: adjusted ones, and true egress accounting.
#include <core.p4>
#include <t2na.p4>

const bit<32> ADJUSTMENT = 10;

header key_t {
    bit<8> key;
}

header removed_t {
    bit<80> bytes;
}

struct headers_t {
    key_t key;
    removed_t removed;
}

struct nothing_t {}

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out nothing_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.key);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout nothing_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md
) {
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) adjusted;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) adjusted_entries;
    Meter<bit<8>>(1, MeterType_t.BYTES) rates;

    action adjust() {
        adjusted_entries.count(adjust_byte_count = ADJUSTMENT);
    }

    table keys {
        key = {
            hdr.key.key: exact;
        }
        actions = {
            adjust;
        }
        const default_action = adjust();
        counters = adjusted_entries;
        size = 16;
    }

    apply {
        adjusted.count(hdr.key.key, ADJUSTMENT);
        keys.apply();
        ig_tm_md.ucast_egress_port = 1;
        if (rates.execute(index = 0, adjust_byte_count = ADJUSTMENT) == 3) {
            ig_dprsr_md.drop_ctl = 1;
        }
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in nothing_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(
    packet_in packet,
    out headers_t hdr,
    out nothing_t meta,
    out egress_intrinsic_metadata_t eg_intr_md
) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.key);
        packet.extract(hdr.removed);
        transition accept;
    }
}

control Egress(
    inout headers_t hdr,
    inout nothing_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md
) {
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES, true) leaving;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES, true) leaving_entries;

    action count() {
        leaving_entries.count();
    }

    table keys {
        key = {
            hdr.key.key: exact;
        }
        actions = {
            count;
        }
        const default_action = count();
        counters = leaving_entries;
        size = 16;
    }

    apply {
        leaving.count(hdr.key.key);
        keys.apply();
        hdr.removed.setInvalid();
        if (hdr.key.key == 3) {
            eg_dprsr_md.drop_ctl = 1;
        }
    }
}

control EgressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in nothing_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md
) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(
    IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()
) pipe;

Switch(pipe) main;
