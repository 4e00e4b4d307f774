// SPDX-License-Identifier: Apache-2.0
// Checksums of TNA: verification of IPv4, and residual checksums of UDP and TCP while an address changes.
#include <core.p4>
#include <tna.p4>

header ipv4_t {
    bit<8> version_ihl;
    bit<8> tos;
    bit<16> length;
    bit<32> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header tcp_t {
    bit<16> src;
    bit<16> dst;
    bit<64> numbers;
    bit<32> flags;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
}

struct metadata_t {
    bool is_wrong;
    bit<16> residual;
}

struct nothing_t {}

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    Checksum() ipv4;
    Checksum() tcp;
    Checksum() udp;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ipv4);
        ipv4.add(hdr.ipv4);
        meta.is_wrong = ipv4.verify();
        tcp.subtract({ hdr.ipv4.src });
        udp.subtract({ hdr.ipv4.src });
        transition select(hdr.ipv4.protocol) {
            6: tcp_header;
            17: udp_header;
        }
    }
    state tcp_header {
        packet.extract(hdr.tcp);
        tcp.subtract({ hdr.tcp.checksum });
        meta.residual = tcp.get();
        transition accept;
    }
    state udp_header {
        packet.extract(hdr.udp);
        udp.subtract({ hdr.udp.checksum });
        udp.subtract_all_and_deposit(meta.residual);
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
        ig_tm_md.ucast_egress_port = 1;
        ig_tm_md.bypass_egress = 1;
        if (meta.is_wrong) {
            ig_dprsr_md.drop_ctl = 1;
        }
        hdr.ipv4.src = 0x0a010203;
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    Checksum() ipv4;
    Checksum() tcp;
    Checksum() udp;

    apply {
        hdr.ipv4.checksum = ipv4.update({
            hdr.ipv4.version_ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
            hdr.ipv4.src, hdr.ipv4.dst
        });
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = tcp.update({ hdr.ipv4.src, meta.residual });
        }
        if (hdr.udp.isValid()) {
            hdr.udp.checksum = udp.update(data = { hdr.ipv4.src, meta.residual }, zeros_as_ones = true);
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
