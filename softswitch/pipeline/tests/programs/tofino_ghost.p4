// SPDX-License-Identifier: Apache-2.0
// The ghost thread of Tofino 2 keeps the length of each queue, in registers that ingress reads. A packet returns with the length
// and the pipe of a queue, and the number of changes for each version of the registers.
#include <core.p4>
#include <t2na.p4>

header query_t {
    bit<16> queue;
    bit<32> length;
    bit<8> pipe;
    bit<8> version;
    bit<32> changes;
}

struct headers_t {
    query_t query;
}

struct nothing_t {}

Register<bit<32>, bit<11>>(2048) lengths;
Register<bit<8>, bit<11>>(2048) pipes;
Register<bit<32>, bit<1>>(2) changes;

control Ghost(in ghost_intrinsic_metadata_t gh_intr_md) {
    RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) set_length = {
        void apply(inout bit<32> value) {
            value = (bit<32>) gh_intr_md.qlength;
        }
    };
    RegisterAction<bit<8>, bit<11>, bit<8>>(pipes) set_pipe = {
        void apply(inout bit<8> value) {
            value = (bit<8>) gh_intr_md.pipe_id;
        }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(changes) count = {
        void apply(inout bit<32> value) {
            value = value + 1;
        }
    };

    apply {
        set_length.execute(gh_intr_md.qid);
        set_pipe.execute(gh_intr_md.qid);
        count.execute(gh_intr_md.ping_pong);
    }
}

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out nothing_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.query);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout nothing_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md,
    in ghost_intrinsic_metadata_t gh_intr_md
) {
    RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) read_lengths = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };
    RegisterAction<bit<8>, bit<11>, bit<8>>(pipes) read_pipes = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
        }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(changes) read_changes = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    apply {
        hdr.query.length = read_lengths.execute(hdr.query.queue[10:0]);
        hdr.query.pipe = read_pipes.execute(hdr.query.queue[10:0]);
        hdr.query.changes = read_changes.execute(hdr.query.version[0:0]);
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

Pipeline(
    IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser(), Ghost()
) pipe;

Switch(pipe) main;
