// SPDX-License-Identifier: Apache-2.0
// Connects port 0 with port 1. The entries are constant, so the switch needs no controller.
#include <core.p4>
#include <v1model.p4>

struct headers {}
struct metadata {}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    state start { transition accept; }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action drop() { mark_to_drop(standard_metadata); }
    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    table wires {
        key = { standard_metadata.ingress_port: exact; }
        actions = { send; drop; }
        const default_action = drop();
        const entries = {
            0: send(1);
            1: send(0);
        }
    }
    apply { wires.apply(); }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {} }
control VC(inout headers hdr, inout metadata meta) { apply {} }
control CC(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply {} }

V1Switch(P(), VC(), I(), E(), CC(), D()) main;
