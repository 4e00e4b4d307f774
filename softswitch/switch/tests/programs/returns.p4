// SPDX-License-Identifier: Apache-2.0
/* Packets leave through port 3. Their clones recirculate at the port of session 1, and then leave through port 2. */
#include <core.p4>
#include <v1model.p4>

const bit<32> EGRESS_CLONE = 2;
const bit<32> RECIRCULATED = 4;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == RECIRCULATED) {
            std.egress_spec = 2;
        } else {
            std.egress_spec = 3;
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == 3) {
            clone(CloneType.E2E, 1);
        } else if (std.instance_type == EGRESS_CLONE) {
            recirculate_preserving_field_list(0);
        }
    }
}

control C(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
