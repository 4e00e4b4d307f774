// SPDX-License-Identifier: Apache-2.0
// The packet generator of Tofino 2. Packets leave through port 1, behind the number of their ingress port. Those that begin
// with a command are recirculated first, or start the packet generator.
#include <core.p4>
#include <t2na.p4>

const bit<8> COMMAND = 0xff;
const bit<8> RECIRCULATE = 1;
const bit<8> GENERATE = 2;
const PortId_t RECIRCULATION_PORT = 6;

header seen_t {
    bit<7> unused;
    PortId_t port;
}

header command_t {
    bit<8> kind;
    bit<8> op;
    bit<16> line;
    bit<16> bytes;
    bit<80> rest;
}

struct headers_t {
    seen_t seen;
    command_t command;
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
        transition select(packet.lookahead<bit<8>>()) {
            COMMAND: command;
            default: accept;
        }
    }
    state command {
        packet.extract(hdr.command);
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
    apply {
        ig_tm_md.bypass_egress = 1;
        if (hdr.command.op == RECIRCULATE && ig_intr_md.ingress_port != RECIRCULATION_PORT) {
            ig_tm_md.ucast_egress_port = RECIRCULATION_PORT;
        } else {
            ig_tm_md.ucast_egress_port = 1;
            hdr.seen = { 0, ig_intr_md.ingress_port };
        }
        if (hdr.command.op == GENERATE) {
            ig_dprsr_md.pktgen = 1;
            ig_dprsr_md.pktgen_address = hdr.command.line[13:0];
            ig_dprsr_md.pktgen_length = hdr.command.bytes[9:0];
        }
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in nothing_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    Pktgen() generator;

    apply {
        if (ig_dprsr_md.pktgen == 1) {
            generator.emit(hdr.command);
        }
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

Pipeline(
    IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()
) pipe;

Switch(pipe) main;
