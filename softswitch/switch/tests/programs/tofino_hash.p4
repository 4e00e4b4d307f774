// SPDX-License-Identifier: Apache-2.0
// Returns the hash of the first fields of a packet, which the control plane can change.
#include <core.p4>
#include <tna.p4>

header numbers_t {
    bit<16> a;
    bit<16> b;
    bit<32> hash;
}

struct headers_t {
    numbers_t numbers;
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
        packet.extract(hdr.numbers);
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
    Hash<bit<32>>(HashAlgorithm_t.CRC32) flow_hash;

    apply {
        hdr.numbers.hash = flow_hash.get({ hdr.numbers.a, 8w5, hdr.numbers.b });
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
        ig_tm_md.bypass_egress = 1;
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
