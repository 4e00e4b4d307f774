// SPDX-License-Identifier: Apache-2.0
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
    bit<8> value;
}

header extra_t {
    bit<8> extra;
}

struct headers_t {
    kind_t kind;
    extra_t extra;
}

struct metadata_t {}

parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.kind);
        transition select(h.kind.kind) {
            1: accept;
            2 .. 5: parse_extra;
            9: never;
            default: accept;
        }
    }
    state parse_extra {
        packet.extract(h.extra);
        transition accept;
    }
    state never {
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) {
    apply {}
}

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action forward(bit<9> port) {
        s.egress_spec = port;
        if (h.extra.isValid()) {
            h.extra.extra = h.kind.value;
        }
    }
    action unused() {
        h.kind.value = 0;
    }
    action drop() {
        mark_to_drop(s);
    }
    table ports {
        key = {
            h.kind.kind: exact;
        }
        actions = {
            forward;
            unused;
            drop;
        }
        default_action = drop();
        const entries = {
            1: forward(1);
            2: forward(2);
            7: unused();
        }
    }
    apply {
        ports.apply();
        if (h.kind.value == 0xff) {
            h.kind.value = 1;
        }
    }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {}
}

control C(inout headers_t h, inout metadata_t m) {
    apply {}
}

control D(packet_out packet, in headers_t h) {
    apply {
        packet.emit(h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
