// SPDX-License-Identifier: Apache-2.0
// Ways out of a pipeline other than a port: to the controller, to a multicast group, as a clone, as a digest, and once more around.
#include "include/probe.p4"

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    probe_t probe;
}

struct metadata_t {
    @field_list(1)
    bit<8> rounds;
}

struct learned_t {
    bit<48> mac;
    bit<9> port;
}

parser StreamsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StreamsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.probe.kind == 0) { // to the controller
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = hdr.probe.index[6:0];
            standard_metadata.egress_spec = CPU_PORT;
        } else if (hdr.probe.kind == 1) { // to a multicast group
            standard_metadata.mcast_grp = hdr.probe.value;
        } else if (hdr.probe.kind == 2) { // forwarded, and cloned as it came in
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.probe.value, 1);
            hdr.probe.word = 0;
            standard_metadata.egress_spec = 2;
        } else if (hdr.probe.kind == 3) { // learned
            digest<learned_t>(1, { hdr.ethernet.src, standard_metadata.ingress_port });
            standard_metadata.egress_spec = 2;
        } else if (hdr.probe.kind == 4) { // around `index` times more
            if (meta.rounds < hdr.probe.index) {
                meta.rounds = meta.rounds + 1;
                resubmit_preserving_field_list(1);
            } else {
                hdr.probe.value = (bit<16>)meta.rounds;
                standard_metadata.egress_spec = 2;
            }
        } else {
            standard_metadata.egress_spec = 2;
        }
    }
}

control StreamsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.probe.isValid()) {
            if (hdr.probe.kind == 1) {
                hdr.probe.word = (bit<32>)standard_metadata.egress_rid;
            } else if (hdr.probe.kind == 5 && standard_metadata.instance_type == 0) { // forwarded, and cloned as it leaves
                clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.probe.value, 1);
                hdr.probe.word = 0;
            }
        }
    }
}

control StreamsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(StreamsParser(), NoChecksum(), StreamsIngress(), StreamsEgress(), NoChecksum(), StreamsDeparser()) main;
