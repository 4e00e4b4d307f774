// SPDX-License-Identifier: Apache-2.0
// Ports with different parsers: ports 0 to 3 receive plain packets, ports 4 to 7 packets behind a tag, and other ports none.
// A packet returns with the number of its parser.
#include <core.p4>
#include <tna.p4>

header tag_t {
    bit<8> tag;
}

header number_t {
    bit<8> parser_number;
    bit<8> content;
}

struct headers_t {
    number_t number;
}

struct metadata_t {
    bit<8> parser_number;
}

struct nothing_t {}

parser PlainParser(
    packet_in packet,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.number);
        meta.parser_number = 1;
        transition accept;
    }
}

parser TaggedParser(
    packet_in packet,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    tag_t tag;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(tag);
        packet.extract(hdr.number);
        meta.parser_number = tag.tag;
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
    apply {
        hdr.number.parser_number = meta.parser_number;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
        ig_tm_md.bypass_egress = 1;
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

@default_portmap({ 0 }, { 1 })
IngressParsers(PlainParser(), TaggedParser()) ingress_parsers;

EgressParsers(EgressParser()) egress_parsers;

MultiParserPipeline(
    ingress_parsers, Ingress(), IngressDeparser(), egress_parsers, Egress(), EgressDeparser()
) pipe;

MultiParserSwitch(pipe) main;
