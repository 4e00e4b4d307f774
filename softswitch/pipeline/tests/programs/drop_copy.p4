// SPDX-License-Identifier: Apache-2.0
// Drops packets of type 1 by an action that takes the standard metadata as inout: compilers make it mark a
// copy, which is then copied back.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t eth; }
struct meta_t { }

action my_drop(inout standard_metadata_t std) { mark_to_drop(std); }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.eth); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    table filter {
        key = { hdr.eth.type: exact; }
        actions = { my_drop(std); NoAction; }
        const entries = { 1: my_drop(std); }
        default_action = NoAction();
    }
    apply { std.egress_spec = 4; filter.apply(); }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.eth); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
