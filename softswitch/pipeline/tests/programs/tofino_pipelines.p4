// SPDX-License-Identifier: Apache-2.0
// Two pipelines, folded: packets enter and leave pipe 0, and the recirculation port of pipe 1 returns them in between.
#include <core.p4>
#include <tna.p4>

header path_t {
    bit<16> key;
    // The value of each table on the way.
    bit<16> outer_ingress;
    bit<16> inner_egress;
    bit<16> inner_ingress;
    bit<16> outer_egress;
}

header label_t {
    bit<32> label;
}

struct outer_headers_t {
    path_t path;
}

struct inner_headers_t {
    label_t label;
    path_t path;
}

struct empty_t {}

struct inner_metadata_t {
    bit<16> visits;
}

parser OuterIngressParser(
    packet_in packet, out outer_headers_t hdr, out empty_t meta, out ingress_intrinsic_metadata_t ig_intr_md)
{
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.path);
        transition accept;
    }
}

control Ingress(
    inout outer_headers_t hdr,
    inout empty_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t from_parser,
    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
    inout ingress_intrinsic_metadata_for_tm_t for_tm)
{
    Register<bit<16>, bit<1>>(1, 0) visits;
    RegisterAction<bit<16>, bit<1>, bit<16>>(visits) visit = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };

    action set(bit<16> value) {
        hdr.path.outer_ingress = value;
    }

    table steps {
        key = { hdr.path.key : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        visit.execute(0);
        steps.apply();
        for_tm.ucast_egress_port = 128 + 68;
    }
}

control OuterIngressDeparser(
    packet_out packet,
    inout outer_headers_t hdr,
    in empty_t meta,
    in ingress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

parser OuterEgressParser(
    packet_in packet, out outer_headers_t hdr, out empty_t meta, out egress_intrinsic_metadata_t eg_intr_md)
{
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.path);
        transition accept;
    }
}

control OuterEgress(
    inout outer_headers_t hdr,
    inout empty_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t from_parser,
    inout egress_intrinsic_metadata_for_deparser_t for_deparser,
    inout egress_intrinsic_metadata_for_output_port_t for_port)
{
    apply {
        hdr.path.outer_egress = (bit<16>) eg_intr_md.egress_port;
    }
}

control OuterEgressDeparser(
    packet_out packet,
    inout outer_headers_t hdr,
    in empty_t meta,
    in egress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

parser InnerIngressParser(
    packet_in packet,
    out inner_headers_t hdr,
    out inner_metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md)
{
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.label);
        packet.extract(hdr.path);
        transition accept;
    }
}

control InnerIngress(
    inout inner_headers_t hdr,
    inout inner_metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t from_parser,
    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
    inout ingress_intrinsic_metadata_for_tm_t for_tm)
{
    Register<bit<16>, bit<1>>(1, 0) visits;
    RegisterAction<bit<16>, bit<1>, bit<16>>(visits) visit = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 2;
            result = value;
        }
    };

    action set(bit<16> value) {
        hdr.path.inner_ingress = value;
    }

    table steps {
        key = { hdr.label.label : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        meta.visits = visit.execute(0);
        hdr.path.key = meta.visits;
        steps.apply();
        hdr.label.setInvalid();
        for_tm.ucast_egress_port = 3;
    }
}

control InnerIngressDeparser(
    packet_out packet,
    inout inner_headers_t hdr,
    in inner_metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

parser InnerEgressParser(
    packet_in packet, out inner_headers_t hdr, out empty_t meta, out egress_intrinsic_metadata_t eg_intr_md)
{
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.path);
        transition accept;
    }
}

control InnerEgress(
    inout inner_headers_t hdr,
    inout empty_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t from_parser,
    inout egress_intrinsic_metadata_for_deparser_t for_deparser,
    inout egress_intrinsic_metadata_for_output_port_t for_port)
{
    apply {
        hdr.path.inner_egress = (bit<16>) eg_intr_md.egress_port;
        hdr.label.setValid();
        hdr.label.label = 77;
    }
}

control InnerEgressDeparser(
    packet_out packet,
    inout inner_headers_t hdr,
    in empty_t meta,
    in egress_intrinsic_metadata_for_deparser_t for_deparser)
{
    apply {
        packet.emit(hdr);
    }
}

Pipeline(
    OuterIngressParser(),
    Ingress(),
    OuterIngressDeparser(),
    OuterEgressParser(),
    OuterEgress(),
    OuterEgressDeparser()) outer;

Pipeline(
    InnerIngressParser(),
    InnerIngress(),
    InnerIngressDeparser(),
    InnerEgressParser(),
    InnerEgress(),
    InnerEgressDeparser()) inner;

Switch(outer, inner) main;
