// SPDX-License-Identifier: Apache-2.0
// A program for Tofino with a register of pairs.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

struct pair_t {
    bit<32> packets;
    bit<32> last;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t md) {
    state start {
        packet.extract(md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t md,
                in ingress_intrinsic_metadata_from_parser_t prsr_md,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr_md,
                inout ingress_intrinsic_metadata_for_tm_t tm_md) {
    Register<pair_t, bit<8>>(4) seen;
    RegisterAction<pair_t, bit<8>, bit<32>>(seen) see = {
        void apply(inout pair_t pair, out bit<32> result) {
            pair.packets = pair.packets + 1;
            pair.last = hdr.ethernet.src[31:0];
            result = pair.packets;
        }
    };

    apply {
        see.execute(1);
        tm_md.ucast_egress_port = 2;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t md) {
    state start {
        packet.extract(md);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t md,
               in egress_intrinsic_metadata_from_parser_t prsr_md,
               inout egress_intrinsic_metadata_for_deparser_t dprsr_md,
               inout egress_intrinsic_metadata_for_output_port_t oport_md) {
    apply {}
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
